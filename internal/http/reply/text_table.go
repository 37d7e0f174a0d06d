package reply

import (
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
)

// TextTable is a table of aligned columns, for operators.
type TextTable struct{ to *tabwriter.Writer }

// NewTextTable begins a table with its header, whose columns are separated by tabs.
func NewTextTable(w http.ResponseWriter, header string) *TextTable {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	t := &TextTable{tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)}
	_, _ = io.WriteString(t.to, header+"\n")
	return t
}

// Row adds a row, with a tab between two cells.
func (t *TextTable) Row(format string, cells ...any) { fmt.Fprintf(t.to, format+"\n", cells...) }

// End writes the table. A client that has gone is no error.
func (t *TextTable) End() { _ = t.to.Flush() }
