package engine

import (
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// A server may lose a release: it restarts from an older snapshot, or a replica takes over that had not heard of
// it. Then it has the hold again. A short lease ends there by itself. A hold without end does not: its node
// lives, so nobody else may end it. Therefore the engine remembers such releases, and asks each again after a sign
// that the server has lost something. A release names the claim, whose id is used once, and its node, so it ends
// nothing else.

const (
	// mostGiven is how many releases are remembered. Of one that is forgotten, nobody asks again.
	mostGiven = 10_000
	// givenAtOnce is how many of them are asked again at a time.
	givenAtOnce = 8
)

// given is the releases that are remembered. It is safe for concurrent use.
type given struct {
	mu     sync.Mutex
	all    []gave         // guarded by mu: a ring, the oldest at next once it is full
	next   int            // guarded by mu
	fences map[Line]int64 // guarded by mu: the greatest fence of a name among them
	asks   bool           // guarded by mu: a goroutine asks again
	again  bool           // guarded by mu: a sign has come since it began
}

// gave is one release.
type gave struct {
	at    Line
	claim string
	fence int64
}

// add remembers a release, and reports whether it is the first one.
func (g *given) add(r gave) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fences == nil {
		g.fences = make(map[Line]int64)
	}
	g.fences[r.at] = max(g.fences[r.at], r.fence)
	if len(g.all) < mostGiven {
		g.all = append(g.all, r)
		return len(g.all) == 1
	}
	if old := g.all[g.next]; g.fences[old.at] == old.fence {
		delete(g.fences, old.at)
	}
	g.all[g.next] = r
	g.next = (g.next + 1) % mostGiven
	return false
}

// above reports whether a name's grant with that fence follows a greater one.
func (g *given) above(at Line, fence int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fences[at] > fence
}

// begin reports whether the caller is to ask again; if somebody does already, he does so once more.
func (g *given) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.all) == 0 || g.asks {
		g.again = g.asks
		return false
	}
	g.asks = true
	return true
}

// take returns what is to be asked again.
func (g *given) take() []gave {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.again = false
	return append(append(make([]gave, 0, len(g.all)), g.all[g.next:]...), g.all[:g.next]...)
}

// end ends the asking, unless a sign has come since take.
func (g *given) end() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asks = g.again
	return !g.again
}

// remember keeps a release that was sent, answered or not, of a hold that would not end on the server within a
// wait lease.
func (e *Engine) remember(c *Claim) {
	m := c.see()
	if m.grant.fence == 0 || m.terms.Lease <= c.Record.Wait {
		return
	}
	if e.given.add(gave{c.line(), c.ID, m.grant.fence}) {
		e.hub.Start() // that it is made anew is a sign
	}
}

// LostData is called at a sign that a server has lost what it knew: a subscription that was made anew, a claim of
// this node that the server does not know, a fence or the number of the notice that has gone back. It waits for
// nothing.
func (e *Engine) LostData() {
	if !e.given.begin() {
		return
	}
	if !e.begin() {
		return // Close gives back what there is
	}
	defer e.work.Done()
	e.spawn(e.giveAgain)
}

// giveAgain asks each release again, all of them as often as a sign has come meanwhile. Passes begin a wait lease
// apart, and so do tries where the server does not answer.
func (e *Engine) giveAgain() {
	ctx, cancel := context.WithCancel(scriptkit.Internal(context.Background()))
	defer cancel()
	e.spawn(func() {
		select {
		case <-e.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		err := e.giveAll(ctx, e.given.take())
		if err == nil && e.given.end() {
			return
		}
		timer := time.NewTimer(e.cfg.Wait)
		select {
		case <-timer.C:
		case <-e.closing:
			timer.Stop()
			return
		}
	}
}

// giveAll asks releases again until one is not answered.
func (e *Engine) giveAll(ctx context.Context, all []gave) (failed error) {
	var mu sync.Mutex
	var work sync.WaitGroup
	slots := make(chan struct{}, givenAtOnce)
	for _, r := range all {
		slots <- struct{}{}
		mu.Lock()
		stop := failed != nil || e.isClosing()
		mu.Unlock()
		if stop {
			break
		}
		work.Go(func() {
			defer func() { <-slots }()
			if err := e.give(ctx, r); scriptkit.Repeatable(err) {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return failed
}

// give asks one release again.
func (e *Engine) give(ctx context.Context, r gave) error {
	c := &Claim{ID: r.claim, Kind: r.at.Kind, Name: r.at.Name, Record: Record{Node: e.cfg.Node, Lease: berth.Forever}}
	c.begins(ctx, e.clock.Now(), true)
	ctx, cancel := scriptkit.Limit(ctx, e.cfg.CleanupTimeout)
	defer cancel()
	parting, err := e.cfg.Scripts.Release(ctx, c, 0)
	if err != nil {
		return err
	}
	if parting.More {
		e.sweepSoon(r.at)
	}
	if parting.Word == GivenBack || parting.Word == HadExpired {
		e.event(observe.ReleasedAgain, c, func(ev *observe.Event) { ev.Fence = parting.Fence })
	}
	return nil
}
