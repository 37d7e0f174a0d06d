package store

import (
	"errors"
	"net/url"
	"strings"
)

// Grants are the statements that give a role of a server's the rights that a gateway needs which
// does not change the schema. They are for the owner of the tables. Without a role they are for the
// user of the address.
func Grants(opts Options, role string) ([]string, error) {
	address, err := url.Parse(opts.Address)
	if err != nil || opts.Address == "sqlite" || address.Scheme == "sqlite" {
		return nil, errors.New("is a file, in which there are no rights but those of the file")
	}
	if role == "" {
		role = address.User.Username()
	}
	if role == "" {
		return nil, errors.New("names no user: name the role")
	}
	if address.Scheme == "mysql" {
		return mariadb{}.grants(role, strings.TrimPrefix(address.Path, "/")), nil
	}
	return postgres{}.grants(role), nil
}

const rights = "SELECT, INSERT, UPDATE, DELETE"

func (postgres) grants(role string) []string {
	to := " TO " + quoted(role, `"`) + ";"
	all := []string{
		"DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), " + quoted(role, "'") + "); END $$;",
		"GRANT SELECT ON " + schemaTable + to,
	}
	for _, t := range Tables() {
		all = append(all, "GRANT "+rights+" ON "+t.Name+to)
	}
	return all
}

// A role may say from which hosts it connects, as 'gateway@10.%'; it is from all of them otherwise.
func (mariadb) grants(role, database string) []string {
	host := "%"
	if i := strings.LastIndexByte(role, '@'); i >= 0 {
		role, host = role[:i], role[i+1:]
	}
	on, to := quoted(database, "`")+".", " TO "+quoted(role, "'")+"@"+quoted(host, "'")+";"
	all := []string{"GRANT SELECT ON " + on + schemaTable + to}
	for _, t := range Tables() {
		all = append(all, "GRANT "+rights+" ON "+on+t.Name+to)
	}
	return all
}

func quoted(name, quote string) string {
	return quote + strings.ReplaceAll(name, quote, quote+quote) + quote
}
