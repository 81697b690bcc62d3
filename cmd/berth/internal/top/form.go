package top

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// target is what a screen's selection means to the keys that act. It is looked at once, when the key is pressed:
// what moves on the screen later changes nothing.
type target struct {
	kind     keyspace.Kind
	name     string
	claim    string
	resource string
	node     string
	capacity int
	gone     bool // the selected claim is not there any more
	drain    berth.DrainTarget
}

// targetOf is a claim that is selected.
func targetOf(c inspect.Claim, gone bool) target {
	t := target{kind: c.Kind, name: c.Name, claim: c.ID(), node: c.Node(), gone: gone}
	if c.Hold != nil {
		t.resource = c.Hold.Resource
	}
	return t
}

// form asks for the inputs of an action, and then for its confirmation.
type form struct {
	action act.Action
	asks   []ask
	at     int // index of asks; len(asks) for the confirmation
	input  string
	wrong  string  // with what was typed last, "" once a key has followed
	known  *stands // of what it is about, nil while that is being read
}

// ask is one thing to ask for.
type ask struct {
	field  string // that the error of Check names
	says   string
	answer func(a *act.Action, typed string) error
}

var verbs = map[string]act.Verb{
	"r": act.Release, "w": act.Want, "p": act.Pause, "u": act.Unpause, "z": act.Resize, "t": act.Rest, "d": act.Drain, "D": act.Undrain,
}

// act begins an action, if that is what the key does.
func (m *model) act(key string) bool {
	verb, ok := verbs[key]
	if !ok {
		return false
	}
	if s, ok := m.top().(*nameScreen); ok && s.full == ofAll {
		return false
	}
	f, err := newForm(verb, m.top().target())
	if err != nil {
		m.say(true, string(verb)+": "+err.Error())
		return true
	}
	m.form = f
	return true
}

// errUnknownNode is of a claim of which no record was read. Its id does not tell: a claim that was resumed has another node.
var errUnknownNode = errors.New("the node of this claim is not known")

// newForm returns the form of an action on a target.
func newForm(verb act.Verb, t target) (*form, error) {
	f := &form{action: act.Action{Verb: verb, Kind: t.kind, Name: t.name}}
	switch {
	case t.gone && verb != act.Pause && verb != act.Unpause && verb != act.Resize && verb != act.Undrain:
		return nil, errors.New("the selected one is not there any more; select another")
	case verb == act.Undrain && t.drain != berth.DrainTarget{}:
		f.action = act.Action{Verb: verb, Node: t.drain.Node, Label: t.drain.Label}
	case verb == act.Drain || verb == act.Undrain:
		if t.node == "" && t.claim != "" {
			return nil, errUnknownNode
		}
		if t.node == "" {
			return nil, errors.New("select a claim: it is about the claim's node")
		}
		f.action = act.Action{Verb: verb, Node: t.node}
	case t.name == "":
		return nil, errors.New("nothing is selected")
	case (verb == act.Release || verb == act.Want) && t.claim == "":
		return nil, errors.New("select a claim: enter opens a name")
	case verb == act.Resize && t.kind != keyspace.Sem:
		return nil, errors.New("only a semaphore has a capacity that can be set")
	case verb == act.Rest && t.kind != keyspace.Pool:
		return nil, errors.New("only a pool has resources")
	case verb == act.Rest && t.resource == "":
		return nil, errors.New("select a resource, or a claim that holds one")
	}
	f.asks = asksOf(verb, t)
	if verb == act.Release || verb == act.Want {
		f.action.Claim = t.claim
	}
	if verb == act.Rest {
		f.action.Resource = t.resource
	}
	return f, nil
}

// lasts is how a duration is typed.
const lasts = "such as 90s, 10m, 1h30m or 1d12h"

