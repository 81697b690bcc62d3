package view

import (
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
)

// Drain is a drain as a row.
type Drain struct {
	berth.Drain
	// Holds and Waits are what is left of its processes: what they had before they heard of it.
	Holds int `json:"holds"`
	Waits int `json:"waits"`

	at time.Time
}

// DrainsAt is a row for each of the drains, at a moment by the server's clock.
func DrainsAt(all []berth.Drain, at time.Time) []Drain {
	return rows(all, func(d *berth.Drain) Drain { return Drain{Drain: *d, at: at} })
}

// Count counts a claim if the drain waits for it: it is of its processes, and was there before they heard. What came later is of
// processes that began later, which do not drain.
func (d *Drain) Count(c inspect.Claim) {
	switch {
	case c.Since().After(d.Since.Add(notice.Heard)), d.Node != "" && d.Node != c.Node(), d.Node == "" && !text.Fits(d.Label, c.Label()):
	case c.Hold != nil:
		d.Holds++
	default:
		d.Waits++
	}
}

// Drains are the columns of a drain.
var Drains = Columns[Drain]{
	{Head: "DRAINED", Cell: func(d *Drain) Cell { return says(text.Escaped(d.String())) }},
	{Head: "SINCE", Right: true, Cell: func(d *Drain) Cell { return lasted(d.at.Sub(d.Since), d.Since) }},
	{Head: "LEFT", Right: true, Cell: func(d *Drain) Cell {
		if d.Left == 0 {
			return says("no end")
		}
		return left(d.Left)
	}},
	{Head: "HOLDS", Right: true, Cell: func(d *Drain) Cell { return number(d.Holds) }},
	{Head: "WAITS", Right: true, Cell: func(d *Drain) Cell { return number(d.Waits) }},
	{Head: "REASON", Cell: func(d *Drain) Cell {
		if d.Reason == "" {
			return nil
		}
		return says(text.Excerpt(d.Reason))
	}},
}

// DrainSays tells of a drain in a line, at a moment by the server's clock.
func DrainSays(d *berth.Drain, at time.Time) string {
	says := "drain of " + text.Escaped(d.String()) + " since " + text.Human(at.Sub(d.Since))
	if d.Left > 0 {
		says += ", for " + text.Human(d.Left) + " more"
	}
	if d.Reason != "" {
		says += ": " + text.Excerpt(d.Reason)
	}
	return says
}

// Undrain is the command that ends a drain, "" where no argument can say it; where says which server and namespace.
func Undrain(t berth.DrainTarget, where ...string) string {
	flag, of := "--label", t.Label
	if t.Node != "" {
		flag, of = "--node", t.Node
	}
	if strings.Contains(of, "\x00") {
		return ""
	}
	return text.Shell(append(append([]string{"berth", "drain"}, where...), flag, of, "--stop")...)
}
