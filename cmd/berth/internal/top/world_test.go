package top

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// noon is when all tests take place.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// fake is a world that notes what it is asked for, and never answers by itself.
type fake struct {
	looks []subject
	nexts []int
	asks  []namesAsk
	done  []act.Action
	knows *act.Known   // of each action, nil: what it is about is never read
	asked []act.Action // what nothing is known of yet
	err   error
}

func (f *fake) look(at subject) tea.Cmd {
	f.looks = append(f.looks, at)
	return nil
}

func (f *fake) next(_ subject, after int) tea.Cmd {
	f.nexts = append(f.nexts, after)
	return nil
}

func (f *fake) names(ask namesAsk) tea.Cmd {
	f.asks = append(f.asks, ask)
	return nil
}

func (f *fake) about(action act.Action) tea.Cmd {
	f.asked = append(f.asked, action)
	return nil
}

func (f *fake) do(asked stands) tea.Cmd {
	f.done = append(f.done, asked.action)
	return nil
}

func (f *fake) tick() tea.Cmd { return nil }

// play is a model that a test plays with.
type play struct {
	*testing.T
	*model
	fake *fake
	seq  int
}

func begin(t *testing.T, width, height int) *play {
	t.Helper()
	f := &fake{knows: &act.Known{}}
	p := &play{T: t, model: newModel(f, "berth", "", false, noon), fake: f}
	p.Init()
	p.send(tea.WindowSizeMsg{Width: width, Height: height})
	return p
}

func (p *play) send(msg tea.Msg) tea.Cmd {
	_, cmd := p.Update(msg)
	if len(p.fake.asked) > 0 && p.fake.knows != nil {
		asked := p.fake.asked[0]
		p.fake.asked = p.fake.asked[1:]
		p.send(stands{asked, *p.fake.knows, p.fake.err})
	}
	return cmd
}

var codes = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	"home": tea.KeyHome, "end": tea.KeyEnd, "tab": tea.KeyTab, "backspace": tea.KeyBackspace, "left": tea.KeyLeft, "right": tea.KeyRight,
	"f1": tea.KeyF1,
}

// keys presses keys, with blanks between them; what is in quotation marks is typed.
func (p *play) keys(keys string) (last tea.Cmd) {
	p.Helper()
	for i, part := range strings.Split(keys, "'") {
		if i%2 == 1 {
			for _, r := range part {
				last = p.rune(r)
			}
			continue
		}
		for _, key := range strings.Fields(part) {
			code, named := codes[key]
			letter, ctrl := strings.CutPrefix(key, "ctrl+")
			switch {
			case named:
				last = p.send(tea.KeyPressMsg{Code: code})
			case ctrl:
				last = p.send(tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl})
			default:
				require.Len(p, []rune(key), 1, "no key is called so")
				last = p.rune([]rune(key)[0])
			}
		}
	}
	return last
}

func (p *play) rune(r rune) tea.Cmd {
	if r == ' ' {
		return p.send(tea.KeyPressMsg{Code: tea.KeySpace, Text: " "})
	}
	return p.send(tea.KeyPressMsg{Code: r, Text: string(r)})
}

// reads delivers a reading of what is shown.
func (p *play) reads(value any) {
	p.seq++
	p.send(reading{subject: p.top().subject(), seq: p.seq, value: value, at: p.now, now: p.now})
}

// names delivers the overview.
func (p *play) names(names ...berth.Name) {
	p.reads(inspect.Page[berth.Name]{Items: names, At: p.now})
}

// screen is what the window shows, without styles.
func (p *play) screen() string {
	p.Helper()
	lines := p.lines()
	require.Len(p, lines, p.paper.height)
	for _, line := range lines {
		require.LessOrEqual(p, ansi.StringWidthWc(line), p.paper.width, "%q", line)
		require.NotContains(p, line, "\n")
	}
	return ansi.Strip(strings.Join(lines, "\n"))
}

func (p *play) shows(what ...string) {
	p.Helper()
	for _, text := range what { // it may be wrapped
		screen := p.screen()
		require.True(p, strings.Contains(screen, text) || strings.Contains(strings.Join(strings.Fields(screen), " "), text), "%s\n%s", text, screen)
	}
}

func (p *play) showsNot(what ...string) {
	p.Helper()
	for _, text := range what {
		require.NotContains(p, p.screen(), text)
	}
}

// row is the line of the cursor.
func (p *play) row() string {
	p.Helper()
	for line := range strings.Lines(p.screen()) {
		if strings.HasPrefix(line, marker) {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	return ""
}

// contended is a semaphore that so many wait for.
func contended(name string, waiting int) berth.Name {
	return berth.Name{
		Kind: keyspace.Sem, Name: name, Capacity: 2, Held: 2, Holders: 2, Waiting: waiting, Oldest: 3 * time.Minute, At: noon,
		Longest: &berth.Holder{ID: "n1.c1", Node: "n1", Label: "host-7/1", Owner: "order-7", Granted: noon.Add(-3 * time.Minute)},
		First:   []berth.Waiter{{ID: "n9.w1", Waited: time.Minute, Since: noon.Add(-time.Minute), Alive: time.Second}},
	}
}

func of(kind keyspace.Kind, n berth.Name) berth.Name {
	n.Kind = kind
	return n
}

func hold(id string) inspect.Hold {
	node, _, _ := strings.Cut(id, ".")
	return inspect.Hold{Process: inspect.Renewing, Holder: berth.Holder{
		ID: id, Node: node, Label: "host/" + id, Weight: 1, Lease: 10 * time.Second, Left: 8 * time.Second, Held: time.Minute, Granted: noon.Add(-time.Minute),
	}}
}

func wait(id string) inspect.Wait {
	node, _, _ := strings.Cut(id, ".")
	return inspect.Wait{
		Waiter:      berth.Waiter{ID: id, Node: node, Label: "host/" + id, Weight: 1, Waited: time.Minute, Alive: 8 * time.Second, Since: noon.Add(-time.Minute)},
		Explanation: inspect.Explanation{Why: "Claim " + id + " waits for the others."},
	}
}

// looked is a name with claims.
func looked(n berth.Name, holds []string, waits []string, resources ...inspect.Resource) watch.Name {
	l := inspect.Look{Name: n, Explanation: inspect.Explanation{Why: "All of it is held.", Then: "Nothing ends by itself."}, Resources: resources}
	for i, id := range holds {
		h := hold(id)
		h.Granted = h.Granted.Add(time.Duration(i) * time.Second)
		if i < len(resources) {
			h.Resource = resources[i].Key
		}
		l.Holds = append(l.Holds, h)
	}
	for _, id := range waits {
		l.Waits = append(l.Waits, wait(id))
	}
	return watch.Name{Look: l}
}

// atName is a model that shows a semaphore with two holders and two waiters.
func atName(t *testing.T, width, height int) *play {
	t.Helper()
	p := begin(t, width, height)
	p.names(contended("gpu", 2))
	p.keys("enter")
	p.reads(looked(contended("gpu", 2), []string{"n1.a", "n2.b"}, []string{"n3.c", "n4.d"}))
	return p
}
