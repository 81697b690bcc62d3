package app

import (
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
)

// PauseText says in a line of a name that it is paused; "" for one that is not.
func PauseText(p *berth.Pause) string {
	if p == nil {
		return ""
	}
	says := "paused for " + text.Human(p.Left) + " more"
	if p.Reason != "" {
		says += ": " + text.Plain(p.Reason)
	}
	return says + "\n"
}

// Unused says that nothing is stored of a name but, at most, that it was forgotten: no operator has paused it alone.
func Unused(n berth.Name) bool { return n.Pause == nil || n.Revision == 0 }

// PausedColumn adds a column to a table of names if one of them is paused.
func PausedColumn(all []berth.Name, heading []string, rows [][]string) ([]string, [][]string) {
	if !slices.ContainsFunc(all, func(n berth.Name) bool { return n.Pause != nil }) {
		return heading, rows
	}
	for i, n := range all {
		left := "-"
		if n.Pause != nil {
			left = text.Human(n.Pause.Left)
		}
		rows[i] = append(rows[i], left)
	}
	return append(heading, "PAUSED"), rows
}
