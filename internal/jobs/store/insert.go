package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// insertSizes are how many rows go into one statement: few sizes, so that few statements have to be
// prepared, and halves, so that a small batch takes few of them, since each is a round trip to a
// server.
var insertSizes = []int{100, 64, 32, 16, 8, 4, 2, 1}

// insert inserts rows; the suffix says what becomes of those that are there already.
func (t *Tx) insert(ctx context.Context, table string, columns []string, rows [][]any, suffix string) error {
	into := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") "
	if t.dialect.arrays() {
		for part := range slices.Chunk(rows, arraySize) {
			selected, args, ok := arrays(len(columns), part)
			if !ok {
				return t.insertValues(ctx, into, len(columns), rows, suffix)
			}
			if _, err := t.Exec(ctx, into+selected+suffix, args...); err != nil {
				return err
			}
			rows = rows[len(part):]
		}
		return nil
	}
	return t.insertValues(ctx, into, len(columns), rows, suffix)
}

// insertBytes bounds the texts and bytes of one statement of several rows. Servers refuse a
// statement that is too large: MariaDB one of 16 MB.
const insertBytes = 4 << 20

func (t *Tx) insertValues(ctx context.Context, into string, columns int, rows [][]any, suffix string) error {
	one := "(?" + strings.Repeat(", ?", columns-1) + ")"
	for len(rows) > 0 {
		size := insertSizes[slices.IndexFunc(insertSizes, func(size int) bool { return size == 1 || size <= len(rows) && fits(rows[:size]) })]
		statement := into + "VALUES " + one + strings.Repeat(", "+one, size-1) + suffix
		if _, err := t.Exec(ctx, statement, slices.Concat(rows[:size]...)...); err != nil {
			return err
		}
		rows = rows[size:]
	}
	return nil
}

// fits reports whether rows fit into one statement.
func fits(rows [][]any) bool {
	bytes := 0
	for _, row := range rows {
		for _, value := range row {
			switch v := value.(type) {
			case string:
				bytes += len(v)
			case []byte:
				bytes += len(v)
			}
		}
		if bytes > insertBytes {
			return false
		}
	}
	return true
}

// arraySize is how many rows go into one statement that has an array for each column.
const arraySize = 2000

// arrays selects rows from one array for each column. So there is one statement for any number of
// rows, which is parsed and planned with a few parameters instead of thousands. It is not ok if
// that cannot be: a column has other values than texts, whole numbers or bytes, or several of
// these.
func arrays(columns int, rows [][]any) (selected string, args []any, ok bool) {
	var types, names, selects []string
	for c := range columns {
		texts, numbers, bytes := make([]*string, 0, len(rows)), make([]*int64, 0, len(rows)), [][]byte(nil)
		for _, row := range rows {
			var text *string
			var number *int64
			switch v := row[c].(type) {
			case nil:
			case string:
				text = &v
			case int64:
				number = &v
			case int:
				n := int64(v)
				number = &n
			case []byte:
				bytes = append(bytes, v)
			default:
				return "", nil, false
			}
			texts, numbers = append(texts, text), append(numbers, number)
		}
		switch isText, isNumber := slices.ContainsFunc(texts, notNil), slices.ContainsFunc(numbers, notNil); {
		case isText && isNumber, bytes != nil && (isText || isNumber || len(bytes) < len(rows)):
			return "", nil, false
		case bytes != nil:
			types, args = append(types, "?::bytea[]"), append(args, bytes)
		case isText:
			types, args = append(types, "?::text[]"), append(args, texts)
		case isNumber:
			types, args = append(types, "?::bigint[]"), append(args, numbers)
		default: // an array of nothing but NULL would have to have the column's type
			selects = append(selects, "NULL")
			continue
		}
		names = append(names, "c"+strconv.Itoa(c))
		selects = append(selects, names[len(names)-1])
	}
	if len(names) == 0 {
		return "", nil, false
	}
	return "SELECT " + strings.Join(selects, ", ") + " FROM unnest(" + strings.Join(types, ", ") + ") AS rows (" + strings.Join(names, ", ") + ")", args, true
}

func notNil[T any](p *T) bool { return p != nil }
