package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
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

// A review is up to three requests: what one of them was answered is not told of another that is not answered at all.
func TestOneAnswerIsNotToldOfTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviewed := 0
		answer := func(r *http.Request) (*http.Response, error) {
			code, body := http.StatusCreated, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false}}`
			switch {
			case r.URL.Path == "/readyz":
				code, body = http.StatusForbidden, "" // it does not say
			case reviewed > 0:
				<-r.Context().Done()
				return nil, r.Context().Err()
			default:
				reviewed++
			}
			return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}
		c, err := cluster.Connect(cluster.Options{Name: "test", Config: &rest.Config{Host: "http://api.test", Transport: transport(answer)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = c.Reviews().Create(ctx, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})
		if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "403") || reviewed == 0 {
			t.Errorf("a review that is not answered: %v", err)
		}
	})
}

// transport answers requests.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
