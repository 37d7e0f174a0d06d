package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// report keeps what mutations came to, and says it.
type report struct {
	file      *os.File           // nil: none
	known     map[string]outcome // of earlier runs
	killed    map[string]int     // by package
	survivors map[string][]string
}

// openReport reads the results of earlier runs, to which those of this one are added.
func openReport(name string) (*report, error) {
	r := &report{known: map[string]outcome{}, killed: map[string]int{}, survivors: map[string][]string{}}
	if name == "" {
		return r, nil
	}
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(cells) == 3 {
			r.known[cells[1]] = outcome{state: state(cells[0]), by: cells[2]}
		}
	}
	r.file, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return r, err
}

func (r *report) close() {
	if r.file != nil {
		_ = r.file.Close()
	}
}

// add says and keeps what a mutation came to.
func (r *report) add(m mutation, is outcome) error {
	r.count(m, is)
	fmt.Printf("%-16s %s:%d %s (%s) %s\n", is.state, m.file, m.line, m.name(), is.took.Round(time.Second/10), is.by)
	if r.file == nil {
		return nil
	}
	_, err := fmt.Fprintf(r.file, "%s\t%s\t%s\n", is.state, m.name(), is.by)
	return err
}

func (r *report) count(m mutation, is outcome) {
	switch directory := path.Dir(m.file); is.state {
	case killed:
		r.killed[directory]++
	case survived:
		r.killed[directory] += 0
		r.survivors[directory] = append(r.survivors[directory], m.name())
	}
}

// table says how many mutations of each package were seen, and which were not.
func (r *report) table() {
	fmt.Println("\n| package | changes | seen |\n| --- | --- | --- |")
	for _, directory := range slices.Sorted(maps.Keys(r.killed)) {
		fmt.Printf("| `%s` | %d | %d |\n", directory, r.killed[directory]+len(r.survivors[directory]), r.killed[directory])
	}
	fmt.Println("\nNot seen:")
	for _, directory := range slices.Sorted(maps.Keys(r.survivors)) {
		slices.Sort(r.survivors[directory])
		fmt.Println(" - " + strings.Join(r.survivors[directory], "\n - "))
	}
}
