package top

import (
	"fmt"
	"math"
	"slices"

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
	listing[item]
	kind  keyspace.Kind
	name  string
	claim string // that somebody came from, "" for none
	look  inspect.Look
	cycle *inspect.Cycle // that the name is in, nil for none
	full  pageOf         // of the row or of the name: its whole text is shown
	down  int            // how far that is scrolled
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
	n, _ := r.value.(watch.Name)
	first := len(s.rows.all) == 0
	s.look, s.cycle = n.Look, n.Cycle
	s.rows.set(items(&s.look, s.claim), true)
	if first && s.claim != "" {
		s.rows.choose(keyOfClaim(s.claim))
	}
}

func (s *nameScreen) target() target {
	t := target{kind: s.kind, name: s.name}
	e, _ := s.rows.selected()
	switch i := e.value; {
	case i.asked != "":
		t.claim = i.asked
	case i.claim != nil:
		t = targetOf(i.claim.Claim, e.gone)
	case i.resource != nil:
		t.resource = i.resource.Key
		if len(i.resource.Holders) == 1 {
			t.claim, t.node = i.resource.Holders[0].ID(), i.resource.Holders[0].Node()
		}
	}
	t.capacity, t.gone = s.look.Capacity, e.gone
	return t
}

func (s *nameScreen) press(m *model, key string) tea.Cmd {
	if s.full != ofNobody {
		s.down += steps(key, m.room())
		if slices.Contains([]string{"esc", "backspace", "left", "h", "enter", "x"}, key) {
			s.full = ofNobody
		}
		return nil
	}
	switch key {
	case "enter", "right", "l":
		if _, ok := s.rows.selected(); ok {
			s.full, s.down = ofRow, 0
		}
	case "x":
		s.full, s.down = ofAll, 0
	default:
		return s.listing.press(m, key)
	}
	return nil
}

func (s *nameScreen) title(*model) string { return act.Nouns[s.kind] + " " + text.Plain(s.name) }

func (s *nameScreen) keys(*model) string {
	if s.full != ofNobody {
		return "up down scroll   esc back   ? help"
	}
	keys := "r release  w ask back  p pause  "
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
	says := fmt.Sprintf("%s: %d of %d held, %d waiting", view.NameState(&l.Name), l.Held, l.Capacity, l.Live())
	if d := view.Waited(&l.Name); d > 0 {
		says += ", the longest for " + text.Human(d)
	}
	if p := l.Pool; p != nil {
		says += fmt.Sprintf("; %d free, %d resting, %d leaving", p.Free, p.Resting, p.Leaving)
	}
	if l.Pause != nil {
		says += "; " + view.Paused(l.Pause)
	}
	if len(l.Damaged) > 0 {
		says += fmt.Sprintf("; %d damaged", len(l.Damaged))
	}
	if l.Replica {
		says += "; from a replica"
	}
	return says
}

// told returns the explanations of the name: a cycle with the name, why the name stands still, and the commands that mend
// it, each on its own line if that is not too long.
func (s *nameScreen) told(m *model) (says []string) {
	add := func(c view.Mending) {
		if line := c.String(); m.paper.method.StringWidth(line) <= m.paper.width {
			says = append(says, line)
			return
		}
		says = append(says, c.Says(), c.Command)
	}
	if s.cycle != nil {
		says = []string{cycleText(s.cycle, s.look.At.Add(m.now.Sub(s.at)))}
		for _, c := range s.cycle.Release {
			add(view.Mending{Command: view.Command(view.Releasing(c), m.where...)})
		}
	}
	says = append(says, s.look.Explanation.String())
	for _, c := range view.Mends(s.look.Explanation.Mend, m.where...) {
		add(c)
	}
	return says
}

// beside is from which width on the explanation of a row stands beside the rows.
const beside = 150

