package top

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
)

// paper is what is drawn on. Drawn text has no control sequences; a style is put around whole lines at the very
// end.
type paper struct {
	width, height int
	method        ansi.Method // how the terminal measures
	colors        bool
}

// style is how a line looks. No style says anything that the text does not.
type style string

const (
	plain    style = ""
	strong   style = "1"
	faint    style = "2"
	reversed style = "7"
	warning  style = "33"
	alarming style = "31"
)

// in puts a style around a line.
func (p paper) in(s style, line string) string {
	if s == plain || !p.colors && (s == warning || s == alarming) {
		return line
	}
	return "\x1b[" + string(s) + "m" + line + "\x1b[m"
}

// prefix is as much of a text as has at most so many columns, in bytes. The library's own Truncate and Wrap measure by
// another method than they are told where a text would fit by that.
func (p paper) prefix(s string, columns int) int {
	end, width := 0, 0
	for rest := s; rest != ""; {
		cluster, w := ansi.FirstGraphemeCluster(rest, p.method)
		if width += w; width > columns {
			return end
		}
		end, rest = end+len(cluster), rest[len(cluster):]
	}
	return end
}

// cut is a text of at most so many columns; a + stands for what was cut off.
func (p paper) cut(s string, columns int) string {
	switch {
	case columns < 1:
		return ""
	case p.method.StringWidth(s) <= columns:
		return s
	}
	return s[:p.prefix(s, columns-1)] + "+"
}

// fill is a text of exactly so many columns.
func (p paper) fill(s string, columns int) string {
	s = p.cut(s, columns)
	return s + strings.Repeat(" ", max(columns-p.method.StringWidth(s), 0))
}

// wrap breaks a text into lines of at most so many columns.
func (p paper) wrap(s string, columns int) []string {
	if s == "" {
		return nil
	}
	columns = max(columns, 1)
	var lines []string
	for line := range strings.SplitSeq(p.method.Wrap(text.Escaped(s), columns, ""), "\n") {
		for p.method.StringWidth(line) > columns {
			end := max(p.prefix(line, columns), 1)
			lines, line = append(lines, line[:end]), line[end:]
		}
		lines = append(lines, line)
	}
	return lines
}

// few are the first lines of a text; the last one says that there is more.
func (p paper) few(lines []string, most, columns int) []string {
	if len(lines) <= most {
		return lines
	}
	if most < 1 {
		return nil
	}
	lines = append([]string{}, lines[:most]...)
	if columns < leastWidth {
		return lines
	}
	last := lines[most-1]
	if p.method.StringWidth(last) > columns-4 {
		last = last[:p.prefix(last, columns-4)]
		if at := strings.LastIndexByte(last, ' '); at > 0 {
			last = last[:at]
		}
	}
	lines[most-1] = strings.TrimRight(last, " ") + " ..."
	return lines
}

// tall are these lines in just so many.
func tall(lines []string, height int) []string {
	return append(lines, make([]string, max(height-len(lines), 0))...)[:max(height, 0)]
}

// table is a table of rows on a paper.
type table[T any] struct {
	paper   paper
	columns view.Columns[T]
	hidden  []string // heads of columns for which the width is too small
	gap     string
}

// marker stands before the row with the cursor.
const marker = "> "

// airy is from which width on two blanks are between columns.
const airy = 100

// tableOf lays out the columns for a width. from is the least width on which a column is there, by its head;
// math.MaxInt is for none.
func tableOf[T any](p paper, width int, columns view.Columns[T], from map[string]int) table[T] {
	t := table[T]{paper: p, gap: " "}
	if width >= airy {
		t.gap = "  "
	}
	left, shares := width-len(marker)+len(t.gap), 0
	for _, c := range columns {
		if width >= from[c.Head] {
			t.columns = append(t.columns, c)
			left, shares = left-c.Width-len(t.gap), shares+c.Share
		} else if from[c.Head] < math.MaxInt {
			t.hidden = append(t.hidden, c.Head)
		}
	}
	for i := range t.columns {
		if c := &t.columns[i]; c.Share > 0 {
			c.Width = max(left*c.Share/shares, 4)
			left, shares = left-c.Width, shares-c.Share
		}
	}
	return t
}

func (t table[T]) line(mark string, cell func(c view.Column[T]) string) string {
	parts := make([]string, len(t.columns))
	for i, c := range t.columns {
		parts[i] = t.paper.fill(cell(c), c.Width)
		if says := strings.TrimRight(parts[i], " "); c.Right {
			parts[i] = parts[i][len(says):] + says
		}
	}
	return mark + strings.Join(parts, t.gap)
}

// heading is the line of its heads.
func (t table[T]) heading() string {
	return t.paper.in(strong, t.line("  ", func(c view.Column[T]) string { return c.Head }))
}

// hides says which columns a narrow window has no room for, behind a mark; "" for none, and where most windows hide them.
func (t table[T]) hides(mark string) string {
	if t.paper.width >= usualWidth || len(t.hidden) == 0 {
		return ""
	}
	return mark + "hidden: " + strings.Join(t.hidden, ", ")
}

// past are cells of a row that is gone: nothing is left of it, and no process stands behind it.
var past = map[string]string{"DOES": "ended", "STATE": "left", "LEFT": "-", "PROCESS": "-", "LEASE": "-", "AHEAD": "-"}

// row is a row in its style, with a mark before the selected one. instead are cells that say something other than their columns.
func (t table[T]) row(row *T, selected, gone bool, s style, instead map[string]string) []string {
	mark, was := "  ", map[string]string{}
	if gone {
		s, was = faint, past
	}
	over := plain
	if selected {
		mark, over = marker, reversed
	}
	return []string{t.paper.in(over, t.paper.in(s, t.line(mark, func(c view.Column[T]) string {
		return cmp.Or(was[c.Head], instead[c.Head], lively(c.Cell(row)))
	})))}
}

// lively is a cell that changes while somebody looks: its lengths are to the second from ten seconds on.
func lively(c view.Cell) string {
	c = slices.Clone(c)
	for i, p := range c {
		if p.Span >= 10*time.Second && p.Span < time.Minute {
			c[i].Says = p.Span.Truncate(time.Second).String()
		}
	}
	return c.String()
}

// age is how old something is, in short.
func age(d time.Duration) string {
	if d < 100*time.Second {
		return max(d, 0).Truncate(time.Second).String()
	}
	return text.Human(d)
}
