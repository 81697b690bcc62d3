package top

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
)

// nodeScreen shows the claims of a node, of all names.
type nodeScreen struct {
	seen
	node   string
	claims watch.Claims
	known  bool
	rows   rows[inspect.Claim]
}

func (s *nodeScreen) subject() subject { return subject{topic: ofNode, node: s.node} }

func (s *nodeScreen) read(_ *model, r reading) {
	claims, ok := r.value.(watch.Claims)
	if !ok {
		return
	}
	s.claims = claims
	sorted := slices.Clone(claims.Items)
	slices.SortStableFunc(sorted, func(a, b inspect.Claim) int { return a.Since().Compare(b.Since()) })
	all, there := make([]entry[inspect.Claim], 0, len(sorted)), map[string]bool{}
	for _, c := range sorted {
		if key := string(c.Kind) + " " + c.ID(); !there[key] { // one that was granted meanwhile is there twice
			there[key] = true
			all = append(all, entry[inspect.Claim]{key: key, value: c})
		}
	}
	s.rows.set(all, s.known)
	s.known = true
}

func (s *nodeScreen) target() target {
	if e, ok := s.rows.selected(); ok {
		return targetOf(e.value, e.gone)
	}
	return target{node: s.node}
}

func (s *nodeScreen) press(m *model, key string) tea.Cmd {
	if s.rows.press(key, m.room()/2) {
		return nil
	}
	switch key {
	case "esc", "backspace", "left", "h":
		return m.back()
	case "enter", "right", "l":
		if e, ok := s.rows.selected(); ok {
			return m.open(newName(e.value.Kind, e.value.Name, e.value.ID()))
		}
	case "c":
		return m.open(&cycleScreen{})
	}
	return nil
}

func (s *nodeScreen) title(*model) string { return "Claims of node " + text.Plain(s.node) }

func (s *nodeScreen) keys(*model) string {
	return "enter opens   r release   d drain   D end drain   c cycles   esc back   ? help"
}

var nodeColumns = []column{
	{head: "KIND", width: 4},
	{head: "NAME", share: 3},
	{head: "DOES", width: 6},
	{head: "FOR", width: 6, right: true},
	{head: "LEFT", width: 7, right: true},
	{head: "OWNER", share: 2, from: 56},
	{head: "LABEL", share: 3, from: 64},
	{head: "CLAIM", share: 4, from: 120},
}

func (s *nodeScreen) draw(m *model, height int) []string {
	p := m.paper
	if !s.known {
		return p.wrap("Reading ...", p.width)
	}
	says := fmt.Sprintf("%s, %s ago", count(len(s.claims.Items), "claim"), age(m.now.Sub(s.at)))
	if s.claims.Partial {
		says += "; there is more that was not read"
	}
	if len(s.claims.Problems) > 0 {
		says += ": " + words(s.claims.Problems[0])
	}
	t := p.table(p.width, nodeColumns)
	lines := []string{p.cut(says, p.width), t.heading(nodeColumns)}
	return append(lines, s.rows.draw(height-len(lines), func(e entry[inspect.Claim], selected bool) []string {
		cells, look := claimCells(e.value), plain
		if e.gone {
			cells[2], cells[4], look = "ended", "-", faint // nothing is left of it
		}
		return t.row(cells, selected, look)
	})...)
}

func claimCells(c inspect.Claim) []string {
	does := "waits"
	switch {
	case c.Hold != nil:
		does = "holds"
	case c.Paused > 0:
		does = "paused"
	}
	return []string{
		string(c.Kind), text.Plain(c.Name), does, span(c.For()), span(c.Left()), text.Plain(c.Owner()), text.Plain(c.Label()), text.Plain(c.ID()),
	}
}
