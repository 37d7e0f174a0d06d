package reply

import (
	"net/http"
	"testing"
)

func TestTheCodingIsOneThatTheClientLikesBest(t *testing.T) {
	for _, test := range []struct{ accept, want string }{
		{"", ""},
		{"gzip", "gzip"},
		{"x-gzip", "gzip"},
		{"GZIP;Q=1", "gzip"},
		{"gzip, deflate, br, zstd", "zstd"}, // equal: the order of the offer
		{"gzip;q=1.0, zstd;q=0.9", "gzip"},
		{"zstd ; q=0.5 , gzip ; q=0.4", "zstd"},
		{"*", "zstd"},
		{"*;q=0.1, zstd;q=0", "gzip"},
		{"gzip;q=0", ""},
		{"gzip;q=0, *", "zstd"},
		{"*;q=0", ""},
		{"identity", ""},
		{"identity;q=0, gzip;q=0.1", "gzip"},
		{"identity;q=0", ""}, // nothing is left: better this than an error
		{"identity;q=1, gzip;q=0.5", ""},
		{"identity;q=0.5, gzip", "gzip"},
		{"br, deflate, compress", ""},
		{"gzip;q=2, zstd;q=-1, *;q=NaN", ""},
		{"gzip;level=9", ""},
		{";;q=,,=", ""},
	} {
		h := http.Header{"Accept-Encoding": {test.accept}}
		if got := Encoding(h, []string{"zstd", "gzip"}); got != test.want {
			t.Errorf("%q: %q, not %q", test.accept, got, test.want)
		}
		if got := Encoding(h, nil); got != "" {
			t.Errorf("%q: %q, where none is offered", test.accept, got)
		}
	}
	if got := Encoding(http.Header{}, []string{"gzip"}); got != "" {
		t.Errorf("without a header: %q", got)
	}
	if got := Encoding(http.Header{"Accept-Encoding": {"br", "gzip"}}, []string{"gzip"}); got != "gzip" {
		t.Errorf("the second line was not read: %q", got)
	}
}
