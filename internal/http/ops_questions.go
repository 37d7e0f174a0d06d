package http

import (
	"fmt"
	"net/http"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// debugQuestions answers a table of the questions of live counts and pages that are kept. What they
// select by is not shown: it may be secret.
func (s *Server) debugQuestions(w http.ResponseWriter, _ *http.Request) {
	table := reply.NewTextTable(w, "CLUSTER\tKIND\tNAMESPACE\tNARROWED\tSELECTED\tCOUNT BY\tSORT\tASKED BY\tREADERS\tOBJECTS\tBYTES\tVERSION")
	for _, q := range s.queries.List() {
		objects, version := "-", "-"
		if q.Snapshot != nil {
			version = fmt.Sprint(q.Snapshot.Version)
			if q.Snapshot.Ranking != nil {
				objects = fmt.Sprint(q.Snapshot.Ranking.Len())
			}
		}
		table.Row("%s\t%s\t%s\t%t\t%t\t%s\t%s\t%q\t%d\t%s\t%d\t%s", orDash(q.Target.Cluster), q.Kind, orDash(q.Target.Namespace), q.Target.Visible != nil,
			q.Selector.Match() != nil, orDash(q.By.String()), orDash(q.Order.String()), q.QuotaOwner, q.Readers, objects, q.Bytes, version)
	}
	table.End()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
