package e2e

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"
)

// tryInDatabase says something at a database's address; MariaDB's users have the password x.
func tryInDatabase(address, statement string) error {
	driver, dsn := "pgx", address
	if strings.HasPrefix(address, "mysql://") {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		driver, dsn = "mysql", u.User.Username()+":x@tcp("+u.Host+")"+u.Path
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(statement)
	return err
}

func inDatabase(t *testing.T, address, statement string) {
	t.Helper()
	if err := tryInDatabase(address, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
