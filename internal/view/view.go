// Package view says how what was read is shown, alike on a page, on a terminal and in a listing: the columns of names, claims,
// resources and nodes, the word for how each of them stands, and which comes first. Who shows it picks columns and lays them out.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Look is how a word for a state looks.
type Look string

// The looks.
const (
	Good  Look = "good"
	Busy  Look = "busy"
	Bad   Look = "bad"
	Quiet Look = "quiet"
)

// Piece is a part of a cell.
type Piece struct {
	// Says is a text that cannot harm a terminal.
	Says string
	// Look is set for a word for a state.
	Look Look
	// Span is a length that is said, 0 for any other text. Since is when it began: a page counts on. With Ends it is
	// what is left, and a page counts down.
	Span  time.Duration
	Since time.Time
	Ends  bool
	// To is what a page leads to.
	To Place
}

// Place is what a page leads to: "name", "claim", "owner", "label" or "node". The zero value is none.
type Place struct {
	Of   string
	Kind keyspace.Kind // of a name or a claim
	Name string        // likewise
	ID   string        // of all but a name
}

// Cell is one of a row; without a piece that says something it is empty.
type Cell []Piece

// String is the cell as a terminal shows it.
func (c Cell) String() string {
	var says []string
	for _, p := range c {
		if p.Says != "" {
			says = append(says, p.Says)
		}
	}
	return cmp.Or(strings.Join(says, ", "), "-")
}

// Column is one of a table of such rows.
type Column[T any] struct {
	Head  string
	Width int  // on a terminal; 0: it shares what is left
	Share int  // of that
	Right bool // numbers and lengths
	Maybe bool // a listing leaves it out where it is empty in all rows
	Cell  func(*T) Cell
}

// Columns are those of a table.
type Columns[T any] []Column[T]

// Pick is some of the columns by their heads, in that order.
func (c Columns[T]) Pick(heads ...string) (picked Columns[T]) {
	for _, head := range heads {
		picked = append(picked, c[slices.IndexFunc(c, func(c Column[T]) bool { return c.Head == head })])
	}
	return picked
}

// Cells are the cells of each row, and the columns that they are of: without those that may be left out, and are empty.
func (c Columns[T]) Cells(all []T) (shown Columns[T], rows [][]Cell) {
	rows = make([][]Cell, len(all))
	for _, column := range c {
		cells, some := make([]Cell, len(all)), !column.Maybe
		for i := range all {
			cells[i] = column.Cell(&all[i])
			some = some || cells[i].String() != "-"
		}
		if !some {
			continue
		}
		shown = append(shown, column)
		for i := range rows {
			rows[i] = append(rows[i], cells[i])
		}
	}
	return shown, rows
}

// Part is these columns in a table of rows that have such a row in them.
func Part[R, T any](c Columns[T], of func(*R) *T) (all Columns[R]) {
	for _, c := range c {
		all = append(all, Column[R]{c.Head, c.Width, c.Share, c.Right, c.Maybe, func(r *R) Cell { return c.Cell(of(r)) }})
	}
	return all
}

func says(word string) Cell { return Cell{{Says: word}} }

func number[N int | int64](n N) Cell { return Cell{{Says: fmt.Sprint(n)}} }

// lasted is a length that goes on since a moment.
func lasted(d time.Duration, since time.Time) Cell {
	if since.IsZero() {
		return nil
	}
	return Cell{{Says: text.Human(d), Span: d, Since: since}}
}

// left is what is left of a length.
func left(d time.Duration) Cell {
	if d == berth.Forever {
		return says("forever")
	}
	return Cell{{Says: text.Human(d), Span: d, Ends: true}}
}

// to is a text that leads to a place, "" nowhere.
func to(of, id, word string) Cell {
	if id == "" {
		return nil
	}
	return Cell{{Says: text.Plain(word), To: Place{Of: of, ID: id}}}
}

// Who is how somebody is called in short.
func Who(label, owner, id string) string { return text.Plain(cmp.Or(label, owner, id)) }

// Key is how the key of a resource is shown: so that --quoted reads the same key.
func Key(key string) string {
	edged := key != "" && (key[0] == '"' || key[0] == ' ' || key[len(key)-1] == ' ')
	if edged || key == "-" { // "-" stands for nothing
		return text.Quoted(key)
	}
	return text.Plain(key)
}
