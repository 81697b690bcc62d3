package main

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
)

// database stands for a real one, so that the example needs no server and no
// driver: one table in this process. It takes UPDATE and SELECT, with conditions
// that are joined by AND, and runs each statement in one step, as a database does
// that locks the row.
type database struct {
	mu   sync.Mutex
	rows []map[string]driver.Value // guarded by mu
}

// newDatabase returns a database with an account for each id.
func newDatabase(ids ...string) *database {
	d := &database{}
	for _, id := range ids {
		d.rows = append(d.rows, map[string]driver.Value{"id": id, "balance": int64(0), "fence": int64(0)})
	}
	return d
}

var (
	update    = regexp.MustCompile(`^UPDATE accounts SET (.+) WHERE (.+)$`)
	selection = regexp.MustCompile(`^SELECT (\w+) FROM accounts WHERE (.+)$`)
	term      = regexp.MustCompile(`^(\w+) (=|<=|<) \$(\d)$`)
)

// ExecContext runs an UPDATE.
func (d *database) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	words := update.FindStringSubmatch(query)
	if words == nil {
		return nil, fmt.Errorf("syntax error in %q", query)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	found, err := d.find(words[2], args)
	if err != nil {
		return nil, err
	}
	for _, row := range found {
		for change := range strings.SplitSeq(words[1], ", ") {
			column, _, value, err := parse(change, args)
			if err != nil {
				return nil, err
			}
			row[column] = value
		}
	}
	return driver.RowsAffected(len(found)), nil
}

// QueryContext runs a SELECT of one column.
func (d *database) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	words := selection.FindStringSubmatch(query)
	if words == nil {
		return nil, fmt.Errorf("syntax error in %q", query)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	found, err := d.find(words[2], args)
	if err != nil {
		return nil, err
	}
	list := &values{column: words[1]}
	for _, row := range found {
		list.left = append(list.left, row[list.column])
	}
	return list, nil
}

// find returns the rows that all conditions hold for. Its caller holds the mutex.
func (d *database) find(conditions string, args []driver.NamedValue) (found []map[string]driver.Value, err error) {
	for _, row := range d.rows {
		all := true
		for condition := range strings.SplitSeq(conditions, " AND ") {
			column, relation, value, err := parse(condition, args)
			if err != nil {
				return nil, err
			}
			all = all && holds(row[column], relation, value)
		}
		if all {
			found = append(found, row)
		}
	}
	return found, nil
}

// parse reads "column = $1", and what $1 stands for.
func parse(text string, args []driver.NamedValue) (column, relation string, value driver.Value, err error) {
	words := term.FindStringSubmatch(text)
	if words == nil {
		return "", "", nil, fmt.Errorf("syntax error at %q", text)
	}
	at := int(words[3][0] - '1')
	if at < 0 || at >= len(args) {
		return "", "", nil, fmt.Errorf("no value for $%s", words[3])
	}
	return words[1], words[2], args[at].Value, nil
}

func holds(have driver.Value, relation string, want driver.Value) bool {
	a, isNumber := have.(int64)
	b, alike := want.(int64)
	switch {
	case relation == "=":
		return have == want
	case !isNumber || !alike:
		return false
	case relation == "<=":
		return a <= b
	}
	return a < b
}

// values are the rows of a SELECT.
type values struct {
	column string
	left   []driver.Value
}

func (v *values) Columns() []string { return []string{v.column} }
func (v *values) Close() error      { return nil }

func (v *values) Next(into []driver.Value) error {
	if len(v.left) == 0 {
		return io.EOF
	}
	into[0], v.left = v.left[0], v.left[1:]
	return nil
}

// The rest of the interfaces of database/sql: a database is its own connector, driver and only
// connection.

func (d *database) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (d *database) Driver() driver.Driver                        { return d }
func (d *database) Open(string) (driver.Conn, error)             { return d, nil }
func (d *database) Close() error                                 { return nil }
func (d *database) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (d *database) Begin() (driver.Tx, error)                    { return nil, driver.ErrSkip }
