package engine

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
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
// The names are those of the fields of event and of what it consists of; @ is the moment, which
// stays that of the line before, and from= the start of the call that an answer is to, which is
// that moment where it is left out. "-> =" says that nothing changes, and nothing is to be done.
// "show -> ..." says what is known then. "until" and "limit" are the deadlines that the hold has
// from there on, and "fixed" says that no heartbeat renews it.
//
// A history begins with its rule, as a title; the line below may say what its claim asks for,
// and that it waits at place a, or holds 9 of r, since 0 s. The wait lease is 6 s, and the lease
// too, so that the margin of both is 62 ms: 2 ms, and a hundredth. A history with a|b is played
// with a, and then with b; where it has several such choices, with the first of each, then with
// the second.

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
func histories(t testing.TB) (all []*history) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		number := 1
		for _, block := range strings.Split(string(text), "\n\n") {
			for i := range most(block) {
				all = append(all, readHistory(t, filepath.Base(file), number, chosen(block, i)))
			}
			number += strings.Count(block, "\n") + 2
		}
	}
	return all
}

func readHistory(t testing.TB, file string, number int, block string) *history {
	t.Helper()
	h := &history{file: file}
	for i, line := range strings.Split(strings.TrimSpace(block), "\n") {
		title, isTitle := strings.CutPrefix(line, "# ")
		words, isClaim := strings.CutPrefix(line, "claim")
		event, want, isEvent := strings.Cut(line, " -> ")
		switch {
		case isTitle && i == 0:
			h.title = title
		case isClaim && i == 1:
			h.claim = strings.Fields(words)
		case isEvent && i > 0:
			h.lines = append(h.lines, storyLine{number + i, strings.Fields(event), want})
		default:
			require.Fail(t, "no line of a history", "%s:%d: %s", file, number+i, line)
		}
	}
	return h
}

// choice is a choice, with the name of what is chosen.
var choice = regexp.MustCompile(`([^\s|():=]+=)?([^\s|():]+(?:\|[^\s|():]+)+)`)

// chosen is a text with the i-th of each choice, or the first ones again where there are fewer.
func chosen(text string, i int) string {
	return choice.ReplaceAllStringFunc(text, func(found string) string {
		parts := choice.FindStringSubmatch(found)
		choices := strings.Split(parts[2], "|")
		one := choices[i%len(choices)]
		if strings.Contains(one, "=") { // it has a name of its own
			return one
		}
		return parts[1] + one
	})
}

// most is how many there are to choose from, at least one.
func most(text string) int {
	n := 1
	if !strings.Contains(text, "|") {
		return n
	}
	for _, parts := range choice.FindAllStringSubmatch(text, -1) {
		n = max(n, strings.Count(parts[2], "|")+1)
	}
	return n
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
	secret, before := "s", []string(nil)
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
		case "waits":
			before = []string{"ask", "queued left=6s place=a"}
		case "holds":
			before = []string{"ask", "granted confirmed fence=9 resource=r left=" + all(&c.Record), "handed"}
		default:
			panic("no word of a claim: " + word)
		}
	}
	s := &story{m: begin(c), seen: make(map[time.Duration]sight), met: met}
	s.m.course, s.m.news.secret = by, secret
	for _, line := range before {
		s.line(strings.Fields(line), false)
	}
	for _, line := range h.lines {
		if got := s.line(line.words, line.want == "="); got != line.want {
			return fmt.Errorf("%s:%d: %s\n%s\n  want %s\n  got  %s", h.file, line.number, h.title, strings.Join(line.words, " "), line.want, got)
		}
	}
	return nil
}

// all is a whole lease, as a word.
func all(r *Record) string {
	l := Terms{Lease: r.Lease, MaxHold: r.MaxHold}.lease()
	if l == berth.Forever {
		return "endless"
	}
	return l.String()
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
	if whole && reflect.DeepEqual(before, s.m) && reflect.DeepEqual(fx, effects{}) {
		return "="
	}
	return phaseNames[s.m.phase] + ":" + s.effects(ev, &fx)
}

// effects are what the engine has to do, as text.
func (s *story) effects(ev *event, fx *effects) string {
	var text strings.Builder
	for i, name := range deedNames {
		if fx.do&(1<<i) != 0 {
			text.WriteString(" " + name)
		}
	}
	if g, timed := deadlines(ev, fx); timed {
		var spec heartbeat.Spec
		s.m.time(&spec, g)
		fmt.Fprintf(&text, " until %s limit %s", when(spec.Deadline), when(spec.Limit))
		if !spec.Renews {
			text.WriteString(" fixed")
		}
	} else if fx.left != 0 {
		fmt.Fprintf(&text, " left %s", seconds(fx.left))
	}
	if fx.tell != "" {
		text.WriteString(" tell " + string(fx.tell))
	}
	if fx.tell == observe.Unavailable {
		fmt.Fprintf(&text, " calls %d since %s err %s", fx.silence.calls, seconds(fx.silence.since), said(fx.silence.err))
	}
	if fx.has(doFinish) {
		text.WriteString(" end " + said(fx.end))
	}
	if fx.err != nil {
		text.WriteString(" err " + said(fx.err))
	}
	return text.String()
}

