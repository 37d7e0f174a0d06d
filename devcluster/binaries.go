package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// findBinaries returns the path of each program named. Programs built by "make build" are in controlplane/ beside
// the devcluster executable; $KUBEBUILDER_ASSETS, where set, comes first for what such a directory holds.
func findBinaries(names ...string) (map[string]string, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the devcluster executable: %w", err)
	}
	dirs := []string{filepath.Join(filepath.Dir(executable), "controlplane")}
	// Installed as a symbolic link, devcluster may have the programs beside the link or beside what it links to.
	if resolved, err := filepath.EvalSymlinks(executable); err == nil && resolved != executable {
		dirs = append(dirs, filepath.Join(filepath.Dir(resolved), "controlplane"))
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	found := map[string]string{}
	var missing []string
	for _, name := range names {
		candidates := dirs
		if assets != "" && (name == "etcd" || name == "kube-apiserver" || name == "kubectl") {
			candidates = append([]string{assets}, dirs...)
		}
		for _, dir := range candidates {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				found[name] = path
				break
			}
		}
		if found[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s not found in %s: run \"make build\" in the repository",
			strings.Join(missing, ", "), strings.Join(dirs, " or "))
	}
	return found, nil
}
