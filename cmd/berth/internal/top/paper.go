package top

import (
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
)

// paper is what is drawn on. What is drawn is text without anything that commands a terminal; a style is put around
// whole lines at the very end.
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

// column is one of a table.
type column struct {
	head  string
	width int  // 0: it shares what is left with the others of 0
	share int  // of those, how much it takes of it
	right bool // numbers
	from  int  // the least width of the paper on which it is there
}

// table lays out the columns of a table for a width.
type table struct {
	paper  paper
	shown  []int
	widths []int
	right  []bool
	gap    string
}

// marker stands before the row with the cursor.
const marker = "> "

// airy is from which width on two blanks are between columns.
const airy = 100

func (p paper) table(width int, columns []column) table {
	t := table{paper: p, gap: " "}
	if width >= airy {
		t.gap = "  "
	}
	left, shares := width-len(marker), 0
	for i, c := range columns {
		if width < c.from {
			continue
		}
		t.shown, t.widths = append(t.shown, i), append(t.widths, c.width)
		t.right = append(t.right, c.right)
		left, shares = left-c.width-len(t.gap), shares+c.share
	}
	left += len(t.gap)
	for n, i := range t.shown {
		if share := columns[i].share; share > 0 {
			t.widths[n] = max(left*share/shares, 4)
			left, shares = left-t.widths[n], shares-share
		}
	}
	return t
}

// line is a row of the table; cells has one for each column, also for those that are not shown.
func (t table) line(mark string, cells []string) string {
	parts := make([]string, len(t.shown))
	for n, i := range t.shown {
		switch cell := cells[i]; {
		case t.right[n]:
			cell = t.paper.cut(cell, t.widths[n])
			parts[n] = strings.Repeat(" ", max(t.widths[n]-t.paper.method.StringWidth(cell), 0)) + cell
		default:
			parts[n] = t.paper.fill(cell, t.widths[n])
		}
	}
	return mark + strings.Join(parts, t.gap)
}

// heading is the first line of the table.
func (t table) heading(columns []column) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.head
	}
	return t.paper.in(strong, t.line("  ", cells))
}

// row is a row in its style, with a mark before the selected one.
func (t table) row(cells []string, selected bool, s style) []string {
	if selected {
		return []string{t.paper.in(reversed, t.line(marker, cells))}
	}
	return []string{t.paper.in(s, t.line("  ", cells))}
}

// age is how old something is, in short.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 100*time.Second:
		return d.Truncate(time.Second).String()
	case d == berth.Forever:
		return "forever"
	}
	return text.Human(d)
}

// span is a duration for a cell: to the second from ten seconds on.
func span(d time.Duration) string {
	if d >= 10*time.Second && d < time.Minute {
		return d.Truncate(time.Second).String()
	}
	return text.Human(d)
}

// moment is a time of the server, with the date if that is not of its day.
func moment(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("Jan _2 15:04")
}
