package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// findBinaries returns the path of each named program. "make build" puts the programs into controlplane/ beside the
// devcluster executable. If $KUBEBUILDER_ASSETS is set, a program in that directory comes first.
func findBinaries(names ...string) (map[string]string, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the devcluster executable: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(executable); err == nil {
		executable = resolved
	}
	return findBinariesIn(filepath.Join(filepath.Dir(executable), "controlplane"), os.Getenv("KUBEBUILDER_ASSETS"), names)
}

func findBinariesIn(built, assets string, names []string) (map[string]string, error) {
	found := map[string]string{}
	var missing []string
	for _, name := range names {
		dirs := []string{built}
		if assets != "" && (name == "etcd" || name == "kube-apiserver" || name == "kubectl") {
			dirs = []string{assets, built}
		}
		for _, dir := range dirs {
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
		return nil, fmt.Errorf("%s not found in %s: run \"make build\" in the repository", strings.Join(missing, ", "), built)
	}
	return found, nil
}
