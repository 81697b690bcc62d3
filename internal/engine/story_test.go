package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
)

// What a history says of events, and what it is told of effects, as text.

// event reads a line.
func (s *story) event(words []string) *event {
	ev := &event{kind: kindNamed(words[0]), start: unasked}
	refusal, cut, told := &berth.AcquireError{}, false, false
	entry := &Entry{Terms: Terms{Lease: 6 * second}}
	fields := map[string]any{
		"from": &ev.start, "left": &ev.left, "most": &s.most,
		"fence": &ev.fence, "resource": &ev.resource, "ticket": &ev.ticket,
		"confirmed": &ev.confirmed, "late": &ev.late, "may-run": &ev.mayRun, "revives": &ev.revives, "beat": &ev.beats,
		"wanted": &ev.wanted, "asked": &ev.asked, "stale": &ev.stale, "unanswered": &ev.again, "cut": &cut,
		"secret": &ev.text, "place": &ev.text, "word": &ev.text,
		"capacity": &ev.counts.capacity, "held": &ev.counts.held, "waiting": &ev.counts.waiting,
		"lease": &entry.Lease, "max-hold": &entry.MaxHold, "no-renew": &entry.NoRenew,
	}
	for _, word := range words[1:] {
		if at, ok := strings.CutPrefix(word, "@"); ok {
			s.now = duration(at)
			continue
		}
		name, value, _ := strings.Cut(word, "=")
		if slices.Contains([]string{"lease", "max-hold", "no-renew"}, name) {
			ev.entry = entry
		}
		switch field := fields[name].(type) {
		case *time.Duration:
			*field = duration(value)
		case *int64:
			*field = number(value)
		case *int:
			*field = int(number(value))
		case *bool:
			*field = true
		case *string:
			*field = value
			told = told || name == "secret"
		default:
			switch name {
			case "reason":
				refusal.Reason = berth.Reason(strings.ReplaceAll(value, "-", " "))
			case "cause":
				ev.cause = causeNamed(value)
			case "entries":
				ev.stays = number(value) > 0
			default:
				panic("no word of an event: " + word)
			}
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
	if ev.text == "" && !told && (ev.kind == evPushed || ev.kind == evSecret) {
		ev.text = "s"
	}
	ev.seen = s.seen[ev.start]
	switch ev.kind {
	case evSaysHeld:
		ev.confirmed = true
	case evSaysEnded:
		ev.cause = berth.ErrReleased
	}
	return ev
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
	{"incompatible", berth.ErrIncompatible},
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

// effects are what the engine has to do, as text.
func (s *story) effects(ev *event, fx *effects) string {
	var text strings.Builder
	for i, name := range actionNames {
		if fx.do&(1<<i) != 0 {
			text.WriteString(" " + name)
		}
	}
	if g, timed := s.deadlines(ev, fx); timed {
		var spec heartbeat.Spec
		s.m.time(&spec, g)
		fmt.Fprintf(&text, " until %s limit %s", when(spec.Deadline), when(spec.Limit))
		if spec.Bounded {
			text.WriteString(" bounded")
		}
		if !spec.Renews {
			text.WriteString(" fixed")
		}
	} else if fx.left != 0 {
		fmt.Fprintf(&text, " left %s", seconds(fx.left))
	}
	if fx.tell != "" {
		text.WriteString(" tell " + string(fx.tell))
		if (&machine{}).over(fx.tell) && !fx.over {
			text.WriteString(" again")
		}
	}
	if fx.tell == observe.Unavailable {
		fmt.Fprintf(&text, " calls %d since %s err %s", fx.silence.calls, seconds(fx.silence.since), said(fx.silence.err))
	}
	if fx.end != nil {
		text.WriteString(" end " + said(fx.end))
	}
	if fx.tell != "" && fx.told != nil && fx.told != fx.result { //nolint:errorlint // the same, not one like it
		text.WriteString(" err " + said(fx.told))
	}
	if fx.result != nil {
		text.WriteString(" result " + said(fx.result))
	}
	return text.String()
}

// deadlines is what the deadlines of a hold are set by after an event, as the engine does.
func (s *story) deadlines(ev *event, fx *effects) (g timing, timed bool) {
	switch {
	case fx.has(doKeep):
		return timing{start: fx.start, left: fx.left, most: s.most, confirmed: s.m.grant.confirmed}, true
	case fx.has(doLoosen):
		return timing{}, true
	case fx.has(doUse) && ev.kind == evSaysHeld:
		return timing{start: ev.start, left: fx.left, confirmed: true, renews: true}, true
	}
	return timing{}, false
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
	add := func(known bool, format string, args ...any) {
		if known {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(m.grant.confirmed, "confirmed")
	add(m.wanted, "wanted")
	add(m.wants, "wants")
	add(m.grant.wanted, "wanted-before")
	add(m.news.lost, "lost")
	add(m.news.doubt, "doubt")
	add(m.news.swapping, "swapping")
	add(m.news.askAgain, "ask-again")
	add(m.end.own, "own")
	add(m.end.final, "final")
	add(m.end.mayRun, "released-perhaps")
	add(m.terms.mayRun, "may-run=%s", seconds(m.terms.since))
	add(m.place.at != "", "place=%s heard=%s left=%s", m.place.at, seconds(m.place.heard), seconds(m.place.left))
	add(m.place.ticket != 0, "ticket=%d", m.place.ticket)
	add(m.grant.fence != 0, "fence=%d", m.grant.fence)
	add(m.grant.resource != "", "resource=%s", m.grant.resource)
	add(m.terms.capacity != 0, "capacity=%d", m.terms.capacity)
	add(m.news.sent != 0, "beat=%s", seconds(m.news.sent))
	add(m.silence.calls > 0, "silent=%d", m.silence.calls)
	add(m.news.fresh, "pushed=%d", m.news.pushed.fence)
	add(m.news.secret != "s", "secret=%s", m.news.secret)
	if m.end.err != nil {
		words = append(words, "err="+said(m.end.err))
	}
	return strings.Join(words, " ")
}