// deadlines is what the deadlines of a hold are set by after an event, as the engine does.
func deadlines(ev *event, fx *effects) (g given, timed bool) {
	switch {
	case fx.has(doKeep):
		return fx.given, true
	case fx.has(doLoosen):
		return given{}, true
	case fx.has(doTake) && ev.kind == evHeld:
		return given{start: ev.start, left: fx.left, confirmed: true}, true
	}
	return given{}, false
}

func when(d time.Duration) string {
	if d == 0 {
		return "never"
	}
	return seconds(d)
}

// seconds has no minutes, which nobody adds in his head.
func seconds(d time.Duration) string { return fmt.Sprintf("%gs", float64(d.Milliseconds())/1000) }

// show is what is known, as text.
func (m *machine) show() string {
	words := []string{phaseNames[m.phase]}
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{m.grant.confirmed, "confirmed"},
		{m.news.lost, "lost"},
		{m.news.doubt, "doubt"},
		{m.news.swapping, "swapping"},
		{m.news.askAgain, "ask-again"},
		{m.end.own, "own"},
		{m.end.parted, "parted"},
		{m.end.mayRun, "released-perhaps"},
	} {
		if flag.set {
			words = append(words, flag.name)
		}
	}
	if m.lease.mayRun {
		words = append(words, "may-run="+seconds(m.lease.since))
	}
	if m.place.at != "" {
		words = append(words, fmt.Sprintf("place=%s heard=%s left=%s", m.place.at, seconds(m.place.heard), seconds(m.place.left)))
	}
	if m.place.ticket != 0 {
		words = append(words, fmt.Sprintf("ticket=%d", m.place.ticket))
	}
	if m.grant.fence != 0 {
		words = append(words, fmt.Sprintf("fence=%d", m.grant.fence))
	}
	if m.grant.resource != "" {
		words = append(words, "resource="+m.grant.resource)
	}
	if m.lease.capacity != 0 {
		words = append(words, fmt.Sprintf("capacity=%d", m.lease.capacity))
	}
	if m.news.sent != 0 {
		words = append(words, "beat="+seconds(m.news.sent))
	}
	if m.silence.calls > 0 {
		words = append(words, fmt.Sprintf("silent=%d", m.silence.calls))
	}
	if m.news.fresh {
		words = append(words, fmt.Sprintf("pushed=%d", m.news.pushed.fence))
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
	ev := &event{kind: kindNamed(words[0]), start: unasked, text: "s"}
	refusal, cut := &berth.AcquireError{}, false
	for _, word := range words[1:] {
		if at, ok := strings.CutPrefix(word, "@"); ok {
			s.now = duration(at)
			continue
		}
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "from":
			ev.start = duration(value)
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
		case "held":
			ev.held = int(number(value))
		case "waiting":
			ev.waiting = int(number(value))
		case "lease", "max-hold", "no-renew":
			ev.entry = entryWith(ev.entry, name, value)
		case "reason":
			refusal.Reason = berth.Reason(strings.ReplaceAll(value, "-", " "))
		case "cut":
			cut = true
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
	if ev.start == unasked && ev.kind != evMissed {
		ev.start = s.now
	}
	if refusal.Reason != "" {
		refusal.Cause, ev.cause = ev.cause, refusal
	}
	if cut { // as Engine.Acquire does where the wait has not ended by itself
		s.m.blame(refusal, s.now)
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
	{"canceled", context.Canceled},
	{"too-late", context.DeadlineExceeded},
	{"no-perm", errors.New("NOPERM")},
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
		text := strings.ReplaceAll(string(refusal.Reason), " ", "-")
		if refusal.Capacity != 0 {
			text += fmt.Sprintf("(capacity %d held %d waiting %d)", refusal.Capacity, refusal.Held, refusal.Waiting)
		}
		if refusal.Cause != nil {
			text += "(" + said(refusal.Cause) + ")"
		}
		return text
	}
	var names []string
	for _, c := range causes {
		if errors.Is(err, c.err) {
			names = append(names, c.name)
		}
	}
	name := cmp.Or(strings.Join(names, "+"), err.Error())
	if end, ok := errors.AsType[*berth.EndError](err); ok {
		return fmt.Sprintf("%s(fence %d after %s)", name, end.Fence, seconds(end.Held))
	}
	return name
}

// The constants in machine.go and state.go, which only tests and docs want to know by name.
var (
	kindNames, kindTexts = constants("machine.go", "kind", "ev")
	phaseNames, _        = constants("machine.go", "phase", "")
	ruleNames, ruleTexts = constants("machine.go", "rule", "")
	deedNames, _         = constants("state.go", "deed", "do")
)

func kindNamed(name string) kind {
	i := slices.Index(kindNames[:kinds], name)
	if i < 0 {
		panic("no event: " + name)
	}
	return kind(i)
}

// constants are the names of a type's constants in a file, without a prefix, as words, and
// what their comments say.
func constants(file, of, prefix string) (names, texts []string) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}
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
			value := spec.(*ast.ValueSpec)
			names = append(names, words(strings.TrimPrefix(value.Names[0].Name, prefix)))
			texts = append(texts, strings.TrimSpace(value.Comment.Text()))
		}
	}
	return names, texts
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

