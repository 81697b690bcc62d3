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
	// overtakenAfter is how long a release takes at the least that has been overtaken: others that came after it were
	// answered. It takes four times as long as the slowest answer, too.
	overtakenAfter = 10 * time.Millisecond
)

// giving is what a releaseAll gives back to one server. Where all is silent no more than releasesAtOnce are asked for, and
// Config.Retry bounds that silence. Where some releases are answered and others are not, as of names on a shard that is
// away, those that are overtaken leave their places to others, and Config.Retry bounds all of them together.
type giving struct {
	e      *Engine
	within time.Duration
	places chan struct{}

	mu       sync.Mutex
	asked    []*asked      // guarded by mu: those that have a place, the oldest first
	answered time.Duration // guarded by mu: when an answer last came, on the engine's clock
	slowest  time.Duration // guarded by mu: how long an answer has taken
	looks    bool          // guarded by mu: a look is due
	until    time.Duration // guarded by mu: when those end that are overtaken; 0 while none is
}

// asked is a release that has a place.
type asked struct {
	since time.Duration
	left  bool // guarded by giving.mu
}

func (e *Engine) newGiving() *giving {
	return &giving{
		e: e, within: pace.Within(e.cfg.Retry), places: make(chan struct{}, releasesAtOnce), answered: e.clock.Now(),
	}
}

// release gives a hold back. It is called with a place, which it leaves.
func (g *giving) release(ctx context.Context, h *Hold) error {
	a, left := g.begin()
	defer g.leave(a)
	if left <= 0 {
		err := fmt.Errorf("berth: %q was not given back, no release was answered for %s: %w", h.c.Name, g.within, berth.ErrUnavailable)
		g.e.onCall(ctx, h.c, &event{kind: evReleaseFailed, cause: err})
		return err
	}
	if left < g.within {
		var cancel context.CancelFunc
		ctx, cancel = scriptkit.Limit(ctx, left)
		defer cancel()
	}
	err := h.release(ctx)
	if !scriptkit.Repeatable(err) {
		g.answer(a)
	}
	return err
}

// begin notes a release that begins, and returns how long it may take: 0 where nothing has been answered for too long.
func (g *giving) begin() (a *asked, left time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.e.clock.Now()
	a, left = &asked{since: now}, g.within
	g.asked = append(g.asked, a)
	silent := now - g.answered
	if g.until > 0 {
		left = max(g.until-now, min(left, g.e.cfg.CallTimeout))
	}
	if silent >= g.within || g.until > 0 && now >= g.until && silent >= g.e.cfg.CallTimeout {
		left = 0
	}
	return a, left
}

// answer notes the answer to a release, and has somebody look at those that it has overtaken.
func (g *giving) answer(a *asked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered = g.e.clock.Now()
	g.slowest = max(g.slowest, g.answered-a.since)
	g.lookSoon()
}

// lookSoon is called with mu held.
func (g *giving) lookSoon() {
	if !g.looks {
		g.looks = true
		time.AfterFunc(g.late(), g.look)
	}
}

// late is how long a release takes that is overtaken; mu is held.
func (g *giving) late() time.Duration { return max(overtakenAfter, 4*g.slowest) }

// look has those leave their places that are overtaken.
func (g *giving) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.looks = false
	now, again := g.e.clock.Now(), false
	for len(g.asked) > 0 && (g.asked[0].left || g.asked[0].since < g.answered) {
		a := g.asked[0]
		if !a.left && now-a.since < g.late() {
			again = true
			break
		}
		if g.asked = g.asked[1:]; !a.left {
			a.left = true
			<-g.places
			if g.until == 0 {
				g.until = a.since + g.within
			}
		}
	}
	if again {
		g.lookSoon()
	}
}

// leave leaves the place of a release that has ended, where it still has one.
func (g *giving) leave(a *asked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !a.left {
		a.left = true
		<-g.places
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
			server := 0
			if e.cfg.Server != nil {
				server = e.cfg.Server(c.Name)
			}
			servers[server] = append(servers[server], &c.handle)
		}
	}
	errs, count := make(chan error), 0
	for _, holds := range servers {
		count += len(holds)
		g := e.newGiving()
		go func() {
			for _, h := range holds {
				g.places <- struct{}{}
				go func() { errs <- g.release(ctx, h) }()
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
