package line

import (
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

const (
	// thinTerms is the size of the longest fixed terms, in bytes, that a thin name takes; see
	// scripts/state/thin.lua.
	thinTerms = 512
	// fatFor is how long a name is not asked for by the script of thin names after that
	// has said that it is fat, or held.
	fatFor = 10 * time.Second
	// namesKept is how many names a node remembers.
	namesKept = 4096
)

// known is what a node keeps of a name: nothing rests on it but speed.
type known struct {
	keys []string      // the name's Redis keys
	fat  time.Duration // until when its scripts of thin names are not tried, on the clock
}

// names keeps what is known of the names that were used last. It is safe for concurrent use.
type names struct {
	mu     sync.Mutex
	recent map[string]*known
	before map[string]*known // those that were recent; one that is used again becomes recent
}

// of returns what is known of a name; keysOf makes its keys.
func (n *names) of(name string, keysOf func(string) []string) (keys []string, fat time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.recent[name]
	if k == nil {
		if k = n.before[name]; k == nil {
			k = &known{keys: keysOf(name)}
		}
		if len(n.recent) >= namesKept/2 || n.recent == nil {
			n.recent, n.before = map[string]*known{}, n.recent
		}
		n.recent[name] = k
	}
	return k.keys, k.fat
}

// found takes note that a name is fat.
func (n *names) found(name string, until time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.recent[name]; k != nil {
		k.fat = until
	}
}

// hold is what a thin name is told of a hold beside its claim.
type hold struct{ terms, lives string }

// asked is what a hold is made of, but for metadata.
type asked struct {
	wait, lease, maxHold time.Duration
	noRenew              bool
	priority             int
	owner, label         string
}

// made is the hold that was made last: most calls for names of a kind ask for the same.
type made struct {
	asked
	hold
}

// fits says whether a claim can be held by a thin name, and returns its hold.
func (s *Calls) fits(c *engine.Claim) (h hold, ok bool) {
	r := &c.Record
	if !s.thin || c.Capacity != 1 || r.Weight != 1 || r.Lease == berth.Forever || r.Lease > r.Wait || r.Lease > s.cfg.Settings.Linger {
		return hold{}, false
	}
	a := asked{r.Wait, r.Lease, r.MaxHold, r.NoRenew, r.Priority, r.Owner, r.Label}
	if last := s.made.Load(); last != nil && last.asked == a && len(r.Meta) == 0 {
		return last.hold, true
	}
	// The fixed terms have no secret: nobody pushes a grant of a thin name.
	h = hold{state.FixedTerms(r), Decimal((r.Lease + s.cfg.Settings.Linger).Milliseconds())}
	if len(h.terms) > thinTerms {
		return hold{}, false
	}
	if len(r.Meta) == 0 {
		s.made.Store(&made{a, h})
	}
	return h, true
}

// acquireThin asks for a claim by the script of thin names. It reports false where the general
// script has to be asked.
func (s *Calls) acquireThin(ctx context.Context, c *engine.Claim) (a engine.Answer, ok bool, err error) {
	hold, ok := s.fits(c)
	if !ok {
		return a, false, nil
	}
	keys, fat := s.names.of(c.Name, s.keys)
	if fat != 0 && fat > s.cfg.Clock.Now() {
		return a, false, nil
	}
	r, err := s.cfg.Runner.Run(ctx, composed.ThinAcquire, scriptkit.Once, keys[:1], []string{c.ID, hold.terms, hold.lives})
	if err != nil {
		return a, false, err
	}
	if r.Status() != scriptkit.Plain {
		s.names.found(c.Name, s.cfg.Clock.Now()+fatFor)
		return a, false, nil
	}
	c.Thin.Store(true)
	return s.plain(c, r.Int(1)), true, r.Err()
}

// plain is the answer to a claim that got at once what it asked for, of which the server says no more than the fence.
func (s *Calls) plain(c *engine.Claim, fence int64) engine.Answer {
	left := c.Record.Lease
	if limit := c.Record.MaxHold; limit > 0 {
		left = min(left, limit)
	}
	a := engine.Answer{
		Granted: true, Confirmed: true, Ticket: fence / 1000, Fence: fence, Left: left, NextDeadline: engine.NextDeadline{In: -1},
	}
	if s.kind.Kind == keyspace.Sem {
		a.Capacity = c.Capacity
	}
	return a
}

// releaseThin gives a hold of a thin name back. It reports false where the general script has
// to be asked, and whether this call may have run without an answer.
func (s *Calls) releaseThin(ctx context.Context, c *engine.Claim) (done, unanswered bool, err error) {
	keys, _ := s.names.of(c.Name, s.keys)
	r, err := s.cfg.Runner.Run(ctx, composed.ThinRelease, scriptkit.Bounded, keys[:1], []string{c.ID})
	if err != nil {
		return false, false, err
	}
	if r.Status() != scriptkit.Plain {
		c.Thin.Store(false)
		return false, r.Unanswered, nil
	}
	return true, r.Unanswered, nil
}
