package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// suite is the tests of a package, or some of them.
type suite struct {
	directory string
	only      string // a pattern of names; empty: all of them
	scratch   string
	limit     time.Duration // for one run; 0: it is not known yet how long that takes
}

type state string

const (
	killed     state = "killed"
	survived   state = "survived"
	uncompiled state = "does not compile"
)

// outcome says what a mutation came to.
type outcome struct {
	state state
	by    string // what killed it
	took  time.Duration
}

// run runs the tests with a mutation.
func (s *suite) run(ctx context.Context, m mutation) (outcome, error) {
	if s.limit == 0 {
		if err := s.measure(ctx); err != nil {
			return outcome{}, err
		}
	}
	overlay, err := s.overlay(m)
	if err != nil {
		return outcome{}, err
	}
	began := time.Now()
	said, passed, err := s.test(ctx, "-overlay", overlay, "-timeout", s.limit.String())
	is := outcome{state: survived, took: time.Since(began)}
	switch {
	case err != nil:
		return outcome{}, err
	case strings.Contains(said, "[build failed]") || strings.Contains(said, "[setup failed]"):
		is.state = uncompiled
	case !passed:
		is.state, is.by = killed, killer(said)
	}
	return is, nil
}

// measure runs the tests without any mutation, to learn how long they take. They get a second chance.
func (s *suite) measure(ctx context.Context) error {
	for range 2 {
		began := time.Now()
		said, passed, err := s.test(ctx)
		if err != nil {
			return err
		}
		if passed {
			const start = 30 * time.Second // compiling is not within the limit, but the machine may have more to do later
			s.limit = (3*time.Since(began) + start).Round(time.Second)
			return nil
		}
		if strings.Contains(said, "[build failed]") {
			return fmt.Errorf("%s does not compile: %s", s.directory, said)
		}
	}
	return fmt.Errorf("the tests of %s fail without any change", s.directory)
}

// overlay writes what the go command is to read instead of the file that a mutation changes.
func (s *suite) overlay(m mutation) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(s.scratch, "changed.go"), filepath.Join(s.scratch, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(changed, []byte(m.apply(string(text))), 0o600), os.WriteFile(overlay, replace, 0o600))
}

// test runs go test until the first test fails, and returns what it said. Most of the time goes into linking, which is
// quicker without symbols.
func (s *suite) test(ctx context.Context, flags ...string) (said string, passed bool, _ error) {
	arguments := append([]string{"test", "-vet=off", "-failfast", "-count=1", "-ldflags=-s -w"}, flags...)
	if s.only != "" {
		arguments = append(arguments, "-run", s.only)
	}
	command := exec.CommandContext(ctx, "go", append(arguments, "./"+s.directory)...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	output, err := command.CombinedOutput()
	if failed := new(exec.ExitError); ctx.Err() != nil || err != nil && !errors.As(err, &failed) {
		return "", false, errors.Join(ctx.Err(), err)
	}
	return string(output), err == nil, nil
}

var (
	failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	crash   = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.{0,80})`)
)

// killer is the test that has failed, or what ended all of them.
func killer(said string) string {
	for _, pattern := range []*regexp.Regexp{failure, crash} {
		if match := pattern.FindStringSubmatch(said); match != nil {
			return match[1]
		}
	}
	return "?"
}
