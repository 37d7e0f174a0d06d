// Command results prints how Kubernetes' own tests went at the API server and through the gateway,
// a line for each case, from two reports of Ginkgo. It fails if a case passes at the API server
// only, and is not among those that differ by decision.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// decided are the cases that differ by decision, by a part of their name, with the reason;
// docs/clients.md has them, too.
var decided = map[string]string{
	"should NOT be requested by metadata client's List": "what was written has managedFields, what is read has none",
	"should be requested by metadatainformer":           "what was written has managedFields, what is read has none",
	"should be requested by informers":                  "Secrets are compared with what was written, of which the gateway shows a part",
	`with accept "application/vnd.kubernetes.protobuf"`: "nothing but protobuf is accepted",
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: results REPORT-OF-THE-API-SERVER REPORT-OF-THE-GATEWAY")
		os.Exit(2)
	}
	api, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	gateway, err := read(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	passed, worse := 0, 0
	for _, name := range slices.Sorted(maps.Keys(api)) {
		reason := ""
		for part, why := range decided {
			if strings.Contains(name, part) {
				reason = "  by decision: " + why
			}
		}
		switch {
		case gateway[name]:
			passed++
		case api[name] && reason == "":
			worse++
		}
		fmt.Printf("%-7s %-7s %s%s\n", word(api[name]), word(gateway[name]), name, reason)
	}
	fmt.Printf("%d cases, %d pass through the gateway\n", len(api), passed)
	if worse > 0 {
		os.Exit(1)
	}
}

func word(passed bool) string {
	if passed {
		return "passed"
	}
	return "FAILED"
}

// read returns the cases that ran, and whether they passed.
func read(file string) (map[string]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var reports []types.Report
	if err := json.Unmarshal(text, &reports); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	cases := map[string]bool{}
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			if spec.LeafNodeType == types.NodeTypeIt && spec.State != types.SpecStateSkipped && spec.State != types.SpecStatePending {
				cases[spec.FullText()] = spec.State == types.SpecStatePassed
			}
		}
	}
	return cases, nil
}