// change is an entry of the table that is another one; rules stands for any.
type change struct {
	kind  kind
	phase phase
	rule  rule
}

// unseen are the changes that no history can tell, and why.
var unseen = map[change]string{
	{evMissed, asking, misses}:     "no heartbeat of a claim that asks is on its way",
	{evLook, held, believes}:       "a push is of use only until the claim is granted",
	{evLook, loose, believes}:      "a push is of use only until the claim is granted",
	{evLook, detached, believes}:   "a push is of use only until the claim is granted",
	{evSwapOver, asking, unswaps}:  "an exchange begins only in a hold",
	{evSwapOver, waiting, unswaps}: "an exchange begins only in a hold",
	{evSwapOver, granted, unswaps}: "an exchange begins only in a hold",
	{evRelease, detached, repeats}: "what is detached counts as released, with nil: to repeat is to return that",
	{evParted, detached, parts}:    "what is detached counts as released, with nil: no answer says more",
}

// Every entry of the table is there for a reason, and so is every one that is not.
func TestAnEntryOfTheTableThatChangesIsFound(t *testing.T) {
	met, missed := metBy(histories(t)), make(map[change]bool)
	for k := range kinds {
		for p := range phases {
			for _, r := range others(k, p) {
				changed := course
				changed[k][p] = r
				if finds(met[k][p], &changed) {
					continue
				}
				known := change{k, p, r}
				if _, whole := unseen[change{k, p, rules}]; whole {
					known.rule = rules
				}
				missed[known] = true
				if unseen[known] == "" {
					t.Errorf("%s, %s: no history finds that it %s where it %s", kindNames[k], phaseNames[p], ruleNames[r], ruleNames[course[k][p]])
				}
			}
		}
	}
	for c, why := range unseen {
		if !missed[c] {
			t.Errorf("%s, %s is not unseen: %s", kindNames[c.kind], phaseNames[c.phase], why)
		}
	}
}

// finds says whether one of the histories comes out differently by a table.
func finds(all []*history, by *table) bool {
	return slices.ContainsFunc(all, func(h *history) bool { return h.play(by, nil) != nil })
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

var update = flag.Bool("update", false, "write the table of a claim into docs/architecture.md")

func TestTheDocumentShowsTheTable(t *testing.T) {
	const file, begin, end = "../../docs/architecture.md", "<!-- the table of a claim -->\n", "<!-- end of the table -->\n"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(text), begin)
	shown, after, ends := strings.Cut(rest, end)
	require.True(t, begins && ends, "the document has a place for the table")
	if want := tableText(); *update {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o600))
	} else {
		require.Equal(t, want, shown, "go test ./internal/engine -run TestTheDocumentShowsTheTable -update writes it")
	}
}

// tableText is the table as Markdown, and what its rules do.
func tableText() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n| event | | %s |\n|%s\n", strings.Join(phaseNames[:phases], " | "), strings.Repeat("---|", int(phases)+2))
	for k := range kinds {
		fmt.Fprintf(&text, "| %s | %s |", kindNames[k], kindTexts[k])
		for _, r := range course[k] {
			if r != ignores {
				text.WriteString(" " + ruleNames[r])
			}
			text.WriteString(" |")
		}
		text.WriteString("\n")
	}
	text.WriteString("\n")
	for r := ignores + 1; r < rules; r++ {
		fmt.Fprintf(&text, "- **%s**: %s\n", ruleNames[r], ruleTexts[r])
	}
	return text.String() + "\n"
}
