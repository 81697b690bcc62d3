package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/pace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

const (
	// releasesAtOnce is how many releases of a releaseAll are under way at a time on one server, but for those that
	// others have overtaken.
	releasesAtOnce = 256
	// A release counts as overtaken when others were answered after it began, and it has taken twice what answers take:
	// overtakenAfter at the least, overtakenBy at the most.
	overtakenAfter, overtakenBy = 10 * time.Millisecond, 250 * time.Millisecond
)

// giving is what a releaseAll gives back to one server. Where all is silent, no more than releasesAtOnce are asked for, and
// Config.Retry bounds that silence. Where some releases are answered and others are not, as of names on a shard that is
// away, those that are overtaken leave their places to others, and Config.Retry bounds all of them together; one that
// begins late has a CallTimeout. Where all that are asked for are away, the others are given up with them: nobody can tell
// them apart.
type giving struct {
	e      *Engine
	within time.Duration
	places chan struct{}

	mu       sync.Mutex
	turns    []*turn       // guarded by mu: those that had a place when they were last looked at, the oldest first
	answered time.Duration // guarded by mu: when an answer last came, on the engine's clock
	slow     time.Duration // guarded by mu: how long answers take: the last one, or half of what it was before that
	look     *time.Timer   // guarded by mu: for the next look at those that are overtaken; nil before the first
	due      time.Duration // guarded by mu: when that look comes; 0 for never
	until    time.Duration // guarded by mu: when the overtaken ones have to end; 0 while none is known
}

// turn is a release that was begun.
type turn struct {
	since     time.Duration
	overtaken bool // guarded by giving.mu: others were answered after it began, and it has left its place to them
	over      bool // guarded by giving.mu
}

func (e *Engine) newGiving() *giving {
	return &giving{
		e: e, within: pace.Within(e.cfg.Retry), places: make(chan struct{}, releasesAtOnce), answered: e.clock.Now(),
	}
}

// release gives a hold back. It is called with a place, which it leaves.
func (g *giving) release(ctx context.Context, h *Hold) error {
	t, remaining, silence := g.begin()
	answered := false // also where an observer ends the goroutine
	defer func() { g.end(t, answered) }()
	if remaining <= 0 {
		err := fmt.Errorf("berth: %q was not given back, no release was answered for %s: %w",
			h.c.Name, silence.Round(time.Millisecond), berth.ErrUnavailable)
		g.e.onCall(ctx, h.c, &event{kind: evReleaseFailed, cause: err})
		return err
	}
	if remaining < g.within {
		var cancel context.CancelFunc
		ctx, cancel = scriptkit.Limit(ctx, remaining)
		defer cancel()
	}
	err := h.release(ctx, true)
	answered = !scriptkit.Repeatable(err)
	return err
}

// begin notes a release that begins. It returns how long that may take, 0 where nothing has been answered for too long, and
// for how long nothing has.
func (g *giving) begin() (t *turn, remaining, silence time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.e.clock.Now()
	t, remaining, silence = &turn{since: now}, g.within, now-g.answered
	g.turns = append(g.turns, t)
	if g.until > 0 {
		remaining = max(g.until-now, min(remaining, g.e.cfg.CallTimeout))
	}
	if silence >= g.within || g.until > 0 && now >= g.until && silence >= g.e.cfg.CallTimeout {
		remaining = 0
	}
	return t, remaining, silence
}

// end notes the end of a release, which leaves its place. An answer has others looked at that it has overtaken.
func (g *giving) end(t *turn, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.over = true
	switch {
	case answered:
		g.answered = g.e.clock.Now()
		g.slow = max(g.answered-t.since, g.slow/2)
		g.lookSoon()
	case t.overtaken || t.since < g.answered:
		g.bound(t)
	}
	if !t.overtaken {
		<-g.places
	}
}

// bound has a release that is overtaken, and all others that will be, end in time; mu is held.
func (g *giving) bound(t *turn) {
	if g.until == 0 {
		g.until = t.since + g.within
	}
}

// late is how long a release has to take before it counts as overtaken; mu is held.
func (g *giving) late() time.Duration { return min(max(overtakenAfter, 2*g.slow), overtakenBy) }

// lookSoon has somebody look at those that are overtaken; mu is held.
func (g *giving) lookSoon() {
	at := g.e.clock.Now() + g.late()
	switch {
	case g.due > 0 && g.due <= at:
		return
	case g.look == nil:
		g.look = time.AfterFunc(g.late(), g.pass)
	default:
		g.look.Reset(g.late())
	}
	g.due = at
}

// stop ends the looks.
func (g *giving) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.look != nil {
		g.look.Stop()
	}
}

// pass has those leave their places that are overtaken.
func (g *giving) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.due = 0
	for now := g.e.clock.Now(); len(g.turns) > 0; g.turns = g.turns[1:] {
		switch t := g.turns[0]; {
		case t.over:
		case t.since >= g.answered:
			return
		case now-t.since < g.late():
			g.lookSoon()
			return
		default:
			t.overtaken = true
			g.bound(t)
			<-g.places
		}
	}
}

// releaseAll ends the handles of the claims, gives back their holds, and returns how
// many it could not. Config.Retry bounds it once for all, see giving. Handles without a lease end with the cause. ctx has
// the values of the call, and does not end.
func (e *Engine) releaseAll(ctx context.Context, claims []*Claim, cause error) (failed int, err error) {
	servers := map[int][]*Hold{}
	for _, c := range claims {
		if !c.see().grant.handed {
			continue // its own caller gives it back
		}
		if mine, _ := c.handle.retire(ctx, cause); mine {
			server := e.doors.of(c.key)
			servers[server] = append(servers[server], &c.handle)
		}
	}
	errs, count := make(chan error), 0
	for _, holds := range servers {
		count += len(holds)
		g := e.newGiving()
		defer g.stop()
		go func() {
			for _, h := range holds {
				g.places <- struct{}{}
				go func() {
					err := berth.ErrUnavailable // where that ends the goroutine
					defer func() { errs <- err }()
					err = g.release(ctx, h)
				}()
			}
		}()
	}
	var told []error
	for range count {
		// What had ended before is no failure of Close.
		if err := <-errs; err != nil && !errors.Is(err, berth.ErrNotHeld) && !errors.Is(err, berth.ErrReleased) {
			failed++
			told = append(told, err)
		}
	}
	return failed, few(told)
}
