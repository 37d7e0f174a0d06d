package store

import (
	"embed"
	"fmt"
	"strings"
)

// Each file of schema brings it from one version to the next, which is the number in the file's
// name. One that was released is never changed. What begins with a dollar is written differently by
// each database (dialect.types).
//
//go:embed schema/*.sql
var schemaFiles embed.FS

// migrations are the statements of each file, in the order of versions.
//
// MySQL and MariaDB end a transaction at each statement that changes a schema. So each statement
// can be repeated, and a migration that broke off in the middle begins again.
var migrations = readMigrations()

// readMigrations panics if a number is missing, or comes twice.
func readMigrations() (all [][]string) {
	files, err := schemaFiles.ReadDir("schema")
	if err != nil {
		panic(err)
	}
	for i, file := range files { // in the order of their names
		if prefix := fmt.Sprintf("%02d_", i+1); !strings.HasPrefix(file.Name(), prefix) {
			panic(fmt.Sprintf("schema/%s stands where %s… is expected", file.Name(), prefix))
		}
		text, err := schemaFiles.ReadFile("schema/" + file.Name())
		if err != nil {
			panic(err)
		}
		all = append(all, statementsOf(string(text)))
	}
	return all
}

// statementsOf are the statements of a file. Each ends with a semicolon at the end of a line; a line
// that begins with two hyphens is a comment.
func statementsOf(text string) (all []string) {
	var statement strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "--") {
			continue
		}
		statement.WriteString(line)
		if strings.HasSuffix(line, ";\n") {
			all = append(all, strings.TrimSuffix(strings.TrimSpace(statement.String()), ";"))
			statement.Reset()
		}
	}
	if rest := strings.TrimSpace(statement.String()); rest != "" {
		panic("a statement has no end: " + rest)
	}
	return all
}
