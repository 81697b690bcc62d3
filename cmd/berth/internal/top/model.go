package top

import (
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// subject is what is looked at.
type subject struct {
	topic topic
	kind  keyspace.Kind // of ofName
	name  string
	claim string // a claim to explain beside the name, "" for none
	node  string // of ofNode
}

type topic int

const (
	nothing topic = iota
	overview
	ofName
	ofNode
	cycles
	nodes
)

// world is all that a model asks for. Its commands deliver messages.
type world interface {
	look(at subject) tea.Cmd            // at this, and no longer at what was looked at before: a reading
	next(at subject, after int) tea.Cmd // the reading after that one
	names(ask namesAsk) tea.Cmd         // a page of all names: a namesPage
	about(action act.Action) tea.Cmd    // what is known of what it is about: a stands
	do(asked stands) tea.Cmd            // an outcome, if that still stands so
	tick() tea.Cmd                      // a tick, in a second
}

// The messages, beside those of the terminal.
type (
	// reading is what was read of a subject.
	reading struct {
		subject subject
		seq     int
		value   any // as of the last reading that succeeded, nil for none
		drains  watch.Drains
		at      time.Time // when that was
		err     error     // why the last one has failed
		now     time.Time
	}
	tick time.Time
	// namesAsk asks for a page of names in use.
	namesAsk struct {
		number int // of the question
		filter inspect.NameFilter
		cursor string
	}
	namesPage struct {
		ask  namesAsk
		page inspect.Page[berth.Name]
		err  error
		now  time.Time
	}
	// stands is what was read of what an action is about, or why it is not to be done.
	stands struct {
		action act.Action
		known  act.Known
		err    error
	}
	// outcome is what has come of an action.
	outcome struct {
		action act.Action
		done   string
		err    error
	}
)

// The library's widgets, charm.land/bubbles v2.2.1, are not used. Each of the three was tried here: the text input is 29 lines
// more, the viewport 3, the table 28. The limit of a text, rows of several lines, headings, styles of rows and widths that are
// shared stay ours. A cell is measured by another way than a line, which may get too long; and the text input's alt+d panics
// before the last character, its ctrl+v runs another program.

// screen is one thing that is shown.
type screen interface {
	subject() subject
	read(m *model, r reading)
	press(m *model, key string) tea.Cmd
	draw(m *model, height int) []string
	title(m *model) string
	keys(m *model) string
	target() target // what the keys that act are about
	fresh() *seen
}

// seen is how fresh is what a screen shows.
type seen struct {
	at    time.Time // of the last reading that succeeded, zero for none
	err   error     // of the last reading
	since time.Time // when the looking began
}

func (s *seen) fresh() *seen { return s }

// model is the whole state of the display. It does nothing itself: it asks its world.
type model struct {
	world     world
	paper     paper
	namespace string
	where     []string // the words by which a command means the same server and namespace
	now       time.Time
	screens   []screen // the last one is shown
	form      *form    // nil while nobody is asked for anything
	help      bool
	status    string     // until the next key
	bad       bool       // the status is an error
	came      act.Action // whose outcome the status is, if it is one
	running   []underWay
}

// underWay is an action that goes on.
type underWay struct {
	action act.Action
	ended  bool // a drain: its end was asked for from here since it began
}

func newModel(w world, namespace string, kind keyspace.Kind, colors bool, now time.Time) *model {
	m := &model{world: w, namespace: namespace, now: now, paper: paper{method: ansi.WcWidth, colors: colors}}
	m.screens = []screen{newList(kind)}
	return m
}

// Init begins to look.
func (m *model) Init() tea.Cmd { return tea.Batch(m.look(), m.world.tick()) }

func (m *model) top() screen { return m.screens[len(m.screens)-1] }

// look looks at what is shown.
func (m *model) look() tea.Cmd {
	s := m.top().fresh()
	s.since, s.err = m.now, nil
	return m.world.look(m.top().subject())
}

// elsewhere shows another screen, by the keys that all screens have.
func (m *model) elsewhere(key string) tea.Cmd {
	t := m.top().target()
	switch key {
	case "esc", "backspace", "left", "h":
		return m.back()
	case "enter", "right", "l":
		if t.name != "" {
			return m.open(newName(t.kind, t.name, t.claim))
		}
	case "n":
		switch {
		case t.node != "":
			return m.open(&nodeScreen{node: t.node})
		case t.claim != "":
			return m.say(true, errUnknownNode.Error())
		}
		return m.say(true, "select a claim: n shows the claims of its node, N all nodes")
	case "N":
		return m.open(&nodesScreen{})
	case "c":
		return m.open(&cycleScreen{})
	}
	return nil
}

// open shows another screen, if it is not the one that is shown, back the one before it.
func (m *model) open(s screen) tea.Cmd {
	if s.subject() == m.top().subject() {
		return nil
	}
	m.screens = append(m.screens, s)
	return m.look()
}

func (m *model) back() tea.Cmd {
	if len(m.screens) == 1 {
		return nil
	}
	m.screens = m.screens[:len(m.screens)-1]
	return m.look()
}

// Update takes a message in.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.paper.width, m.paper.height = msg.Width, msg.Height
	case tea.ModeReportMsg: // the library measures by it, too
		if msg.Mode == ansi.ModeUnicodeCore && (msg.Value == ansi.ModeReset || msg.Value == ansi.ModeSet || msg.Value == ansi.ModePermanentlySet) {
			m.paper.method = ansi.GraphemeWidth
		}
	case tick:
		m.now = time.Time(msg)
		return m, m.world.tick()
	case reading:
		return m, m.read(msg)
	case namesPage:
		m.later(msg.now)
		if l, ok := m.screens[0].(*list); ok {
			return m, l.page(m, msg)
		}
	case stands:
		m.learns(msg)
	case outcome:
		m.ended(msg)
	case tea.PasteMsg:
		return m, m.typed(msg.Content)
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

func (m *model) later(now time.Time) {
	if now.After(m.now) {
		m.now = now
	}
}

func (m *model) read(r reading) tea.Cmd {
	if r.subject != m.top().subject() {
		return nil
	}
	m.later(r.now)
	s := m.top().fresh()
	if s.at, s.err = r.at, r.err; r.value != nil {
		m.top().read(m, r)
	}
	return m.world.next(r.subject, r.seq)
}

// begins notes an action that is about to start.
func (m *model) begins(action act.Action) {
	if action.Verb == act.Undrain {
		m.ends(action.Node, true)
	}
	m.running = append(m.running, underWay{action: action})
}

// ends notes whether the drains of a node that are under way are ended from here.
func (m *model) ends(node string, ended bool) {
	for i := range m.running {
		if r := &m.running[i]; r.action.Verb == act.Drain && r.action.Node == node {
			r.ended = ended
		}
	}
}

// over takes an action from those under way, and is its outcome in a line. It is no error that a drain was ended from here.
func (m *model) over(o outcome) (line string, bad bool) {
	if o.action.Verb == act.Undrain && o.err != nil { // whatever ends that drain now, this has not
		m.ends(o.action.Node, false)
	}
	for i, r := range m.running {
		if r.action != o.action {
			continue
		}
		m.running = append(m.running[:i:i], m.running[i+1:]...)
		if r.ended && (stopped(o) || undrained(o)) {
			return about(o.action) + text.Escaped(o.done) + "; ended by D", false
		}
		break
	}
	return told(o), o.err != nil
}

// ended tells what has come of an action. A drain, which may end whenever it will, hides nothing that was not read yet, and
// is not hidden: it comes last.
func (m *model) ended(o outcome) {
	line, bad := m.over(o)
	before := m.came
	if m.status != "" && before.Verb != "" {
		switch {
		case o.action.Verb == act.Drain:
			line, bad = m.status+"; "+line, bad || m.bad
		case before.Verb == act.Drain:
			line, bad = line+"; "+m.status, bad || m.bad
		}
	}
	m.say(bad, line)
	m.came = o.action
}

// told is an outcome in a line.
func told(o outcome) string {
	line := about(o.action) + text.Escaped(o.done)
	switch {
	case o.err != nil && o.done != "" && o.action.Verb == act.Drain:
		return line + "; " + words(o.err)
	case mayBeDone(o.err):
		return about(o.action) + "it may have been done: " + words(o.err)
	case o.err != nil:
		return about(o.action) + "not done: " + words(o.err)
	}
	return line
}

// about is how the line of an action begins.
func about(a act.Action) string {
	what := text.Plain(a.Name)
	if a.Name == "" {
		what = text.Plain(a.Node)
	}
	return string(a.Verb) + " " + what + ": "
}

// say shows a line until the next key.
func (m *model) say(bad bool, line string) tea.Cmd {
	m.status, m.bad, m.came = line, bad, act.Action{}
	return nil
}

// press does what a key does.
func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case key == "ctrl+z":
		return tea.Suspend
	case m.tiny():
		if key == "q" {
			return tea.Quit
		}
		return nil
	case m.form != nil:
		return m.form.press(m, key, msg.Text)
	}
	m.status = ""
	switch {
	case m.help:
		m.help = false
		return nil
	case m.asking():
		return m.top().(*list).edit(m, key, msg.Text)
	case key == "q":
		return tea.Quit
	case key == "?":
		m.help = true
		return nil
	case m.act(key):
		return nil
	}
	return m.top().press(m, key)
}

// asking reports whether what is typed is text for the list's filter.
func (m *model) asking() bool {
	l, ok := m.top().(*list)
	return ok && l.typing
}

// typed takes in pasted text, where text is asked for.
func (m *model) typed(content string) tea.Cmd {
	switch {
	case m.tiny():
	case m.form != nil:
		m.form.typed(content)
	case m.asking():
		return m.top().(*list).edit(m, "", content)
	}
	return nil
}
