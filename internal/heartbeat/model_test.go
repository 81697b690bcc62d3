package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/testkit/amount"
)

// claimModel is what must be true of one lease.
type claimModel struct {
	Lease
	key    string
	spec   Spec
	end    time.Duration // on the server, where nothing renews it
	change time.Duration // when its deadline or its being a hold last changed
	since  time.Duration // start of its last beat, or of what set it
	set    int           // how often its deadline was set by an Update, or lowered by a beat
	heard  time.Duration // start of the newest beat that was answered
	until  time.Duration // when the beat that it is in flight with counts as unanswered, 0 for none
	beat   int           // which one that is
	limits bool          // its last answer was bounded by the limit
	early  bool          // it may be beaten again at any time
	hurt   bool          // its server once did not answer well
	gone   bool          // the server no longer knows it
	over   bool          // Ended was called, or the beat that heard that it is gone removed it
	overAt time.Duration // when
	away   bool          // it was removed
}

// keyModel is the server of one key.
type keyModel struct {
	mode  string // "works", "slow", "fails", "hangs", "skips"
	delay time.Duration
}

// model checks an engine against the rules, call by call.
type model struct {
	engine *Engine
	clock  clock.Clock
	size   int

	mu     sync.Mutex
	keys   map[string]*keyModel
	claims []*claimModel
	beats  int   // how many were sent
	wrong  error // the first rule that was broken
}

func (m *model) broken(format string, args ...any) {
	if m.wrong == nil {
		m.wrong = fmt.Errorf("%s: %s", m.clock.Now(), fmt.Sprintf(format, args...))
	}
}

// beat is the server.
func (m *model) beat(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
	start := m.clock.Now()
	k, number, sets := m.begin(ctx, start, key, leases)
	switch k.mode {
	case "hangs":
		<-ctx.Done()
	default:
		time.Sleep(k.delay)
	}
	failed := k.mode == "fails" || k.mode == "hangs" || ctx.Err() != nil
	if !failed {
		m.removeGone(leases)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range leases {
		if c := l.Claim.(*claimModel); c.beat == number {
			c.until = 0
		}
	}
	if failed {
		return nil, errDown
	}
	outcomes := make([]Outcome, len(leases))
	for i, l := range leases {
		outcomes[i] = m.answer(l.Claim.(*claimModel), k.mode, start, sets[i])
	}
	return outcomes, nil
}

// removeGone removes what the server no longer knows. It is called without mu, which an
// Update takes under the engine's own.
func (m *model) removeGone(leases []*Lease) {
	for _, l := range leases {
		c := l.Claim.(*claimModel)
		m.mu.Lock()
		gone := c.gone && !c.over
		m.mu.Unlock()
		if gone {
			m.engine.Remove(l)
			m.mu.Lock()
			c.over, c.overAt = true, m.clock.Now()
			m.mu.Unlock()
		}
	}
}

// begin checks a call that starts, and notes what it does to the deadlines.
func (m *model) begin(ctx context.Context, start time.Duration, key string, leases []*Lease) (k keyModel, number int, sets []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beats++
	k, sets = *m.keys[key], make([]int, len(leases))
	flight := leases[0].Claim.(*claimModel).spec.track(key)
	if len(leases) == 0 || len(leases) > m.size {
		m.broken("%d leases in a batch", len(leases))
	}
	shortest, longest := never, time.Duration(0)
	for i, l := range leases {
		c := l.Claim.(*claimModel)
		// A batch that was gathered in the moment in which the claim ended has it.
		if c.beat == m.beats || c.over && c.overAt < start || c.away || c.key != key {
			m.broken("beat of a lease that is twice there, over, removed, or another key's")
		}
		if start < c.until {
			m.broken("two beats in flight for a lease")
		}
		if other := c.spec.track(key); other != flight {
			m.broken("%v and %v in a batch", flight, other)
		}
		m.started(c, start)
		c.hurt = c.hurt || k.mode != "works"
		c.early = k.mode == "fails" || k.mode == "hangs" || k.mode == "slow"
		shortest, longest = min(shortest, c.spec.pace()), max(longest, c.spec.pace())
		sets[i] = c.set
	}
	for _, l := range leases {
		c := l.Claim.(*claimModel)
		c.beat, c.until = m.beats, start+shortest/6
	}
	// Others of like pace may have come with it.
	if until, _ := ctx.Deadline(); time.Until(until) < longest || time.Until(until) >= 2*shortest {
		m.broken("limit %s for leases from %s to %s", time.Until(until), shortest, longest)
	}
	return k, m.beats, sets
}

// started checks that a beat of the claim is due, and lowers its deadline.
func (m *model) started(c *claimModel, start time.Duration) {
	third := c.spec.pace() / 3
	if soonest := c.since + third - third/10 - c.spec.pace()/9; start < soonest-1 && !c.early {
		m.broken("beat %s too early", soonest-start)
	}
	c.since = start
	if lowered := Deadline(start, c.spec.Lease, c.spec.Lease); c.spec.Renews && lowered < moment(c.spec.Deadline) {
		c.spec.Deadline, c.limits = lowered, false
		c.set++
	}
}

// answer is what the server says about a claim, and what must follow from it.
func (m *model) answer(c *claimModel, mode string, start time.Duration, set int) Outcome {
	now := m.clock.Now()
	if mode == "skips" {
		return Outcome{Skip: true}
	}
	left := c.end - now
	if c.spec.Renews {
		left = c.spec.Lease
	}
	left = min(left, moment(c.spec.Limit)-now)
	if late := c.spec.Ends && c.ends() <= now; !c.away && !c.over && !late && c.set == set && start >= c.heard {
		c.heard = start
		c.spec.Deadline, c.change = Deadline(start, left, c.spec.Lease), now
		c.limits = c.spec.Renews && c.spec.Limit != 0 && left < c.spec.Lease
	}
	return Outcome{Left: left}
}

// ends is when the claim must end, if it is a hold.
func (c *claimModel) ends() time.Duration {
	return max(c.change, min(moment(c.spec.Deadline), moment(c.spec.Limit)))
}

// ended is the Ended callback.
func (m *model) ended(c *claimModel, cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	switch {
	case c.gone && c.over && c.overAt == now: // it was removed when this call had begun
	case c.over || c.away:
		m.broken("ended again, or after it was removed")
	case !c.spec.Ends:
		m.broken("a claim that waits ended by %v", cause)
	case now != c.ends():
		m.broken("ended by %v, due at %s", cause, c.ends())
	case errors.Is(cause, ErrLimit) != (c.limits || moment(c.spec.Limit) <= c.spec.Deadline):
		m.broken("ended by %v with deadline %s and limit %s", cause, c.spec.Deadline, c.spec.Limit)
	case errors.Is(cause, ErrDeadline) && c.spec.Renews && !c.hurt:
		m.broken("ended although every beat succeeded")
	}
	c.over, c.overAt = true, now
}

// check compares every lease with its model while nothing moves.
func (m *model) check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	for _, c := range m.claims {
		if c.away || c.over {
			continue
		}
		if c.spec.Ends && c.ends() <= now {
			m.broken("still believed in, over since %s", c.ends())
		}
		if got, want := c.Deadline(), min(moment(c.spec.Deadline), moment(c.spec.Limit)); got != want {
			m.broken("deadline %s, not %s", got, want)
		}
		if err := c.Err(now); err != nil {
			m.broken("over with %v, but nobody was told", err)
		}
	}
	return m.wrong
}

