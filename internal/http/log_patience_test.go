package http

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// hangsFor has the node of some containers answer with a text, and then no more; without a text, not at all.
func (k *kubelet) hangsFor(text string, containers ...string) {
	hangs := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(containers, r.URL.Query().Get("container")) {
			k.ServeHTTP(w, r)
			return
		}
		if text != "" {
			_, _ = fmt.Fprintln(w, text)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
	k.instead.Store(&hangs)
}

// A search tells no items but lines, so it says otherwise that a log was not read.
func TestASearchIsNotCompleteWhereALogCannotBeRead(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		for _, c := range []string{"main", "stuck"} {
			k.starts("a/web", c)
			k.writes("a/web", c, "of "+c)
		}
		pass(time.Second)
		k.hangsFor("", "stuck")
		if a := all[0].asksLog("/api/v1/namespaces/a/pods/web?view=search&search=stuck"); a.Complete || a.Stopped != "unavailable" {
			t.Errorf("complete %t, stopped %q", a.Complete, a.Stopped)
		}
	})
}

// However many logs hang in their midst, the others' lines are told.
func TestManyLogsThatHangSilenceNoOther(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		k.starts("a/web", "main")
		k.writes("a/web", "main", "of main")
		var stuck []string
		for n := range 7 {
			stuck = append(stuck, fmt.Sprint("stuck", n))
			k.starts("a/web", stuck[n])
		}
		pass(time.Second)
		k.hangsFor("1999-01-31T09:00:00Z first", stuck...)
		a := all[0].asksLog("/api/v1/namespaces/a/pods/web?view=lines")
		if got := textsOf(a.Items); !slices.Contains(got, "main of main") || a.Stopped != "" {
			t.Errorf("stopped %q: %q", a.Stopped, got)
		}
	})
}
