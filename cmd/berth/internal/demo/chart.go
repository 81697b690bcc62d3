package demo

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The signs of the picture.
const (
	signWaits  = "░"
	signInside = "█"
	signKilled = "✗"
	signLeased = "·"
	signRests  = "~" // what it had of a pool
	signNot    = " "
)

const (
	labelWidth = 12 // "worker 8    "
	stateWidth = 10 // "  finished"
)

// chart draws the story until now as one row for each worker, time from left to
// right, with a scale below: that of a story as long as expected, until it turns out to be
// longer.
func chart(s *story, now time.Duration, width int, paint painter) []string {
	columns := max(20, width-labelWidth-stateWidth)
	cell := max(now, s.length) / time.Duration(columns)
	cell = (cell/(10*time.Millisecond) + 1) * 10 * time.Millisecond
	lines := make([]string, 0, len(s.turns)+2)
	for _, t := range s.turns {
		lines = append(lines, row(t, now, cell, columns, paint))
	}
	lines = append(lines, scale(cell, columns), "")
	return append(lines, legend(s.legend(), width, paint)...)
}

// entry says what a sign means.
type entry struct{ sign, text string }

// legend are the signs of the picture.
func (s *story) legend() []entry {
	after := []entry{{signKilled, "killed"}, {signLeased, "its lease runs out"}}
	if signs := s.signs(); signs != "" {
		return append([]entry{{signWaits, "waits"}, {signs, "has that proxy"}, {signRests, "it rests"}}, after...)
	}
	return append([]entry{{signWaits, "waits in line"}, {signInside, "inside"}}, after...)
}

// legend has as many entries in a line as there is room for: a line that is too
// long would scroll the picture.
func legend(entries []entry, width int, paint painter) []string {
	const apart = 3
	var lines []string
	line, used := "", 0
	for _, e := range entries {
		size := utf8.RuneCountInString(e.sign + " " + e.text)
		if used > 0 && used+apart+size > width {
			lines, line, used = append(lines, line), "", 0
		}
		if used > 0 {
			line, used = line+strings.Repeat(" ", apart), used+apart
		}
		line, used = line+paint(shade(e.sign), e.sign)+" "+e.text, used+size
	}
	return append(lines, line)
}

// row is the picture of one turn: for each cell what the worker did at its
// middle, with the moment of a kill marked.
func row(t *turn, now, cell time.Duration, columns int, paint painter) string {
	var b strings.Builder
	label := fmt.Sprintf("worker %d", t.worker)
	if t.customer != "" {
		label = fmt.Sprintf("%d for %s", t.worker, t.customer)
	}
	fmt.Fprintf(&b, "%-*s", labelWidth, label)
	last, run := "", 0
	flush := func() {
		b.WriteString(paint(shade(last), strings.Repeat(last, run)))
		run = 0
	}
	for column := range columns {
		from := time.Duration(column) * cell
		sign := signNot
		switch {
		case from > now:
		case t.killed != nil && from <= *t.killed && *t.killed < from+cell:
			sign = signKilled
		default:
			sign = t.sign(min(now, from+cell/2))
		}
		if sign != last {
			flush()
			last = sign
		}
		run++
	}
	flush()
	return strings.TrimRight(b.String()+"  "+t.state(), " ")
}

// sign is what a worker did at a moment.
func (t *turn) sign(at time.Duration) string {
	passed := func(m moment) bool { return m != nil && *m <= at }
	switch {
	case passed(t.killed) && !passed(t.over):
		return signLeased
	case t.rest > 0 && passed(t.leaving) && at < *t.leaving+t.rest:
		return signRests
	case passed(t.left()):
		return signNot
	case passed(t.granted):
		return t.inside()
	case passed(t.queued):
		return signWaits
	default:
		return signNot
	}
}

// state is what a worker does now.
func (t *turn) state() string {
	switch {
	case t.killed != nil:
		return "killed"
	case t.leaving != nil:
		return "finished"
	case t.granted != nil:
		return "inside"
	case t.queued != nil:
		return "waits"
	default:
		return ""
	}
}

// scale has a mark for each second, or for as many as there is room for.
func scale(cell time.Duration, columns int) string {
	const apart = 6
	step := time.Second
	for step < apart*cell {
		step += time.Second
	}
	marks := []byte(strings.Repeat(" ", columns))
	for at := time.Duration(0); ; at += step {
		text := fmt.Sprintf("|%ds", at/time.Second)
		column := int(at / cell)
		if column+len(text) > columns {
			return strings.Repeat(" ", labelWidth) + strings.TrimRight(string(marks), " ")
		}
		copy(marks[column:], text)
	}
}

// The colors, as ANSI terminals know them.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func shade(sign string) string {
	switch sign {
	case signWaits, signRests:
		return yellow
	case signKilled, signLeased:
		return red
	case "", signNot:
		return ""
	default: // inside, whatever the act has there
		return green
	}
}

// painter colors a text, or does not.
type painter func(color, text string) string

func paint(wanted bool) painter {
	return func(color, text string) string {
		if !wanted || color == "" || strings.TrimSpace(text) == "" {
			return text
		}
		return "\x1b[" + color + "m" + text + "\x1b[0m"
	}
}