func asksOf(verb act.Verb, t target) []ask {
	why := ask{"reason", "Why? (it is in the line that is printed when top has ended; enter alone gives none)", func(a *act.Action, typed string) error {
		a.Reason = typed
		return nil
	}}
	switch verb {
	case act.Pause:
		why.says = "Why? (whoever looks at it sees it; enter alone gives none)"
		return []ask{{"for", "For how long? (" + lasts + ")", length(inFor, nil, "")}, why}
	case act.Rest:
		why.says = "Why? (whoever looks at the pool sees it; not needed to end a rest)"
		words := map[string]time.Duration{"forever": berth.Forever, "0": 0}
		return []ask{{"for", "For how long? (" + lasts + "; forever; 0 ends its rest)", length(inFor, words, "")}, why}
	case act.Drain:
		why.says = "Why? (whoever looks sees it, and so do the processes; enter alone gives none)"
		never := map[string]time.Duration{"": 0}
		after := length(func(a *act.Action) *time.Duration { return &a.ForceAfter }, never, "; enter alone is never")
		return []ask{
			{"for", "For how long? (" + lasts + "; enter alone: until it is ended)", length(inFor, never, "; enter alone is until it is ended")},
			{"force-after", "After how long is the rest ended by force? (" + lasts + "; enter alone: never)", func(a *act.Action, typed string) error {
				err := after(a, typed)
				a.Force = a.ForceAfter > 0
				return err
			}},
			why,
		}
	case act.Resize:
		return []ask{{"capacity", fmt.Sprintf("Which capacity? (now %d)", t.capacity), func(a *act.Action, typed string) (err error) {
			if a.Capacity, err = strconv.Atoi(typed); err != nil {
				return errors.New("this is not a whole number")
			}
			return nil
		}}, {"keep", "For good? (y: also when it is idle and would be forgotten; enter alone: no)", func(a *act.Action, typed string) error {
			a.Keep = strings.EqualFold(typed, "y") || strings.EqualFold(typed, "yes")
			if !a.Keep && typed != "" && !strings.EqualFold(typed, "n") && !strings.EqualFold(typed, "no") {
				return errors.New("type y or n")
			}
			return nil
		}}, why}
	}
	return []ask{why}
}

func inFor(a *act.Action) *time.Duration { return &a.For }

// length accepts a duration above 0, or one of these words; hint is shown after any other input.
func length(of func(*act.Action) *time.Duration, words map[string]time.Duration, hint string) func(*act.Action, string) error {
	return func(a *act.Action, typed string) error {
		d, known := words[typed]
		if !known {
			var err error
			if d, err = app.ParseTime(typed); err != nil {
				return errors.New("this is not a time " + lasts)
			}
			if d <= 0 {
				return errors.New("it is above 0" + hint)
			}
		}
		*of(a) = d
		return nil
	}
}

// press takes in a key.
func (f *form) press(m *model, key, typed string) tea.Cmd {
	switch {
	case key == "esc":
		m.form = nil
		return m.say(false, "nothing was done")
	case f.at == len(f.asks):
		return f.confirm(m, typed)
	case key == "enter":
		if f.next(); f.at == len(f.asks) {
			f.known = nil
			return m.world.about(f.action)
		}
	default:
		f.edit(key, typed)
	}
	return nil
}

// learns takes in what is known of what an action is about.
func (m *model) learns(k stands) {
	switch {
	case m.form == nil || m.form.at < len(m.form.asks) || m.form.action != k.action:
	case k.err != nil:
		m.form = nil
		m.ended(outcome{action: k.action, err: k.err})
	default:
		m.form.known = &k
	}
}

// next takes what was typed as the answer, and goes on to the next question. An input that Check refuses is asked
// for again.
func (f *form) next() {
	if err := f.asks[f.at].answer(&f.action, strings.TrimSpace(f.input)); err != nil {
		f.wrong = err.Error()
		return
	}
	f.at, f.input, f.wrong = f.at+1, "", ""
	if f.at < len(f.asks) {
		return
	}
	if err := f.action.Check(); err != nil {
		f.at, f.wrong = 0, words(err)
		var invalid *berth.ConfigError
		for i := range f.asks {
			if errors.As(err, &invalid) && f.asks[i].field == invalid.Field {
				f.at, f.wrong = i, text.Escaped(invalid.Problem)
			}
		}
	}
}

