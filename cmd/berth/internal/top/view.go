package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
)

// leastWidth and leastHeight are of the smallest window that shows anything.
const (
	leastWidth  = 40
	leastHeight = 10
)

// usualWidth is that of most windows. Narrower ones say which columns they hide.
const usualWidth = 80

func (m *model) tiny() bool { return m.paper.width < leastWidth || m.paper.height < leastHeight }

// View draws all.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "berth top"
	return v
}

// lines are those of the window, none of them longer than it is wide.
func (m *model) lines() []string {
	p := m.paper
	switch {
	case p.width < 1 || p.height < 1:
		return make([]string, max(p.height, 0))
	case m.tiny():
		return tall(p.few(p.wrap(fmt.Sprintf("The window is too small: it has %dx%d of at least %dx%d. q ends.",
			p.width, p.height, leastWidth, leastHeight), p.width), p.height, p.width), p.height)
	}
	var body []string
	title, keys := m.top().title(m), m.top().keys(m)
	foot, room := m.foot(), m.room()
	_, names := m.top().(*list)
	switch {
	case m.form != nil:
		title, keys = m.form.title(), m.form.keys()
		body = m.form.draw(p, room)
	case m.help:
		title, keys = "Keys", "any key goes back"
		body = help(p, room)
	case !names && m.top().fresh().at.IsZero():
		body = p.wrap("Reading ...", p.width)
	default:
		body = m.top().draw(m, room)
	}
	lines := append([]string{m.header(title)}, tall(body, room)...)
	lines = append(lines, foot...)
	return append(lines, p.in(faint, p.cut(keys, p.width)))
}

// room is how many lines there are between the header and the foot.
func (m *model) room() int { return max(m.paper.height-2-len(m.foot()), 1) }

// header is the first line: what is shown, and whose it is.
func (m *model) header(title string) string {
	p, right := m.paper, "namespace "+text.Plain(m.namespace)
	if n := len(m.running); n > 0 {
		right = fmt.Sprintf("%s under way, %s", view.Count(n, "action"), right)
	}
	least := min(p.method.StringWidth(right), p.width/3) // of it, however long the title is
	right = p.cut(right, max(p.width-p.method.StringWidth(title)-2, least))
	return p.in(strong, p.fill(title, p.width-p.method.StringWidth(right)-2)+"  "+right)
}

// foot returns the last line: that nothing comes from the server, and the status.
func (m *model) foot() []string {
	var foot []string
	if line := m.trouble(); line != "" {
		foot = append(foot, m.paper.in(alarming, m.paper.cut(line, m.paper.width)))
	}
	if m.status == "" {
		return append(foot, "")
	}
	s := plain
	if m.bad {
		s = alarming
	}
	for _, line := range m.paper.few(m.paper.wrap(m.status, m.paper.width), 3, m.paper.width) {
		foot = append(foot, m.paper.in(s, line))
	}
	return foot
}

// silence is the number of missed readings after which the display says so.
const silence = 3

// trouble says that what is shown is not fresh, and why.
func (m *model) trouble() string {
	s := m.top().fresh()
	every, live := everyOf[m.top().subject().topic]
	from := s.at
	if from.IsZero() {
		from = s.since
	}
	old := m.now.Sub(from)
	switch {
	case s.err != nil && s.at.IsZero():
		return "! nothing could be read: " + words(s.err)
	case s.err != nil:
		return fmt.Sprintf("! this is %s old, and cannot be read anew: %s", age(old), words(s.err))
	case live && old > silence*every+time.Second && s.at.IsZero():
		return fmt.Sprintf("! the server has not answered for %s", age(old))
	case live && old > silence*every+time.Second:
		return fmt.Sprintf("! this is %s old: the server has not answered since", age(old))
	}
	return ""
}

// everyOf is how often each topic is read.
var everyOf = map[topic]time.Duration{
	overview: watch.OverviewEvery, ofName: watch.NameEvery, ofNode: watch.ClaimsEvery, cycles: watch.CyclesEvery, nodes: watch.ClaimsEvery,
}