func (s *nameScreen) draw(m *model, height int) []string {
	p := m.paper
	if s.full != ofNobody {
		return s.whole(m, height)
	}
	top := p.few(p.wrap(s.counts()+"; "+age(m.now.Sub(s.at))+" ago", p.width), 2, p.width)
	if hidden := s.table(p, p.width).hides(""); hidden != "" {
		top = append(top, p.in(faint, p.cut(hidden+"; enter shows them", p.width)))
	}
	var told []string
	for _, says := range s.told(m) {
		told = append(told, p.few(p.wrap(says, p.width), max(min(height/5, 5), 1), p.width)...)
	}
	top = append(top, p.few(told, max(height*2/5, 1), p.width)...)
	room := height - len(top)
	if p.width >= beside {
		return append(top, s.twoColumns(p, room)...)
	}
	under := s.detail(p, p.width, max(min(room/3, 6), 0))
	body := s.drawRows(p, p.width, room-len(under))
	return append(append(top, tall(body, room-len(under))...), under...)
}

// twoColumns has the rows, and beside them the explanation of the selected one.
func (s *nameScreen) twoColumns(p paper, height int) []string {
	left := p.width * 3 / 5
	lines, side := tall(s.drawRows(p, left, height), height), tall(s.detail(p, p.width-left-3, height), height)
	for i := range lines {
		lines[i] = p.fill(lines[i], left) + " | " + side[i]
	}
	return lines
}

// table is that of the claims.
func (s *nameScreen) table(p paper, width int) table[view.Claim] {
	from := map[string]int{"RESOURCE": math.MaxInt, "OWNER": 56, "PROCESS": 72, "WEIGHT": math.MaxInt, "CLAIM": 100, "FENCE": 150}
	switch s.kind {
	case keyspace.Pool:
		from["RESOURCE"] = 48
	case keyspace.Sem:
		from["WEIGHT"] = 100
	}
	columns := view.Claims.Pick("DOES", "FOR", "LEFT", "LABEL", "OWNER", "RESOURCE", "WEIGHT", "PROCESS", "FENCE", "CLAIM")
	return tableOf(p, width, columns, from)
}

func (s *nameScreen) drawRows(p paper, width, height int) []string {
	claims := s.table(p, width)
	resources := tableOf(p, width, view.ResourceColumns.Pick("RESOURCE", "STATE", "LEFT", "HELD BY", "REASON"),
		map[string]int{"LEFT": 48, "HELD BY": 64, "REASON": 80})
	lines := []string{claims.heading()}
	return append(lines, s.rows.draw(height-len(lines), func(e entry[item], selected bool) []string {
		switch i := e.value; {
		case i.heading == ofResources:
			return []string{p.in(strong, p.cut(i.heading, width)), resources.heading()}
		case e.head:
			return []string{p.in(strong, p.cut(i.heading, width))}
		case i.resource != nil:
			return resources.row(i.resource, selected, e.gone, plain, nil)
		case i.asked != "":
			id := text.Plain(i.asked)
			return claims.row(i.claim, selected, e.gone, plain, map[string]string{"LABEL": id, "LEFT": "-", "CLAIM": id})
		default:
			return claims.row(i.claim, selected, e.gone, suspicious[i.claim.Suspicious()], nil)
		}
	})...)
}

// suspicious is the style of a claim, by whether it is.
var suspicious = map[bool]style{true: warning}

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
func (s *nameScreen) whole(m *model, height int) []string {
	var lines []string
	p := m.paper
	if e, ok := s.rows.selected(); s.full == ofRow && ok {
		says := e.value.says(s.look.At)
		switch {
		case e.gone && e.value.asked != "": // its explanation says so
			says += " It is not there any more."
		case e.gone: // what was read last is true no more
			says = "It is not there any more."
		}
		lines = append(append(lines, p.wrap(says, p.width)...), "")
		for _, field := range fields(e) {
			lines = append(lines, p.wrap(field, p.width)...)
		}
	} else {
		lines = append(lines, p.wrap(s.counts(), p.width)...)
		for _, says := range s.told(m) {
			lines = append(append(lines, ""), p.wrap(says, p.width)...)
		}
		for _, what := range s.look.Damaged {
			lines = append(lines, p.wrap("damaged: "+text.Plain(what), p.width)...)
		}
	}
	s.down = min(max(s.down, 0), max(len(lines)-height, 0))
	return lines[s.down:min(s.down+height, len(lines))]
}
