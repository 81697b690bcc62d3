package top

import (
	"fmt"
	"slices"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
)

// nodeScreen shows the claims of a node, of all names.
type nodeScreen struct {
	listing[view.Claim]
	node   string
	claims watch.Claims
}

func (s *nodeScreen) subject() subject { return subject{topic: ofNode, node: s.node} }

func (s *nodeScreen) read(_ *model, r reading) {
	s.claims, _ = r.value.(watch.Claims)
	sorted := slices.Clone(s.claims.Items)
	slices.SortStableFunc(sorted, view.Oldest)
	all := entries(view.Listed(sorted), func(c view.Claim) string { return string(c.Kind) + " " + c.ID() })
	s.rows.set(all, true) // one that was granted meanwhile was there twice
}

func (s *nodeScreen) target() target {
	if e, ok := s.rows.selected(); ok {
		return targetOf(e.value.Claim, e.gone)
	}
	return target{node: s.node}
}

func (s *nodeScreen) title(*model) string { return "Claims of node " + text.Plain(s.node) }

func (s *nodeScreen) keys(*model) string {
	return "enter opens  r release  w ask back  d drain  D end drain  c cycles  esc back  ? help"
}

func (s *nodeScreen) draw(m *model, height int) []string {
	p := m.paper
	says := fmt.Sprintf("%s, %s ago", view.Count(len(s.claims.Items), "claim"), age(m.now.Sub(s.at)))
	if s.claims.Partial {
		says += "; there is more that was not read"
	}
	if len(s.claims.Problems) > 0 {
		says += ": " + words(s.claims.Problems[0])
	}
	columns := view.Claims.Pick("KIND", "NAME", "DOES", "FOR", "LEFT", "OWNER", "LABEL", "CLAIM")
	columns[2].Width = len("holds, condemned") // no column says more of the process
	t := tableOf(p, p.width, columns, map[string]int{"FOR": 48, "LEFT": 56, "OWNER": 64, "LABEL": 72, "CLAIM": 120})
	lines := append(p.few(p.wrap(says+t.hides("; "), p.width), 2, p.width), t.heading())
	return append(lines, s.rows.draw(height-len(lines), func(e entry[view.Claim], selected bool) []string {
		return t.row(&e.value, selected, e.gone, suspicious[e.value.Suspicious()], nil)
	})...)
}
