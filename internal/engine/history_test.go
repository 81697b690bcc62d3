package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
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
// from there on, "bounded" that the limit set the first one, and "fixed" that no heartbeat renews it.
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
	seen map[time.Duration]snapshot // of the calls, by their start
	most time.Duration              // of a hold that was taken up, as Claim.most
	met  func(eventKind, phase)     // nil for nobody
	told int                        // how often observe.Queued was told
}

const second = time.Second

// play plays a history by a table, and returns where it comes out differently. met is told
// of each event, and the phase that it met; it may be nil.
func (h *history) play(by *table, met func(eventKind, phase)) (err error) {
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
			before = []string{"ask", "granted confirmed fence=9 resource=r left=" + all(&c.Record), "look"}
		default:
			panic("no word of a claim: " + word)
		}
	}
	s := &story{m: begin(c, false), seen: make(map[time.Duration]snapshot), met: met}
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
	fx := s.m.on(*ev)
	if fx.tell == observe.Queued {
		s.told++
	}
	if s.told > 1 || s.m.queued() != (s.told == 1) || fx.has(doJoin) != (fx.tell == observe.Queued) {
		panic("who waits cannot be counted: " + strings.Join(words, " "))
	}
	if ev.kind == evCall {
		s.seen[ev.start] = fx.seen
	}
	if whole && reflect.DeepEqual(before, s.m) && reflect.DeepEqual(fx, effects{}) {
		return "="
	}
	return phaseNames[s.m.phase] + ":" + s.effects(ev, &fx)
}
