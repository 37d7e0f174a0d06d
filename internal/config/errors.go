package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is one fault of a configuration. Parse, Load and Validate return all faults joined; errors.As finds the
// first.
type Error struct {
	File    string // empty: not from a file
	Line    int    // 0: not known, as for a value that a flag set
	Key     string // the key's full path, such as auth.jwt[0].issuer
	Problem string // what was given and what is allowed
}

// Error begins with the place, like the errors of compilers: FILE:12: key: problem.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.File != "" && e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	case e.File != "":
		fmt.Fprintf(&b, "%s: ", e.File)
	case e.Line > 0:
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// faults collects the errors, so that a file's author sees all of them at once.
type faults []*Error

func (f *faults) add(line int, key, format string, args ...any) {
	*f = append(*f, &Error{Line: line, Key: key, Problem: fmt.Sprintf(format, args...)})
}

// covers reports whether a fault of the key, or of a section that contains it, is known already.
func (f faults) covers(key string) bool {
	return slices.ContainsFunc(f, func(e *Error) bool {
		rest, ok := strings.CutPrefix(key, e.Key)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// join returns the faults in the order of the file; nil if there are none.
func (f faults) join(file string) error {
	slices.SortStableFunc(f, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(f))
	for i, e := range f {
		e.File = file
		errs[i] = e
	}
	return errors.Join(errs...)
}

// quoted shows a value from the file, but not more of it than helps.
func quoted(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
