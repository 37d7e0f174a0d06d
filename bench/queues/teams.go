//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/internal/devtoken"
)

// teamConfig has the cluster's roles say what viewers may see, which is the default. The key's path is left out.
const teamConfig = `auth:
  jwt:
  - {issuer: "https://kubecast.local", audiences: [kubecast], publicKeyFile: %s.pub}
requests: {perUser: 0, perSecond: 0}
stream: {perUser: 0, perAddress: 0, watchesPerUser: 0}
`

// everybody is the group that may list queues, and chiefs the one that sees all jobs. A namespace's jobs are seen by the group of its name.
const everybody, chiefs = "everybody", "chiefs"

// roles are the kinds that say so.
func roles() (kinds []apiserver.Kind) {
	kind := func(resource, name string, whole bool, texts ...string) {
		kinds = append(kinds, apiserver.Kind{
			Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource, Kind: name, Whole: whole, Objects: len(texts),
			Render: func(number int, version uint64, _ mark.Mark) []byte {
				return fmt.Appendf(nil, `{"kind":"%s","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"%s-%d","uid":"%[2]s-%[3]d","resourceVersion":"%d"%s`, name, resource, number, version, texts[number])
			},
		})
	}
	binding := func(role, group string) string {
		return fmt.Sprintf(`},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"clusterroles-%s"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"%s"}]}`, role, group)
	}
	const seesQueues, seesJobs = "0", "1"
	kind("clusterroles", "ClusterRole", true,
		`},"rules":[{"apiGroups":["kueue.x-k8s.io"],"resources":["clusterqueues"],"verbs":["list"]}]}`,
		`},"rules":[{"apiGroups":["batch"],"resources":["jobs"],"verbs":["get","list"]}]}`)
	kind("clusterrolebindings", "ClusterRoleBinding", true, binding(seesQueues, everybody), binding(seesJobs, chiefs))
	var teams []string
	for number := range lines {
		teams = append(teams, fmt.Sprintf(`,"namespace":"%s"`, namespace(number))+binding(seesJobs, namespace(number)))
	}
	kind("rolebindings", "RoleBinding", false, teams...)
	kind("roles", "Role", false)
	return kinds
}

// signed are so many users who look at the queue, each of some groups. The key is kept in a directory.
func signed(dir string, users int, groups func(user int) []string) (all []load.User, key string, err error) {
	key = filepath.Join(dir, "key.pem")
	for i := range users {
		token, err := devtoken.Sign(devtoken.Token{
			KeyFile: key, User: fmt.Sprintf("user-%d", i), Groups: append(groups(i), everybody), Issuer: "https://kubecast.local", Audience: "kubecast", TTL: 12 * time.Hour,
		})
		if err != nil {
			return nil, "", err
		}
		all = append(all, load.User{Path: "/queues/whole", Token: token})
	}
	return all, key, nil
}

// ofOneTeam and ofSomeTeams are the groups of a user: a team, or a set of teams that is another's only if there are very many users.
func ofOneTeam(user int) []string { return []string{namespace(user)} }

func ofSomeTeams(user int) (teams []string) {
	for number := range lines {
		if (user+1)>>number&1 == 1 {
			teams = append(teams, namespace(number))
		}
	}
	return teams
}
