package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/kubecast/kubecast/internal/jobs"
)

// A namespace may be deleted, and made anew by somebody else. What was in the one of before is not
// the next one's. So rows say which namespace of a name they are of. Of rows of which that is not
// known, a namespace has those of jobs that are younger than it: in its life there was no other.

// Namespace is one namespace of a name.
type Namespace struct {
	Name, UID string
	Created   jobs.Time
}

// has reports whether a row is of the namespace.
func (n Namespace) has(r row) bool {
	return n.Name == r.namespace && (n.UID == r.namespaceUID || r.namespaceUID == "" && r.created > n.Created)
}

// livingIn is a condition for rows of a table that are in namespaces of some names: that they are
// of these very namespaces. A transition of which it is not known is of its job's. The columns of
// the inner query have other names than those of the table, whatever it is called around.
func livingIn(log Log, table string, living []Namespace) (text string, args []any) {
	if len(living) == 0 {
		return "1 = 0", nil
	}
	oldest := func(created string) string {
		if len(living) == 1 {
			return created + " > " + strconv.FormatInt(int64(living[0].Created), 10)
		}
		var text strings.Builder
		text.WriteString(created + " > CASE namespace")
		for _, n := range living {
			text.WriteString(" WHEN ? THEN " + strconv.FormatInt(int64(n.Created), 10))
			args = append(args, n.Name)
		}
		return text.String() + " END"
	}
	uids := " IN (''" + strings.Repeat(", ?", len(living)) + ")"
	if table != "transitions" {
		// The column alone is what is looked for among the uids: to estimate how many rows that finds, PostgreSQL goes through
		// the left side once for each of them, and a minute passed with ten thousand namespaces on either side.
		text = "CASE WHEN namespace_uid IS NULL THEN " + oldest("created") + " ELSE namespace_uid" + uids + " END"
	} else {
		text = "COALESCE(namespace_uid, (SELECT COALESCE(of_namespace, CASE WHEN " + oldest("of_created") + " THEN '' END)" +
			" FROM (SELECT log AS of_log, uid AS of_uid, namespace_uid AS of_namespace, created AS of_created FROM jobs) AS theirs" +
			" WHERE of_log = " + strconv.FormatInt(log.ID, 10) + " AND of_uid = uid))" + uids
	}
	for _, n := range living {
		args = append(args, n.UID)
	}
	return text, args
}

// fromJobs completes transitions of which it is not known of which namespace they are by what is known of their jobs.
func (s *Store) fromJobs(ctx context.Context, log Log, unknown []*jobs.Transition) error {
	if len(unknown) == 0 {
		return nil
	}
	of := map[string][]*jobs.Transition{}
	var uids []string
	for _, t := range unknown {
		if of[t.UID] == nil {
			uids = append(uids, t.UID)
		}
		of[t.UID] = append(of[t.UID], t)
	}
	w := &where{}
	w.add("log = ?", log.ID)
	oneOf(w, "uid", uids)
	return s.Each(ctx, func(scan Scan) error {
		var uid string
		var namespace sql.NullString
		var created jobs.Time
		err := scan(&uid, &namespace, &created)
		for _, t := range of[uid] {
			t.NamespaceUID, t.Created = namespace.String, created
		}
		return err
	}, "SELECT uid, namespace_uid, created FROM jobs "+w.String(), w.args...)
}
