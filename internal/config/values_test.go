package config

import (
	"math"
	"testing"
	"time"
)

func TestByteSizesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]ByteSize{
		"0": 0, "1000": 1000, "1k": 1000, "1Ki": 1024, "64Mi": 64 << 20, "1Gi": 1 << 30, "2Ti": 2 << 40, "3M": 3e6, "3G": 3e9, "1T": 1e12,
		"9223372036854775807": math.MaxInt64,
	} {
		var b ByteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
		var again ByteSize
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Errorf("%s is written as %s and read as %d, %v", text, b, again, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5Gi", "1 Gi", "1gi", "1KB", "Gi", "0x10", "9223372036854775808", "9007199254740993Ki", "+1"} {
		var b ByteSize
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, b)
		}
	}
}

func TestDurationsAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "10m": 10 * time.Minute, "1h": time.Hour, "1h30m": 90 * time.Minute, "90s": 90 * time.Second, "5ms": 5 * time.Millisecond,
		"1h0m5s": time.Hour + 5*time.Second, "0s": 0, "720h": 720 * time.Hour,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.Std() != want {
			t.Errorf("%s: %v, %v", text, d, err)
		}
		var again Duration
		if err := again.UnmarshalText([]byte(d.String())); err != nil || again != d {
			t.Errorf("%s is written as %s and read as %v, %v", text, d, again, err)
		}
	}
	for d, want := range map[Duration]string{Duration(time.Hour): "1h", Duration(10 * time.Minute): "10m", Duration(70 * time.Minute): "1h10m"} {
		if d.String() != want {
			t.Errorf("%v, want %s", d, want)
		}
	}
	for _, text := range []string{"", "10", "-1s", "1d", "s", "1 s"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, d)
		}
	}
}

func TestKindsAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]Kind{
		"pods":                             {Resource: "pods"},
		"pods.v1":                          {Resource: "pods", Version: "v1"},
		"jobs.batch":                       {Resource: "jobs", Group: "batch"},
		"jobs.v1.batch":                    {Resource: "jobs", Version: "v1", Group: "batch"},
		"workloads.kueue.x-k8s.io":         {Resource: "workloads", Group: "kueue.x-k8s.io"},
		"workloads.v1beta2.kueue.x-k8s.io": {Resource: "workloads", Version: "v1beta2", Group: "kueue.x-k8s.io"},
		"jobs.batch.volcano.sh":            {Resource: "jobs", Group: "batch.volcano.sh"},
	} {
		got, err := ParseKind(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %#v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "Pods", "pods.", ".batch", "pods/log", "pods..v1", "a b", "batch/v1/jobs", "-a", "pods\n"} {
		if got, err := ParseKind(text); err == nil {
			t.Errorf("%q is read as %#v", text, got)
		}
	}
}
