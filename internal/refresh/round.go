package refresh

import (
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/caller"
)

// round is one turn of the loop, for those who wait for it.
type round struct {
	force bool          // Source is to be asked, whosever turn it is
	asked bool          // it was, or nothing can be asked; written before done is closed
	done  chan struct{} // closed when it has ended
}

// Kick asks for the turn soon, for somebody who has found the pool empty: what the
// server knew of the turn may be gone with the pool. It never blocks.
func (r *Refresher) Kick() {
	if r == nil || r.cfg.Source == nil {
		return
	}
	select {
	case r.kicks <- struct{}{}:
	default: // one is under way
	}
}

// Answers counts the answers of Source that the pool was made to hold.
func (r *Refresher) Answers() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers
}

// Fill returns when Source has been asked for somebody who has found the pool empty: by
// the round that is under way, or else by one that it has begun now, for all who come
// meanwhile. seen is what Answers said before the caller asked the pool: after another answer
// since, Fill returns true at once. It returns false at once where Source was asked a moment
// before, and where ctx ends first.
func (r *Refresher) Fill(ctx context.Context, seen int) bool {
	if r == nil || r.cfg.Source == nil {
		return false
	}
	for {
		on := r.join()
		if r.Answers() != seen { // it may have come between the server's word and this look
			return true
		}
		if on == nil {
			return false
		}
		select {
		case <-on.done:
			if on.asked {
				return true
			}
		case <-r.done:
			return true // it was stopped
		case <-ctx.Done():
			return false
		}
	}
}

// join returns the round that is under way or wanted, or has one begin; nil where it is
// too soon for that.
func (r *Refresher) join() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.current != nil:
		return r.current
	case r.wanted != nil:
		return r.wanted
	case r.asked && r.clock.Now()-r.answered < min(kickGap, r.cfg.Every):
		return nil
	}
	r.wanted = &round{force: true, done: make(chan struct{})}
	r.fills <- struct{}{} // begin takes both
	return r.wanted
}

// begin begins a round.
func (r *Refresher) begin() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current, r.wanted = r.wanted, nil
	if r.current == nil {
		r.current = &round{done: make(chan struct{})}
	}
	select {
	case <-r.fills:
	default:
	}
	return r.current
}

// over ends a round.
func (r *Refresher) over(on *round) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current = nil; on.asked {
		r.asked, r.answered = true, r.clock.Now()
	}
	close(on.done)
}

func (r *Refresher) loop() {
	defer close(r.done)
	for {
		began, on := r.clock.Now(), r.begin()
		pause := r.round(on)
		r.over(on)
		if !r.wait(began, pause) {
			return
		}
	}
}

// round does what is due, and says how long there is nothing to do.
func (r *Refresher) round(on *round) (pause time.Duration) {
	select {
	case <-r.kicks: // it is served by this round
	default:
	}
	pause, replaced := r.cfg.Every, false
	if r.cfg.Source != nil {
		pause, replaced = r.ask(on)
	}
	// Not in every round: kicks may make one a second, and a process may have many
	// idle values.
	if now := r.clock.Now(); replaced || now-r.reconciled >= r.cfg.Every/2 {
		r.reconciled = now
		r.reconcile()
	}
	return pause
}

// ask asks for the turn, and Source if the turn is this node's, or if it is to be asked
// in any case.
func (r *Refresher) ask(on *round) (pause time.Duration, replaced bool) {
	mine, left, err := r.cfg.Turn(r.ctx, r.cfg.Every)
	on.asked = err != nil || mine || on.force
	switch {
	case err != nil:
		r.ended(r.ctx, 0, err)
		return min(turnRetry, r.cfg.Every), false
	case !mine && !on.force:
		return left, false
	}
	letGo := func() {}
	if mine {
		letGo = r.keepTurn()
	}
	err = r.refresh(r.ctx, func(ctx context.Context) (resources []string, err error) {
		err = caller.Catch("Source", func() error {
			resources, err = r.cfg.Source(ctx)
			return err
		})
		return resources, err
	}, r.cfg.Replace)
	letGo()
	switch {
	case !mine:
		return left, err == nil
	case err == nil:
		r.failures = 0
		return r.cfg.Every, true
	}
	// The turn stays this node's, and comes again soon: a pool that was never filled
	// must not wait for Every. If the node dies, another has it then.
	pause = min(firstRetry<<min(r.failures, 16), r.cfg.Every)
	r.failures++
	_ = r.cfg.Stay(r.ctx, pause)
	return pause, false
}

// keepTurn lets no other node have the turn until its result is called. A stay that
// fails is made good by the next; if none works, two nodes ask Source, and the
// newer Replace decides.
func (r *Refresher) keepTurn() (done func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	var beat sync.WaitGroup
	beat.Go(func() {
		ticker := time.NewTicker(max(r.cfg.Every/3, time.Millisecond))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = r.cfg.Stay(ctx, r.cfg.Every)
			}
		}
	})
	return func() {
		cancel()
		beat.Wait()
	}
}

// wait returns when the next round is due: pause after now and a little more, or
// sooner after a kick, but never before kickGap has passed since the last one began.
// It returns false when the refresher was stopped.
func (r *Refresher) wait(began, pause time.Duration) bool {
	pause = min(pause, longestPause)
	soonest := began + min(kickGap, r.cfg.Every)
	now := r.clock.Now()
	timer := time.NewTimer(max(pause+r.cfg.jitter(pause), soonest-now))
	defer timer.Stop()
	kicks := r.kicks
	for {
		select {
		case <-r.ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-r.fills:
			return true
		case <-kicks:
			kicks = nil
			timer.Reset(max(0, soonest-r.clock.Now()))
		}
	}
}
