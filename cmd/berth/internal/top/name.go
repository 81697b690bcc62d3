package top

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// nameScreen shows a name: why it stands still, who holds and who waits.
type nameScreen struct {
	seen
	kind  keyspace.Kind
	name  string
	claim string // that somebody came from, "" for none
	look  inspect.Look
	known bool // it was read
	rows  rows[item]
	full  pageOf // of the row or of the name: its whole text is shown
	down  int    // how far that is scrolled
}

// pageOf is whose whole text is shown.
type pageOf int

const (
	ofNobody pageOf = iota
	ofRow
	ofAll
)

func newName(kind keyspace.Kind, name, claim string) *nameScreen {
	return &nameScreen{kind: kind, name: name, claim: claim}
}

func (s *nameScreen) subject() subject {
	return subject{topic: ofName, kind: s.kind, name: s.name, claim: s.claim}
}

func (s *nameScreen) read(_ *model, r reading) {
	n, ok := r.value.(watch.Name)
	if !ok {
		return
	}
	first := !s.known
	s.look, s.known = n.Look, true
	s.rows.set(items(&s.look, s.claim), !first)
	if first && s.claim != "" {
		s.rows.choose(keyOfClaim(s.claim))
	}
}

func (s *nameScreen) target() target {
	t := target{kind: s.kind, name: s.name, capacity: s.look.Capacity}
	e, ok := s.rows.selected()
	if !ok {
		return t
	}
	t.gone = e.gone
	switch i := e.value; {
	case i.hold != nil:
		t.claim, t.node, t.resource = i.hold.ID, i.hold.Node, i.hold.Resource
	case i.wait != nil:
		t.claim, t.node = i.wait.ID, i.wait.Node
	case i.resource != nil:
		t.resource = i.resource.Key
		if len(i.resource.Claims) == 1 {
			t.claim = i.resource.Claims[0]
			t.node = s.nodeOf(t.claim)
		}
	case i.asked != nil:
		t.claim = i.asked.Claim
	}
	return t
}

// nodeOf is the node of a claim that holds, "" where its record was not read.
func (s *nameScreen) nodeOf(claim string) string {
	for i := range s.look.Holds {
		if s.look.Holds[i].ID == claim {
			return s.look.Holds[i].Node
		}
	}
	if asked := s.look.Asked[claim]; asked.Hold != nil {
		return asked.Hold.Node
	}
	return ""
}

func (s *nameScreen) press(m *model, key string) tea.Cmd {
	if s.full != ofNobody {
		s.scroll(key, m.room())
		return nil
	}
	if s.rows.press(key, m.room()/2) {
		return nil
	}
	switch key {
	case "esc", "backspace", "left", "h":
		return m.back()
	case "enter", "right", "l":
		if _, ok := s.rows.selected(); ok {
			s.full, s.down = ofRow, 0
		}
	case "x":
		s.full, s.down = ofAll, 0
	case "n":
		t := s.target()
		if t.node != "" {
			return m.open(&nodeScreen{node: t.node})
		}
		if t.claim != "" {
			return m.say(true, errUnknownNode.Error())
		}
		return m.say(true, "select a claim: n shows the claims of its node")
	case "c":
		return m.open(&cycleScreen{})
	}
	return nil
}

// scroll moves the whole text.
func (s *nameScreen) scroll(key string, page int) {
	switch key {
	case "up", "k":
		s.down--
	case "down", "j":
		s.down++
	case "pgup", "ctrl+b":
		s.down -= page
	case "pgdown", "ctrl+f", "space":
		s.down += page
	case "home", "g":
		s.down = 0
	case "end", "G":
		s.down = 1 << 30
	case "esc", "backspace", "left", "h", "enter", "x":
		s.full = ofNobody
	}
}

func (s *nameScreen) title(*model) string { return act.Nouns[s.kind] + " " + text.Plain(s.name) }

func (s *nameScreen) keys(*model) string {
	if s.full != ofNobody {
		return "up down scroll   esc back   ? help"
	}
	keys := "r release  p pause  u unpause  "
	switch s.kind {
	case keyspace.Sem:
		keys += "z resize  "
	case keyspace.Pool:
		keys += "t rest  "
	}
	return keys + "d drain  n node  esc back  ? help"
}

