package top

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
)

// nodeScreen shows the claims of a node, of all names.
type nodeScreen struct {
	listing[view.Claim]
	node string
	got  watch.Node
}

func (s *nodeScreen) subject() subject { return subject{topic: ofNode, node: s.node} }

func (s *nodeScreen) read(_ *model, r reading) {
	s.got, _ = r.value.(watch.Node)
	sorted := slices.Clone(s.got.Claims.Items)
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
	n, look, claims := s.got.Node, plain, s.got.Claims
	says := fmt.Sprintf("%s, %s ago", view.Count(len(claims.Items), "claim"), age(m.now.Sub(s.at)))
	if row := view.NodesAt(claims.At, n); n.State != "" {
		says = view.Nodes.Pick("STATE")[0].Cell(&row[0]).String() + "; " + says
		if !n.Heard.At.IsZero() {
			says = "Heard of " + age(claims.At.Add(m.now.Sub(s.at)).Sub(n.Heard.At)) + " ago, " + says
		}
		look = map[bool]style{true: alarming, false: plain}[row[0].Look() == view.Bad]
	}
	if claims.Partial {
		says += "; there is more that was not read"
	}
	if len(claims.Problems) > 0 {
		says += ": " + words(claims.Problems[0])
	}
	columns := view.Claims.Pick("KIND", "NAME", "DOES", "FOR", "LEFT", "OWNER", "LABEL", "CLAIM")
	columns[2].Width = len("holds, condemned") // no column says more of the process
	t := tableOf(p, p.width, columns, map[string]int{"FOR": 48, "LEFT": 56, "OWNER": 64, "LABEL": 72, "CLAIM": 120})
	lines := append(p.head(look, says+t.hides("; ")), t.heading())
	return append(lines, s.rows.draw(height-len(lines), func(e entry[view.Claim], selected bool) []string {
		return t.row(&e.value, selected, e.gone, suspicious[e.value.Suspicious()], nil)
	})...)
}

// head is what stands above a table, in two lines at the most.
func (p paper) head(s style, says string) []string {
	lines := p.few(p.wrap(says, p.width), 2, p.width)
	for i := range lines {
		lines[i] = p.in(s, lines[i])
	}
	return lines
}

// nodesScreen shows all nodes.
type nodesScreen struct {
	listing[view.Node]
	got inspect.Page[inspect.Node]
}

func (s *nodesScreen) subject() subject { return subject{topic: nodes} }

func (s *nodesScreen) read(_ *model, r reading) {
	s.got, _ = r.value.(inspect.Page[inspect.Node])
	s.rows.set(entries(view.NodesAt(s.got.At, s.got.Items...), func(n view.Node) string { return n.ID }), true)
}

func (s *nodesScreen) target() target {
	e, _ := s.rows.selected()
	return target{node: e.value.ID, gone: e.gone}
}

func (s *nodesScreen) press(m *model, key string) tea.Cmd {
	if key == "enter" || key == "right" || key == "l" {
		key = "n"
	}
	return s.listing.press(m, key)
}

func (s *nodesScreen) title(*model) string { return "Nodes: what each holds and waits for" }

func (s *nodesScreen) keys(*model) string {
	return "enter opens   d drain   D end drain   c cycles   esc back   ? help"
}

func (s *nodesScreen) draw(m *model, height int) []string {
	p, dead := m.paper, 0
	for i := range s.got.Items {
		if n := &s.got.Items[i]; n.Dead() && len(n.Holds)+len(n.Waits) > 0 {
			dead++
		}
	}
	says := fmt.Sprintf("%s, %d dead that have left something, %s ago", view.Count(len(s.got.Items), "node"), dead, age(m.now.Sub(s.at)))
	if s.got.Partial {
		says += "; there is more that was not read"
	}
	if len(s.got.Problems) > 0 {
		says += ": " + words(s.got.Problems[0])
	}
	t := tableOf(p, p.width, view.Nodes.Pick("STATE", "HEARD", "HOLDS", "WAITS FOR", "LABEL", "NODE"),
		map[string]int{"HEARD": 48, "WAITS FOR": 60, "LABEL": 70, "NODE": 110})
	lines := append(p.head(map[bool]style{true: alarming, false: plain}[dead > 0], says+t.hides("; ")), t.heading())
	return append(lines, s.rows.draw(height-len(lines), func(e entry[view.Node], selected bool) []string {
		return t.row(&e.value, selected, e.gone, suspicious[e.value.Look() == view.Bad], nil)
	})...)
}
