package cluster_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/apitest"
)

// An API server that has just started denies everything, since it knows no roles yet.
func TestDenialsOfAnAPIServerThatIsNotReadyDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		allowed, readyz := "false", &apitest.Fault{Status: &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError}}
		var asked []string
		api.Intercept(func(r *http.Request) *apitest.Fault {
			if r.URL.Path == "/readyz" {
				asked = append(asked, "ready?")
				return readyz
			}
			if strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
				asked = append(asked, "allowed?")
				return &apitest.Fault{
					Body: `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":` + allowed + `}}`,
				}
			}
			return nil
		})
		reviews := api.Connect(t).Reviews()
		expect := func(what string, answer, questions string) {
			t.Helper()
			got := "error"
			if review, err := reviews.Create(t.Context(), &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{}); err == nil {
				got = map[bool]string{true: "allowed", false: "denied"}[review.Status.Allowed]
			}
			if all := strings.Join(asked, " "); got != answer || all != questions {
				t.Errorf("%s: %s after %q, not %s after %q", what, got, all, answer, questions)
			}
			asked = nil
			time.Sleep(100 * time.Millisecond)
		}
		expect("not ready", "error", "allowed? ready?")
		allowed = "true"
		expect("an allow", "allowed", "allowed?")
		allowed = "false"
		readyz = &apitest.Fault{Body: "ok"}
		expect("ready", "denied", "allowed? ready? allowed?")
		expect("still ready", "denied", "allowed?")
		time.Sleep(2 * time.Second)
		expect("perhaps restarted", "denied", "allowed? ready? allowed?")
		time.Sleep(2 * time.Second)
		readyz = apitest.Refuse(http.StatusForbidden)
		expect("does not say", "denied", "allowed? ready? allowed?")
	})
}
