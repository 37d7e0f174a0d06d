//go:build linux

package mark

import "testing"

func TestFind(t *testing.T) {
	want := Mark{Seq: 42, At: 1754040000123456789}
	whole := append(want.Append([]byte(`{"annotations":{"at":"`)), `"}}`...)
	if got, ok := Find(whole); !ok || got != want {
		t.Errorf("Find = %v, %v, want %v", got, ok, want)
	}
	for _, text := range []string{"", "~", "~~", "~1~", "~1@~", "~1@2", "~@2~", "1@2", "~a@2~"} {
		if got, ok := Find([]byte(text)); ok {
			t.Errorf("Find(%q) = %v", text, got)
		}
	}
}