// confirm does the action if y was typed, and all that it will do was shown.
func (f *form) confirm(m *model, typed string) tea.Cmd {
	if typed != "y" && typed != "Y" {
		m.form = nil
		return m.say(false, "nothing was done")
	}
	if f.known == nil {
		return nil
	}
	if len(f.will(m.paper)) > m.room() {
		return m.say(true, "make the window larger: it does not show all that this will do")
	}
	m.form = nil
	m.begins(f.action)
	line := string(f.action.Verb) + ": under way ..."
	if f.action.Verb == act.Drain {
		line = "drain of node " + text.Plain(f.action.Node) + " is under way; it stays in force until it is ended by D"
	}
	return tea.Batch(m.say(false, line), m.world.do(*f.known))
}

// typed takes in pasted text.
func (f *form) typed(content string) {
	if f.at < len(f.asks) {
		f.edit("", content)
	}
}

// edit has a key change the line. Text typed right after a refusal replaces the line; any other key keeps the
// line.
func (f *form) edit(key, typed string) {
	if f.wrong != "" && typed != "" {
		f.input = ""
	}
	f.input, f.wrong = edited(f.input, key, typed), ""
}

// longest is how long a text may be that is typed.
const longest = 512

// edited is a text with a key, or with what was typed or pasted. Unreadable parts are left out.
func edited(input, key, typed string) string {
	switch {
	case typed != "":
	case key == "backspace" || key == "ctrl+h":
		runes := []rune(input)
		return string(runes[:max(len(runes)-1, 0)])
	case key == "ctrl+u":
		return ""
	}
	for _, r := range typed {
		if !text.Unreadable(r) && len(input)+utf8.RuneLen(r) <= longest {
			input += string(r)
		}
	}
	return input
}

func (f *form) title() string { return "To " + string(f.action.Verb) }

func (f *form) keys() string {
	if f.at < len(f.asks) {
		return "enter goes on   ctrl+u empties   esc leaves it"
	}
	return "y does it   any other key leaves it"
}

// draw draws the question, or all that the action will do.
func (f *form) draw(p paper, height int) []string {
	if f.at == len(f.asks) {
		return f.will(p)
	}
	lines := p.few(p.wrap(f.about(), p.width), max(height-6, 1), p.width)
	lines = append(append(lines, ""), p.wrap(f.asks[f.at].says, p.width)...)
	shown := []rune(f.input)
	for p.method.StringWidth(string(shown)) > p.width-3 {
		shown = shown[1:]
	}
	lines = append(lines, "> "+string(shown)+"_")
	if f.wrong != "" {
		lines = append(lines, p.wrap("! "+f.wrong, p.width)...)
	}
	return lines
}

// will returns all effects of the action, and the question for confirmation.
func (f *form) will(p paper) []string {
	if f.known == nil {
		return p.wrap("Reading ...", p.width)
	}
	lines := p.wrap(f.action.Will(f.known.known), p.width)
	if f.action.Reason != "" {
		lines = append(lines, p.wrap("The reason: "+text.Quoted(f.action.Reason), p.width)...)
	}
	return append(lines, "", p.in(strong, p.cut("Do this? Type y to do it.", p.width)))
}

// about says what the action is about while it is not known yet.
func (f *form) about() string {
	a := &f.action
	switch {
	case a.Node != "":
		return fmt.Sprintf("%s node %s", a.Verb, text.Quoted(a.Node))
	case a.Claim != "":
		return fmt.Sprintf("%s claim %s of %s %s", a.Verb, text.Quoted(a.Claim), act.Nouns[a.Kind], text.Quoted(a.Name))
	case a.Resource != "":
		return fmt.Sprintf("%s resource %s of %s %s", a.Verb, text.Quoted(a.Resource), act.Nouns[a.Kind], text.Quoted(a.Name))
	}
	return fmt.Sprintf("%s %s %s", a.Verb, act.Nouns[a.Kind], text.Quoted(a.Name))
}
