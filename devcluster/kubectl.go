package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

const kubectlHelp = `devcluster kubectl --dir DIR ARGUMENTS...

becomes a real kubectl with the cluster-admin's kubeconfig of the devcluster in DIR. All arguments after
--dir DIR are kubectl's.
`

// kubectlCommand replaces this process by kubectl. It reads --dir by hand, and only as the first argument, since all
// others are kubectl's.
func kubectlCommand(args []string) error {
	var arg string
	switch {
	case len(args) > 0 && (args[0] == "--help" || args[0] == "-h" || args[0] == "-help"):
		fmt.Print(kubectlHelp)
		return nil
	case len(args) > 1 && (args[0] == "--dir" || args[0] == "-dir"):
		arg, args = args[1], args[2:]
	case len(args) > 0 && strings.HasPrefix(strings.TrimPrefix(args[0], "-"), "-dir="):
		_, arg, _ = strings.Cut(args[0], "=")
		args = args[1:]
	}
	dir, err := openDirectory("kubectl", arg)
	if err != nil {
		return fmt.Errorf("%w, as the first argument", err)
	}
	if _, err := os.Stat(dir.kubeconfig()); err != nil {
		return fmt.Errorf("kubectl: no devcluster in %s: %w", dir, err)
	}
	programs, err := findBinaries("kubectl")
	if err != nil {
		return fmt.Errorf("kubectl: %w", err)
	}
	// The last of repeated flags wins, so a --kubeconfig among the arguments is still obeyed.
	argv := append([]string{"kubectl", "--kubeconfig=" + dir.kubeconfig()}, args...)
	// kubectl's cache of one cluster's kinds must not stay in the user's home, where it would be used for another
	// cluster on the same port.
	env := append(os.Environ(), "KUBECACHEDIR="+dir.kubectlCache())
	if err := syscall.Exec(programs["kubectl"], argv, env); err != nil {
		return fmt.Errorf("kubectl: starting %s: %w", programs["kubectl"], err)
	}
	return nil
}