// The methods below are the steps of the test.

func (m *model) add(t *rapid.T) {
	c := &claimModel{}
	c.Claim = c
	m.mu.Lock()
	m.claims = append(m.claims, c)
	m.mu.Unlock()
	m.anew(t, c)
}

// paces are such that two of them have a lane in common.
var paces = []time.Duration{time.Second, 9 * time.Second, 12 * time.Second, time.Minute}

// anew adds a claim, which may be there already.
func (m *model) anew(t *rapid.T, c *claimModel) {
	m.mu.Lock()
	now := m.clock.Now()
	c.key = rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "key")
	c.spec = Spec{
		Lease:  rapid.SampledFrom(paces).Draw(t, "lease"),
		Ends:   rapid.Bool().Draw(t, "hold"),
		Renews: rapid.IntRange(0, 3).Draw(t, "fixed if 0") > 0,
	}
	if rapid.IntRange(0, 4).Draw(t, "limited if 0") == 0 {
		c.spec.Limit = now + time.Duration(rapid.IntRange(1, 60_000).Draw(t, "limit"))*ms
	}
	c.end = now + c.spec.Lease
	c.spec.Deadline = Deadline(now, c.spec.Lease, c.spec.Lease)
	c.spec.Ended = func(_ *Lease, cause error) { m.ended(c, cause) }
	c.change, c.since, c.limits, c.early = now, now, false, false
	c.until = 0
	c.set++
	c.hurt = m.keys[c.key].mode != "works"
	spec := c.spec
	m.mu.Unlock()
	m.engine.Add(&c.Lease, c.key, spec)
}

// repace has the claim beaten at another pace.
func (m *model) repace(c *claimModel, pace time.Duration) {
	m.engine.Update(&c.Lease, func(s *Spec) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if s.Pace == pace {
			return
		}
		s.Pace, c.spec.Pace = pace, pace
		c.hurt, c.early = true, true // what is in flight has the limit of the old one
		c.change = m.clock.Now()
		c.set++
	})
}

