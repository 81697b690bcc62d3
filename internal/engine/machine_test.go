package engine

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
)

// The rules of a claim are proved by the histories in testdata: what happens to a claim, one
// event a line, and what comes of each. A line is
//
//	event name=value ... -> phase: what the engine has to do
//
// with @ for the moment, which stays that of the line before, and from= for the start of the
// call that an answer is to. "-> =" says that nothing changes, and nothing is to be done.
// "show -> ..." says what is known then. A history begins with its rule, as a title; the line
// below may say what its claim asks for. The wait lease is 6 s, and the lease too.

// history is the story of one claim.
type history struct {
	file, title string
	claim       []string // its words
	lines       []storyLine
}

type storyLine struct {
	number int
	words  []string
	want   string
}

func (h *history) String() string { return h.file + ": " + h.title }

// histories reads all of them.
func histories(t testing.TB) []*history {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []*history
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all = append(all, readHistories(t, filepath.Base(file), string(text))...)
	}
	return all
}

func readHistories(t testing.TB, file, text string) (all []*history) {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		title, isTitle := strings.CutPrefix(line, "# ")
		words, isClaim := strings.CutPrefix(line, "claim")
		event, want, isEvent := strings.Cut(line, "->")
		switch {
		case line == "":
		case isTitle:
			all = append(all, &history{file: file, title: title})
		case isClaim:
			all[len(all)-1].claim = strings.Fields(words)
		case isEvent:
			h := all[len(all)-1]
			h.lines = append(h.lines, storyLine{i + 1, strings.Fields(event), strings.TrimSpace(want)})
		default:
			require.Fail(t, "no line of a history", "%s:%d: %s", file, i+1, line)
		}
	}
	return all
}

// story is a history on its way.
type story struct {
	m    machine
	now  time.Duration
	seen map[time.Duration]sight // of the calls, by their start
	met  func(kind, phase)       // nil for nobody
}

const second = time.Second

// play plays a history by a table, and returns where it comes out differently. met is told
// of each event, and the phase that it met; it may be nil.
func (h *history) play(by *table, met func(kind, phase)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", h, r)
		}
	}()
	c := &Claim{ID: "n.1", Name: "x", MayWait: true, Record: Record{Wait: 6 * second, Lease: 6 * second, Weight: 1}}
	secret := "s"
	for _, word := range h.claim {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "lease":
			c.Record.Lease = duration(value)
		case "max-hold":
			c.Record.MaxHold = duration(value)
		case "no-renew":
			c.Record.NoRenew = true
		case "tries":
			c.MayWait = false
		case "no-secret":
			secret = ""
		default:
			panic("no word of a claim: " + word)
		}
	}
	s := &story{m: begin(c), seen: make(map[time.Duration]sight), met: met}
	s.m.course, s.m.news.secret = by, secret
	for _, line := range h.lines {
		if got := s.line(line.words, line.want == "="); got != line.want {
			return fmt.Errorf("%s:%d: %s\n%s\n  want %s\n  got  %s", h.file, line.number, h.title, strings.Join(line.words, " "), line.want, got)
		}
	}
	return nil
}

// line has one thing happen, and returns what comes of it.
func (s *story) line(words []string, whole bool) string {
	if words[0] == "show" {
		return s.m.show()
	}
	ev := s.event(words)
	before := s.m
	if s.met != nil {
		s.met(ev.kind, before.phase)
	}
	fx := s.m.on(ev)
	if ev.kind == evCall {
		s.seen[ev.start] = ev.seen
	}
	if reflect.DeepEqual(before, s.m) && reflect.DeepEqual(fx, effects{}) && whole {
		return "="
	}
	return phaseNames[s.m.phase] + ":" + s.effects(&fx)
}

// effects are what the engine has to do, as text.
func (s *story) effects(fx *effects) string {
	var text strings.Builder
	for i, name := range deedNames {
		if fx.do&(1<<i) != 0 {
			text.WriteString(" " + name)
		}
	}
	if fx.has(doKeep) || fx.has(doTime) {
		g := fx.given
		if fx.has(doTime) {
			g = given{start: s.m.news.answered, left: fx.left, confirmed: true}
		}
		var spec heartbeat.Spec
		s.m.time(&spec, g)
		text.WriteString(fmt.Sprintf(" until %s limit %s", moment(spec.Deadline), moment(spec.Limit)))
	}
	if fx.tell != "" {
		text.WriteString(" tell " + string(fx.tell))
	}
	if fx.tell == observe.Unavailable {
		text.WriteString(fmt.Sprintf(" calls %d since %s", fx.silence.calls, fx.silence.since))
	}
	if fx.left != 0 {
		text.WriteString(fmt.Sprintf(" left %s", fx.left))
	}
	if fx.end != nil {
		text.WriteString(" end " + said(fx.end))
	}
	if fx.err != nil {
		text.WriteString(" err " + said(fx.err))
	}
	return text.String()
}

