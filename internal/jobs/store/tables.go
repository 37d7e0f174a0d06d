package store

import (
	"regexp"
	"slices"
	"strings"
)

// schemaTable says which version the schema has. It is made before the first migration.
const schemaTable = "history_schema"

// Table is a table of the schema. All that has to know the tables asks Tables: rights, copies, documents and tests.
type Table struct {
	Name    string
	Columns []Column
	Key     []string // the columns of its primary key

	generated bool // the database numbers the rows
	seeded    bool // a migration makes rows
}

// Column is a column of a table.
type Column struct {
	Name   string
	number bool // or
	bytes  bool // else it is a text
}

var (
	createsTable = regexp.MustCompile(`(?s)^CREATE TABLE IF NOT EXISTS (\w+) \((.*)\) \$OPTIONS$`)
	addsColumn   = regexp.MustCompile(`^ALTER TABLE (\w+) ADD COLUMN IF NOT EXISTS (\w+) (\S+)`)
	insertsRows  = regexp.MustCompile(`^INSERT INTO (\w+) `)
)

// Tables are the tables that a gateway reads and writes, as the migrations make them.
func Tables() []Table {
	var all []*Table
	named := func(name string) *Table {
		return all[slices.IndexFunc(all, func(t *Table) bool { return t.Name == name })]
	}
	for _, statement := range slices.Concat(migrations...) {
		if m := createsTable.FindStringSubmatch(statement); m != nil {
			t := &Table{Name: m[1]}
			t.define(m[2])
			all = append(all, t)
		} else if m := addsColumn.FindStringSubmatch(statement); m != nil {
			t := named(m[1])
			t.Columns = append(t.Columns, Column{Name: m[2], number: m[3] == "BIGINT", bytes: m[3] == "$BYTES"})
		} else if m := insertsRows.FindStringSubmatch(statement); m != nil {
			named(m[1]).seeded = true
		}
	}
	tables := make([]Table, len(all))
	for i, t := range all {
		tables[i] = *t
	}
	return tables
}

// define takes what stands between the parentheses of a statement that makes a table.
func (t *Table) define(text string) {
	depth := 0
	for _, part := range strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	}) {
		switch words := strings.Fields(part); {
		case strings.HasPrefix(strings.TrimSpace(part), "PRIMARY KEY ("):
			_, list, _ := strings.Cut(part, "(")
			list, _, _ = strings.Cut(list, ")")
			t.Key = strings.Split(list, ", ")
		case words[0] == "UNIQUE":
		default:
			kind := words[1]
			t.Columns = append(t.Columns, Column{Name: words[0], number: kind == "BIGINT" || kind == "$ID", bytes: kind == "$BYTES"})
			if t.generated = t.generated || kind == "$ID"; kind == "$ID" || strings.Contains(part, "PRIMARY KEY") {
				t.Key = words[:1]
			}
		}
	}
}

func (t *Table) names() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}