// counts are those of the name, in a line.
func (s *nameScreen) counts() string {
	l := &s.look
	if l.Err != nil {
		return "this name cannot be read: " + words(l.Err)
	}
	says := fmt.Sprintf("%s: %d of %d held, %d waiting", view.NameState(&l.Name), l.Held, l.Capacity, l.Waiting)
	if d := waited(l.Name); d > 0 {
		says += ", the oldest for " + text.Human(d)
	}
	if p := l.Pool; p != nil {
		says += fmt.Sprintf("; %d free, %d at rest, %d leaving", p.Free, p.Resting, p.Leaving)
	}
	if p := l.Pause; p != nil {
		says += "; paused for " + text.Human(p.Left) + " more"
		if p.Reason != "" {
			says += ": " + text.Excerpt(p.Reason)
		}
	}
	if len(l.Damaged) > 0 {
		says += fmt.Sprintf("; %d damaged", len(l.Damaged))
	}
	if l.Replica {
		says += "; from a replica"
	}
	return says
}

// beside is from which width on the explanation of a row stands beside the rows.
const beside = 150

func (s *nameScreen) draw(m *model, height int) []string {
	p := m.paper
	if !s.known {
		return p.wrap("Reading ...", p.width)
	}
	if s.full != ofNobody {
		return s.whole(p, height)
	}
	top := p.few(p.wrap(s.counts()+"; "+age(m.now.Sub(s.at))+" ago", p.width), 2, p.width)
	top = append(top, p.few(p.wrap(s.look.Explanation.String(), p.width), max(min(height/5, 5), 1), p.width)...)
	room := height - len(top)
	if p.width >= beside {
		return append(top, s.twoColumns(p, room)...)
	}
	under := s.detail(p, p.width, max(min(room/3, 6), 0))
	body := s.drawRows(p, p.width, room-len(under))
	for len(body) < room-len(under) {
		body = append(body, "")
	}
	return append(append(top, body...), under...)
}

// twoColumns has the rows, and beside them the explanation of the selected one.
func (s *nameScreen) twoColumns(p paper, height int) []string {
	left := p.width * 3 / 5
	body, side := s.drawRows(p, left, height), s.detail(p, p.width-left-3, height)
	lines := make([]string, 0, height)
	for i := range height {
		parts := [2]string{}
		for n, part := range [][]string{body, side} {
			if i < len(part) {
				parts[n] = part[i]
			}
		}
		lines = append(lines, p.fill(parts[0], left)+" | "+parts[1])
	}
	return lines
}

func (s *nameScreen) drawRows(p paper, width, height int) []string {
	columns := itemColumns
	if s.kind != keyspace.Pool {
		columns = without(columns, "RESOURCE")
	}
	if s.kind != keyspace.Sem {
		columns = without(columns, "WEIGHT")
	}
	t := p.table(width, columns)
	lines := []string{t.heading(columns)}
	return append(lines, s.rows.draw(height-len(lines), func(e entry[item], selected bool) []string {
		if e.head {
			return []string{p.in(strong, p.cut(e.value.heading, width))}
		}
		cells, look := e.value.cells(), plain
		switch {
		case e.gone:
			cells, look = e.value.goneCells(), faint
		case e.value.hold != nil && (e.value.hold.Process == inspect.Overdue || e.value.hold.Process == inspect.Condemned):
			look = warning
		}
		return t.row(cells, selected, look)
	})...)
}

// without hides a column.
func without(columns []column, head string) []column {
	columns = append([]column{}, columns...)
	for i := range columns {
		if columns[i].head == head {
			columns[i].from = 1 << 30
		}
	}
	return columns
}

// detail explains the selected row in so many lines.
func (s *nameScreen) detail(p paper, width, most int) []string {
	e, ok := s.rows.selected()
	if !ok || most < 2 {
		return nil
	}
	says := e.value.says(s.look.At)
	if e.gone {
		says = "This is not there any more: it has ended, or nobody read it again. Nothing is done to it."
	}
	lines := p.few(p.wrap(says, width), most-1, width)
	return append([]string{p.in(strong, p.fill("About the selected one:", width))}, lines...)
}

// whole is the whole text of the selected row, or of the name.
func (s *nameScreen) whole(p paper, height int) []string {
	var lines []string
	if e, ok := s.rows.selected(); s.full == ofRow && ok {
		says := e.value.says(s.look.At)
		switch {
		case e.gone && e.value.asked != nil: // its explanation says so
			says += " It is not there any more."
		case e.gone: // what was read last is true no more
			says = "It is not there any more."
		}
		lines = append(append(lines, p.wrap(says, p.width)...), "")
		for _, field := range e.value.fields(e.gone) {
			lines = append(lines, p.wrap(field, p.width)...)
		}
	} else {
		lines = append(lines, p.wrap(s.counts(), p.width)...)
		lines = append(append(lines, ""), p.wrap(s.look.Explanation.String(), p.width)...)
		for _, what := range s.look.Damaged {
			lines = append(lines, p.wrap("damaged: "+text.Plain(what), p.width)...)
		}
	}
	s.down = min(max(s.down, 0), max(len(lines)-height, 0))
	return lines[s.down:min(s.down+height, len(lines))]
}
