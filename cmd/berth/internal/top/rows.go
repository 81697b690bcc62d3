package top

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// entry is a row of a listing.
type entry[T any] struct {
	key   string // by which a row is known again, unique among them
	value T
	head  bool // a heading, which cannot be selected
	gone  bool // the last reading does not have it any more
}

// rows are a listing with a cursor. The cursor stands on what was selected, wherever that has moved: a row
// that goes away under it stays where it was, and says that it is gone.
type rows[T any] struct {
	all    []entry[T]
	cursor int  // -1: there is nothing to select
	first  int  // the first one to be seen
	moved  bool // somebody has chosen a row: until then the cursor stays at the first one
}

// entries are a row for each value, and for the first one of those that have the same key.
func entries[T any](values []T, key func(T) string) []entry[T] {
	all, there := make([]entry[T], 0, len(values)), map[string]bool{}
	for _, v := range values {
		if key := key(v); !there[key] {
			there[key] = true
			all = append(all, entry[T]{key: key, value: v})
		}
	}
	return all
}

// selected is the row with the cursor.
func (r *rows[T]) selected() (entry[T], bool) {
	if r.cursor < 0 || r.cursor >= len(r.all) || r.all[r.cursor].head {
		return entry[T]{}, false
	}
	return r.all[r.cursor], true
}

// set replaces the rows by those of a newer reading. keep has the row with the cursor stay, even if it is gone.
func (r *rows[T]) set(all []entry[T], keep bool) {
	was, some := r.selected()
	at := r.cursor
	r.all, r.cursor = all, -1
	if some && (r.moved || keep) {
		if r.cursor = r.of(was.key); r.cursor >= 0 {
			return
		}
		if keep {
			was.gone = true
			r.cursor = min(at, len(all))
			r.all = slices.Insert(slices.Clip(all), r.cursor, was)
			return
		}
	}
	r.cursor = min(max(at, 0), len(all)-1)
	if !r.moved {
		r.cursor = min(0, len(all)-1)
	}
	r.settle(1)
}

// of is where the row with a key is, -1 for nowhere.
func (r *rows[T]) of(key string) int {
	return slices.IndexFunc(r.all, func(e entry[T]) bool { return !e.head && e.key == key })
}

// choose puts the cursor on a row, if it is there.
func (r *rows[T]) choose(key string) {
	if i := r.of(key); i >= 0 {
		r.cursor, r.moved = i, true
	}
}

// move moves the cursor by so many rows.
func (r *rows[T]) move(by int) {
	if len(r.all) == 0 {
		return
	}
	r.moved = true
	from := r.cursor
	r.forget()
	if r.cursor != from || from >= len(r.all) { // the row that was gone has left: the next one stands in its place
		if by > 0 {
			by--
		}
		r.cursor = from
	}
	step := 1
	if by < 0 {
		step = -1
	}
	r.cursor = min(max(r.cursor+by, 0), len(r.all)-1)
	r.settle(step)
}

// forget drops the row with the cursor if it is gone.
func (r *rows[T]) forget() {
	if e, ok := r.selected(); ok && e.gone {
		r.all = slices.Delete(slices.Clone(r.all), r.cursor, r.cursor+1)
		r.cursor = -1
	}
}

// settle moves the cursor off a heading.
func (r *rows[T]) settle(step int) {
	for _, step := range []int{step, -step} {
		for i := r.cursor; i >= 0 && i < len(r.all); i += step {
			if !r.all[i].head {
				r.cursor = i
				return
			}
		}
	}
	r.cursor = -1
}

// endless is more than anything has rows.
const endless = 1 << 20

// steps is by how much a key moves, 0 for a key that moves nothing. page is by how much one moves that turns the page.
func steps(key string, page int) int {
	switch key {
	case "up", "k":
		return -1
	case "down", "j":
		return 1
	case "pgup", "ctrl+b":
		return -page
	case "pgdown", "ctrl+f", "space":
		return page
	case "home", "g":
		return -endless
	case "end", "G":
		return endless
	}
	return 0
}

// press moves the cursor by a key, if that is what the key does. page is how many rows are seen.
func (r *rows[T]) press(key string, page int) bool {
	by := steps(key, max(page-1, 1))
	if by != 0 {
		r.move(by)
	}
	return by != 0
}

// draw draws the rows that fit into so many lines, including the row with the cursor. line draws one row.
func (r *rows[T]) draw(height int, line func(e entry[T], selected bool) []string) []string {
	if height < 1 || len(r.all) == 0 {
		return nil
	}
	at := max(r.cursor, 0)
	r.first = min(max(r.first, at-height+1), at)
	if r.first == at && at > 0 && r.all[at-1].head { // its heading must be visible too
		r.first--
	}
	var lines []string
	for i := r.first; i <= at; i++ {
		lines = append(lines, line(r.all[i], i == r.cursor)...)
	}
	for r.first < at && len(lines) > height {
		lines = lines[len(line(r.all[r.first], false)):]
		r.first++
	}
	for i := at + 1; i < len(r.all) && len(lines) < height; i++ {
		lines = append(lines, line(r.all[i], false)...)
	}
	for len(lines) < height && r.first > 0 { // more room than rows behind it
		r.first--
		before := line(r.all[r.first], false)
		if len(before)+len(lines) > height {
			r.first++
			break
		}
		lines = append(append([]string{}, before...), lines...)
	}
	return lines[:min(len(lines), height)]
}

// listing is what screens of rows have alike.
type listing[T any] struct {
	seen
	rows rows[T]
}

func (l *listing[T]) press(m *model, key string) tea.Cmd {
	if l.rows.press(key, m.room()/2) {
		return nil
	}
	return m.elsewhere(key)
}
