//go:build linux

package figures

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Median is the middle one of some values, or the mean of the two in the middle; 0 if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// MedianOf is the median of the values that read returns for some things.
func MedianOf[T any](things []T, read func(T) float64) float64 {
	values := make([]float64, len(things))
	for i, thing := range things {
		values[i] = read(thing)
	}
	return Median(values)
}

// Milliseconds is a duration as a number of milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Microseconds is a duration as a number of microseconds.
func Microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Table is printed with aligned columns.
type Table struct {
	Title  string
	Header []any
	Rows   [][]any
	Notes  []string
}

// Add adds a row.
func (t *Table) Add(cells ...any) { t.Rows = append(t.Rows, cells) }

// Note adds a line below the table.
func (t *Table) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Reach notes whether a figure is within one of the project's own targets.
func (t *Table) Reach(what string, value, bound float64) {
	t.target(what, "most", value, bound, value <= bound)
}

// AtLeast is Reach where more is better.
func (t *Table) AtLeast(what string, value, bound float64) {
	t.target(what, "least", value, bound, value >= bound)
}

func (t *Table) target(what, at string, value, bound float64, reached bool) {
	verdict := "reached"
	if !reached {
		verdict = "NOT reached"
	}
	t.Note("target %s: at %s %s, is %s: %s", what, at, short(bound), short(value), verdict)
}

// Print prints the table. Floats get only significant digits.
func (t *Table) Print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n", t.Title)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight|tabwriter.Debug)
	for _, row := range append([][]any{t.Header}, t.Rows...) {
		for _, cell := range row {
			switch cell := cell.(type) {
			case float64:
				fmt.Fprintf(w, " %s\t", short(cell))
			default:
				fmt.Fprintf(w, " %v\t", cell)
			}
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // nobody reads it then
	for _, note := range t.Notes {
		fmt.Fprintln(out, "  "+note)
	}
}

func short(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}
