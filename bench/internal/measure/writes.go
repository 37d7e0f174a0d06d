//go:build linux

package measure

import (
	"bytes"
	"slices"

	"github.com/google/pprof/profile"
)

// writing are the functions of Go below which nothing runs but write(2) and what it calls in the kernel.
var writing = []string{"syscall.write", "syscall.Write", "syscall.writev"}

// WriteShare is which part of the processor time of a profile, as Go's /debug/pprof/profile has it, was in
// write(2), from 0 to 1; NaN if nothing ran.
func WriteShare(cpu []byte) (float64, error) {
	p, err := profile.Parse(bytes.NewReader(cpu))
	if err != nil {
		return 0, err
	}
	var writes, all int64
	for _, s := range p.Sample {
		took := s.Value[len(s.Value)-1] // nanoseconds; before that, how many samples
		all += took
		if slices.ContainsFunc(s.Location, isWriting) {
			writes += took
		}
	}
	return float64(writes) / float64(all), nil
}

func isWriting(l *profile.Location) bool {
	return slices.ContainsFunc(l.Line, func(line profile.Line) bool {
		return line.Function != nil && slices.Contains(writing, line.Function.Name)
	})
}
