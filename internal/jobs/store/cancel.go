package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"time"
)

// MariaDB and MySQL do not notice that nobody waits for a statement any more: their driver only
// closes the connection. So whoever asks and leaves, again and again, would have any number of
// statements run there, however few turns they get. A connection whose statement was given up is
// therefore closed only once the server was told to end the statement. Its turn lasts until then.

// endWithin bounds how long it may take to tell the server.
const endWithin = 2 * time.Second

// ending makes connections that end their statements.
type ending struct{ driver.Connector }

// mysqlConn is what the driver's connections can do.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

func (e ending) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := e.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := &endingConn{mysqlConn: made.(mysqlConn), connector: e.Connector}
	if conn.id, err = conn.askID(ctx); err != nil {
		made.Close()
		return nil, err
	}
	return conn, nil
}

// endingConn is a connection. It is used by one goroutine at a time.
type endingConn struct {
	mysqlConn
	connector driver.Connector
	id        int64
	last      context.Context // of the last statement
}

func (c *endingConn) askID(ctx context.Context) (id int64, err error) {
	rows, err := c.mysqlConn.QueryContext(ctx, "SELECT CAST(CONNECTION_ID() AS SIGNED)", nil)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	values := make([]driver.Value, 1)
	if err := rows.Next(values); err != nil {
		return 0, err
	}
	switch value := values[0].(type) {
	case int64:
		return value, nil
	case []byte:
		return strconv.ParseInt(string(value), 10, 64)
	}
	return 0, fmt.Errorf("a connection's number is %v", values[0])
}

func (c *endingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.last = ctx
	return c.mysqlConn.QueryContext(ctx, query, args)
}

func (c *endingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.last = ctx
	return c.mysqlConn.ExecContext(ctx, query, args)
}

func (c *endingConn) Close() error {
	givenUp := c.last != nil && c.last.Err() != nil && !c.IsValid()
	err := c.mysqlConn.Close()
	if givenUp {
		c.endStatement()
	}
	return err
}

// endStatement has the server end what runs for the connection. There is nobody to tell if that cannot be done.
func (c *endingConn) endStatement() {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	other, err := c.connector.Connect(ctx)
	if err != nil {
		return
	}
	defer other.Close()
	_, _ = other.(mysqlConn).ExecContext(ctx, fmt.Sprintf("KILL %d", c.id), nil)
}