// some draws one of the claims that are left.
func (m *model) some(t *rapid.T) *claimModel {
	m.mu.Lock()
	defer m.mu.Unlock()
	var left []*claimModel
	for _, c := range m.claims {
		if !c.away && !c.over {
			left = append(left, c)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return left[rapid.IntRange(0, len(left)-1).Draw(t, "claim")]
}

func (m *model) remove(c *claimModel) {
	m.engine.Remove(&c.Lease)
	m.mu.Lock()
	defer m.mu.Unlock()
	c.away = true
}

func (m *model) forget(c *claimModel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.gone = true
}

func (m *model) grant(c *claimModel) {
	m.engine.Update(&c.Lease, func(s *Spec) {
		m.mu.Lock()
		defer m.mu.Unlock()
		s.Ends, c.spec.Ends = true, true
		c.change = m.clock.Now()
	})
}

func (m *model) extend(c *claimModel, by time.Duration) {
	m.engine.Update(&c.Lease, func(s *Spec) {
		m.mu.Lock()
		defer m.mu.Unlock()
		s.Deadline, s.Bounded = s.Deadline+by, false
		c.hurt = c.hurt || by < 0 || c.limits // possibly more than a beat can save
		c.spec.Deadline, c.change = s.Deadline, m.clock.Now()
		c.limits, c.early = false, true
		c.end += by
		c.set++
	})
}

func (m *model) kick(key string) {
	m.mu.Lock()
	for _, c := range m.claims {
		c.early = c.early || key == "" || key == c.key
	}
	m.mu.Unlock()
	m.engine.Kick(key)
}

func (m *model) turn(t *rapid.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "key")
	k := m.keys[key]
	k.mode = rapid.SampledFrom([]string{"works", "works", "slow", "fails", "hangs", "skips"}).Draw(t, "mode")
	k.delay = time.Duration(rapid.IntRange(0, 10).Draw(t, "delay")) * ms
	if k.mode == "slow" {
		k.delay *= 500
	}
	for _, c := range m.claims {
		c.hurt = c.hurt || c.key == key && k.mode != "works"
	}
}

func (m *model) step(t *rapid.T) {
	switch op := rapid.IntRange(0, 21).Draw(t, "op"); {
	case op < 6:
		m.add(t)
	case op < 8:
		m.turn(t)
	case op == 8:
		m.kick(rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "kick"))
	case op < 15:
		c := m.some(t)
		if c == nil {
			return
		}
		switch op {
		case 9:
			m.remove(c)
		case 10:
			m.forget(c)
		case 11:
			m.grant(c)
		case 12:
			// Never by nothing, which an Update would not count as a change.
			m.extend(c, time.Duration(rapid.IntRange(-5000, 20_000).Draw(t, "by"))*ms+1)
		case 13:
			m.anew(t, c)
		case 14:
			m.repace(c, rapid.SampledFrom(paces).Draw(t, "pace"))
		}
	default:
		time.Sleep(time.Duration(rapid.IntRange(1, 8000).Draw(t, "sleep")) * ms)
	}
}

func TestEngineKeepsTheRulesWhateverHappens(t *testing.T) {
	require.NoError(t, amount.Histories(100))
	synctest.Test(t, func(t *testing.T) {
		// Hidden in a TB, because rapid asks a T for what bubbles do not have.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			jitter := rapid.Float64Range(0, 0.999).Draw(t, "jitter")
			m := &model{
				clock: clock.New(),
				size:  rapid.IntRange(1, 5).Draw(t, "batch size"),
				keys:  map[string]*keyModel{},
			}
			for _, key := range []string{"x", "y", "z"} {
				m.keys[key] = &keyModel{mode: "works"}
			}
			m.engine = New(Config{
				Clock: m.clock, Beat: apart(m.beat), BatchSize: m.size,
				Rand: func() float64 { return jitter },
			})
			defer m.engine.Stop()
			for range rapid.IntRange(1, 60).Draw(t, "steps") {
				m.step(t)
				synctest.Wait()
				if err := m.check(); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range m.claims {
				m.remove(c)
			}
			time.Sleep(10 * time.Second) // a sixth of the longest
			synctest.Wait()
			m.engine.mu.Lock()
			m.engine.pending.each(never, func(l *Lease) { t.Fatalf("%v is pending", l.Claim) })
			left := len(m.engine.lanes) + m.engine.doors[0].ready.Len() + m.engine.events.Len()
			m.engine.mu.Unlock()
			if left > 0 {
				t.Fatalf("%d lanes, or leases in them, are left", left)
			}
		})
	})
}