func moment(d time.Duration) string {
	if d == 0 {
		return "never"
	}
	return d.String()
}

// show is what is known, as text.
func (m *machine) show() string {
	words := []string{phaseNames[m.phase]}
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{m.grant.confirmed, "confirmed"}, {m.news.lost, "lost"}, {m.news.doubt, "doubt"}, {m.lease.mayRun, "may-run"},
		{m.news.swapping, "swapping"}, {m.news.askAgain, "ask-again"}, {m.end.own, "own"}, {m.end.parted, "parted"}, {m.end.mayRun, "released-perhaps"},
	} {
		if flag.set {
			words = append(words, flag.name)
		}
	}
	if m.place.at != "" {
		words = append(words, fmt.Sprintf("place=%s heard=%s left=%s", m.place.at, m.place.heard, m.place.left))
	}
	if m.place.ticket != 0 {
		words = append(words, fmt.Sprintf("ticket=%d", m.place.ticket))
	}
	if m.grant.fence != 0 {
		words = append(words, fmt.Sprintf("fence=%d resource=%s", m.grant.fence, m.grant.resource))
	}
	if m.lease.capacity != 0 {
		words = append(words, fmt.Sprintf("capacity=%d", m.lease.capacity))
	}
	if m.news.pushes+m.news.denied > 0 {
		words = append(words, fmt.Sprintf("pushes=%d denied=%d", m.news.pushes, m.news.denied))
	}
	if m.news.secret != "s" {
		words = append(words, "secret="+m.news.secret)
	}
	if m.end.err != nil {
		words = append(words, "err="+said(m.end.err))
	}
	return strings.Join(words, " ")
}

// event reads a line.
func (s *story) event(words []string) *event {
	ev := &event{kind: kindNamed(words[0]), start: -1, text: "s"}
	refusal := &berth.AcquireError{}
	for _, word := range words[1:] {
		if at, ok := strings.CutPrefix(word, "@"); ok {
			s.now = duration(at)
			continue
		}
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "from":
			ev.start = duration(value)
		case "last":
			ev.start = unasked
		case "left":
			ev.given.left = duration(value)
		case "most":
			ev.given.most = duration(value)
		case "fence":
			ev.given.fence = number(value)
		case "resource":
			ev.given.resource = value
		case "confirmed":
			ev.given.confirmed = true
		case "late":
			ev.late = true
		case "may-run":
			ev.mayRun = true
		case "revives":
			ev.revives = true
		case "beat":
			ev.beats = true
		case "stale":
			ev.stale = true
		case "secret":
			ev.text = value
		case "place":
			ev.place = value
		case "ticket":
			ev.ticket = number(value)
		case "capacity":
			ev.capacity = int(number(value))
		case "lease", "max-hold", "no-renew", "common", "extends":
			ev.entry = entryWith(ev.entry, name, value)
		case "reason":
			refusal.Reason = berth.Reason(value)
			ev.cause = refusal
		case "cause":
			ev.cause = causeNamed(value)
		case "word":
			ev.word = Released(value)
		case "unanswered":
			ev.again = true
		case "entries":
			ev.entries = int(number(value))
		default:
			panic("no word of an event: " + word)
		}
	}
	ev.now = s.now
	if ev.start == -1 && ev.kind != evMissed {
		ev.start = s.now
	}
	ev.seen, ev.given.start = s.seen[ev.start], ev.start
	if ev.kind == evHeld {
		ev.given.confirmed = true
	}
	return ev
}

func entryWith(e *Entry, name, value string) *Entry {
	if e == nil {
		e = &Entry{Terms: Terms{Lease: 6 * second}}
	}
	switch name {
	case "lease":
		e.Lease = duration(value)
	case "max-hold":
		e.MaxHold = duration(value)
	case "no-renew":
		e.NoRenew = true
	case "common":
		e.Common = duration(value)
	case "extends":
		e.Extends = duration(value)
	}
	return e
}

