package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/scripts/composed"
)

// pause is what the model knows of the pause of the name. Times are milliseconds by the server's clock.
type pause struct {
	from, until int64 // 0 = none
	stamp       int64 // the revision before the last call that decided
}

// lasts says whether the name is paused.
func (p *pause) lasts(now int64) bool { return p.until > now }

// ended is when the pause has ended by itself, 0 for never.
func (p *pause) ended(now int64) int64 {
	if p.lasts(now) {
		return 0
	}
	return p.until
}

// pauses pauses the name, perhaps anew.
func (m *machine) pauses(t *rapid.T) {
	eighths := rapid.IntRange(1, 24).Draw(t, "lease by 8, times")
	if eighths == 24 {
		eighths *= 10 // longer than it is known that it was set
	}
	m.decide(t, m.Lease/8*time.Duration(eighths))
}

func (m *machine) unpauses(t *rapid.T) { m.decide(t, 0) }

// decide pauses the name for so long, or ends its pause.
func (m *machine) decide(t *rapid.T, lasts time.Duration) {
	before, ops := m.look(t), m.living(t).Operator()
	if lasts > 0 {
		must(t, ops.Pause(context.Background(), keyspace.Sem, m.Name, lasts, "by the model"))
	} else {
		must(t, ops.Unpause(context.Background(), keyspace.Sem, m.Name))
	}
	after := m.look(t)
	m.pause = pause{stamp: before.state["rev"]}
	if lasts > 0 {
		m.pause.from, m.pause.until = after.now, after.state["pause"]
		left := lasts.Milliseconds()
		if !m.Exact && m.pause.until == 0 && after.now >= before.now+left {
			m.pause.until = after.now // it has ended, as the machine had others to run
		}
		if m.pause.until < before.now+left || m.pause.until > after.now+left {
			t.Fatalf("a pause of %d ms ends in %d ms", left, m.pause.until-after.now)
		}
	}
}

// latePause has a copy of an older pause come, which writes nothing.
func (m *machine) latePause(t *rapid.T) {
	before := m.look(t)
	if before.decided <= m.pause.stamp || before.thin {
		t.Skip("nothing is known that would be newer")
	}
	script := composed.Library().Script("semaphore_pause")
	eval := m.Redis.B().Eval().Script(script.Source()).Numkeys(2).Key(m.keys()...).Arg(
		fmt.Sprint(linger.Milliseconds()), "nobody:", m.Name, "60000", "late", fmt.Sprint(m.pause.stamp), "n.late", "0").Build()
	reply, err := m.Redis.Do(context.Background(), eval).ToArray()
	must(t, err)
	word, err := reply[0].ToString()
	must(t, err)
	same(t, "the answer to a late pause", word, "stale")
	if after := m.look(t); m.Exact {
		same(t, "the name after a late pause, and before", fmt.Sprint(after), fmt.Sprint(before))
	}
}

// stays checks that the server knows of the pause, and keeps the name fat.
func (m *machine) stays(t *rapid.T, v *view) {
	if got := v.state["pause"]; got != m.pause.until && (got != 0 || m.pause.lasts(v.now)) {
		t.Fatalf("the pause ends at %d, in the model at %d; now it is %d", got, m.pause.until, v.now)
	}
	if v.thin && m.pause.lasts(v.now) {
		t.Fatal("a paused name is thin")
	}
}

// holdsBack checks a grant since the last look.
func (p *pause) holdsBack(t *rapid.T, c *claim, r engine.Record) {
	if at := r.Granted.UnixMilli(); !r.Granted.IsZero() && at > p.from && at < p.until {
		t.Fatalf("%s was granted %d ms before the end of the pause", c.id, p.until-at)
	}
}

// told checks what a claim is told that was refused because of the pause.
func (p *pause) told(t *rapid.T, m *machine, err error) {
	var refusal *berth.AcquireError
	if !errors.As(err, &refusal) || refusal.Reason != berth.ReasonPaused {
		return
	}
	same(t, "why the name is paused", refusal.Pause.Reason, "by the model")
	if left := p.until - m.last.now; m.Exact && refusal.Pause.Left.Milliseconds() != left {
		t.Fatalf("the pause lasts %s, in the model %d ms", refusal.Pause.Left, left)
	}
}
