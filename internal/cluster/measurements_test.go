package cluster_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
)

var measuredPods = cluster.Kind{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods", Kind: "PodMetrics", Namespaced: true, Measured: true}

// What measures is not the API server, so it may answer anything.
func TestMeasurementsThatAreNoneAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &documentServer{}
		c := s.connect(t)
		for name, answer := range map[string]http.HandlerFunc{
			"endless": func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"items":[`)
				for range 70 {
					_, _ = io.WriteString(w, `{"metadata":{"name":"x"},"a":"`+strings.Repeat("a", 1<<20)+`"},`)
				}
			},
			"no names": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items":[{"metadata":{}}]}`) },
			"cut": func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"x"`)
			},
			"a page": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `<html>`) },
		} {
			s.set(answer)
			if _, err := c.Measurements(t.Context(), measuredPods); !errors.Is(err, cluster.ErrNotMeasured) {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(2 * time.Second) // until the failure is forgotten
		}
		s.set(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"x","namespace":"b"}},{"metadata":{"name":"y","namespace":"a"}}]}`)
		})
		m, err := c.Measurements(t.Context(), measuredPods)
		if err != nil || m.Get("b", "x") == nil || m.Get("a", "x") != nil || len(m.In("a")) != 1 || len(m.In("")) != 2 || len(m.In("c")) != 0 {
			t.Errorf("%v %+v", err, m)
		}
		time.Sleep(time.Minute) // nothing is left that runs
	})
}