func duration(text string) time.Duration {
	switch text {
	case "forever":
		return berth.Forever
	case "endless":
		return -1
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// causes are the errors that histories name.
var causes = []struct {
	name string
	err  error
}{
	{"lost", berth.ErrLost},
	{"expired", berth.ErrExpired},
	{"released", berth.ErrReleased},
	{"closed", berth.ErrClosed},
	{"replaced", ErrReplaced},
	{"deadline", heartbeat.ErrDeadline},
	{"limit", heartbeat.ErrLimit},
	{"no-answer", errNoAnswer},
}

func causeNamed(name string) error {
	for _, c := range causes {
		if c.name == name {
			return c.err
		}
	}
	panic("no cause: " + name)
}

// said is an error as text: its reason or cause, and what it says of a hold.
func said(err error) string {
	if refusal, ok := errors.AsType[*berth.AcquireError](err); ok {
		text := string(refusal.Reason)
		if refusal.Capacity != 0 {
			text += fmt.Sprintf("(capacity %d)", refusal.Capacity)
		}
		if refusal.Cause != nil {
			text += "(" + said(refusal.Cause) + ")"
		}
		return text
	}
	name := err.Error()
	for _, c := range causes {
		if errors.Is(err, c.err) {
			name = c.name
			break
		}
	}
	if end, ok := errors.AsType[*berth.EndError](err); ok {
		return fmt.Sprintf("%s(fence %d after %s)", name, end.Fence, end.Held)
	}
	return name
}

// The names of the constants in machine.go and state.go, which only tests and docs want to know.
var (
	kindNames  = constants("machine.go", "kind", "ev")
	phaseNames = constants("machine.go", "phase", "")
	ruleNames  = constants("machine.go", "rule", "")
	deedNames  = constants("state.go", "deed", "do")
)

func kindNamed(name string) kind {
	for i, n := range kindNames {
		if n == name {
			return kind(i)
		}
	}
	panic("no event: " + name)
}

// constants are the names of a type's constants in a file, without a prefix, as words.
func constants(file, of, prefix string) []string {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		panic(err)
	}
	var names []string
	for _, decl := range tree.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		first, _ := block.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident)
		if first == nil || first.Name != of {
			continue
		}
		for _, spec := range block.Specs {
			names = append(names, words(strings.TrimPrefix(spec.(*ast.ValueSpec).Names[0].Name, prefix)))
		}
	}
	return names
}

// words has hyphens in the place of capitals.
func words(name string) string {
	var text strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			text.WriteByte('-')
		}
		text.WriteRune(unicode.ToLower(r))
	}
	return text.String()
}

func TestHistoriesOfAClaim(t *testing.T) {
	for _, h := range histories(t) {
		t.Run(h.title, func(t *testing.T) {
			if err := h.play(&course, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// met are the histories in which an event meets a phase.
func metBy(all []*history) (met [kinds][phases][]*history) {
	for _, h := range all {
		_ = h.play(&course, func(k kind, p phase) {
			if by := met[k][p]; len(by) == 0 || by[len(by)-1] != h {
				met[k][p] = append(by, h)
			}
		})
	}
	return met
}

// Every entry of the table is there for a reason, and so is every one that is not.
func TestAnEntryOfTheTableThatChangesIsFound(t *testing.T) {
	met := metBy(histories(t))
	for k := range kinds {
		for p := range phases {
			for _, r := range others(k, p) {
				changed := course
				changed[k][p] = r
				found := false
				for _, h := range met[k][p] {
					found = found || h.play(&changed, nil) != nil
				}
				if !found {
					t.Errorf("%s, %s: no history finds that it %s where it %s", kindNames[k], phaseNames[p], ruleNames[r], ruleNames[course[k][p]])
				}
			}
		}
	}
}

// others are the rules that an entry might be instead: none, and those of its row and its
// column.
func others(k kind, p phase) (all []rule) {
	seen := map[rule]bool{course[k][p]: true}
	add := func(r rule) {
		if !seen[r] {
			seen[r] = true
			all = append(all, r)
		}
	}
	add(ignores)
	for _, r := range course[k] {
		add(r)
	}
	if course[k][p] != ignores {
		for other := range kinds {
			add(course[other][p])
		}
	}
	return all
}
