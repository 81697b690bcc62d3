package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
			ev.left = duration(value)
		case "most":
			s.most = duration(value)
		case "fence":
			ev.fence = number(value)
		case "resource":
			ev.resource = value
		case "confirmed":
			ev.confirmed = true
		case "late":
			ev.late = true
		case "may-run":
			ev.mayRun = true
		case "revives":
			ev.revives = true
		case "beat":
			ev.beats = true
		case "wanted":
			ev.wanted = true
		case "asked":
			ev.asked = true
		case "stale":
			ev.stale = true
		case "secret":
			ev.text, told = value, true
		case "place":
			ev.text = value
		case "ticket":
			ev.ticket = number(value)
		case "capacity":
			ev.counts.capacity = int(number(value))
		case "held":
			ev.counts.held = int(number(value))
		case "waiting":
			ev.counts.waiting = int(number(value))
		case "lease", "max-hold", "no-renew":
			ev.entry = entryWith(ev.entry, name, value)
		case "reason":
			refusal.Reason = berth.Reason(strings.ReplaceAll(value, "-", " "))
		case "cut":
			cut = true
		case "cause":
			ev.cause = causeNamed(value)
		case "word":
			ev.text = value
		case "unanswered":
			ev.again = true
		case "entries":
			ev.stays = number(value) > 0
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
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{m.grant.confirmed, "confirmed"},
		{m.wanted, "wanted"},
		{m.wants, "wants"},
		{m.grant.wanted, "wanted-before"},
		{m.news.lost, "lost"},
		{m.news.doubt, "doubt"},
		{m.news.swapping, "swapping"},
		{m.news.askAgain, "ask-again"},
		{m.end.own, "own"},
		{m.end.final, "final"},
		{m.end.mayRun, "released-perhaps"},
	} {
		if flag.set {
			words = append(words, flag.name)
		}
	}
	if m.terms.mayRun {
		words = append(words, "may-run="+seconds(m.terms.since))
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
	if m.terms.capacity != 0 {
		words = append(words, fmt.Sprintf("capacity=%d", m.terms.capacity))
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
