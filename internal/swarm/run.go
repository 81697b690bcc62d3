package swarm

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// run is what happens between a Start and its end. One goroutine, the loop, does all
// timing and decides everything; a call has a goroutine while it is in flight, and
// the flushes have one.
type run struct {
	s      *Swarm
	number int64 // of this run, for the server

	stop, stopNow chan struct{}   // closed to leave, and to end at once
	asks          chan chan error // who wants a probe
	answers       chan *flight    // calls that are back
	started       chan struct{}   // closed when Start is to return, with startErr
	settled       chan struct{}   // closed when nothing changes any more
	done          chan struct{}   // closed when all goroutines have ended, with endErr
	startErr      error
	endErr        error
	stopOnce      sync.Once
	stopNowOnce   sync.Once

	ctx    context.Context // of everything that is sent; ends when settled
	cancel context.CancelFunc
	tasks  sync.WaitGroup // all goroutines but the loop

	ending bool // guarded by Swarm.mu

	// What follows is the loop's.

	node    string
	sent    *flight       // the one call in flight, or nil
	joined  bool          // a probe of node may have run
	marked  bool          // claims of node may say that it is in a swarm
	doubt   bool          // one may still run
	due     time.Duration // when to send the next call
	failed  int           // how many calls in a row have
	up      bool          // the first probe was confirmed
	leaving bool
	waiting []chan error // for the next probe
	served  []chan error // by the probe in flight
}

// flight is one call of the node.
type flight struct {
	start  time.Duration // before its first attempt
	at     time.Time     // the same, for people
	leaves bool          // it is no probe
	cancel context.CancelFunc
	said   said // what it was told, once it is back
}

// never is later than every moment on a clock.
const never time.Duration = math.MaxInt64

func newRun(s *Swarm, number int64) *run {
	r := &run{
		s: s, number: number, node: s.cfg.Node(), due: s.cfg.Clock.Now(),
		stop: make(chan struct{}), stopNow: make(chan struct{}),
		asks: make(chan chan error), answers: make(chan *flight),
		started: make(chan struct{}), settled: make(chan struct{}), done: make(chan struct{}),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// loop is the run's goroutine.
func (r *run) loop() {
	defer r.finish()
	timer := time.NewTimer(never)
	defer timer.Stop()
	stop := r.stop
	for goes := true; goes; {
		err := guard.Run("the swarm", r.s.cfg.Observe, func() error {
			goes = r.step(timer, &stop)
			return nil
		})
		if err != nil {
			goes = r.rest(err)
		}
	}
}

// step does what is due, waits for the next event and heeds it. It returns false when the run is over.
func (r *run) step(timer *time.Timer, stop *chan struct{}) bool {
	pause, goes := r.turn()
	if !goes {
		return false
	}
	timer.Reset(pause)
	select {
	case <-timer.C:
	case <-r.s.wake:
	case f := <-r.answers:
		r.hear(f)
	case ask := <-r.asks:
		r.ask(ask)
	case <-*stop:
		*stop = nil
		r.leave(berth.ErrNotRunning)
	case <-r.stopNow:
		r.leave(berth.ErrNotRunning)
		if r.joined || r.sent != nil {
			r.replace(ReasonUnsure)
		}
		return false
	}
	return true
}

// rest is what follows a panic of step: the loop goes on after a pause, so that it does not spin, unless it is to end at once.
func (r *run) rest(err error) bool {
	r.retry()
	select {
	case <-time.After(r.s.cfg.ProbeEvery / 10):
		return true
	case <-r.stopNow:
		r.leave(err)
		return false
	}
}

// turn does what is due, and says how long there is nothing to do, or that the run
// is over.
func (r *run) turn() (pause time.Duration, goes bool) {
	if r.s.Passed(r.node) {
		r.replace(ReasonSilent)
	}
	now := r.s.cfg.Clock.Now()
	switch {
	case r.leaving && r.sent == nil && !r.joined:
		return 0, false // it is not in the swarm
	case r.sent != nil || now < r.due:
	case r.leaving:
		r.send(&flight{leaves: true})
	default:
		r.probe(now)
	}
	next := never
	if r.sent == nil {
		next = r.due
	}
	if horizon := r.s.Horizon(r.node); horizon != 0 {
		next = min(next, horizon)
	}
	if next == never {
		return never, true
	}
	return max(0, next-now), true
}

// probe sends a probe. A horizon is in force before it can run.
func (r *run) probe(now time.Duration) {
	if !r.joined {
		r.s.arm(r.node, r.s.horizon(now))
	}
	r.served, r.waiting = append(r.served, r.waiting...), nil
	r.send(&flight{start: now, at: time.Now()})
}

// horizon is until when a probe counts that was sent at start.
func (s *Swarm) horizon(start time.Duration) time.Duration {
	return heartbeat.Deadline(start, s.cfg.ZombieAfter, s.cfg.ZombieAfter)
}

// send has a call made in the background. The first probe is repeated as every call
// of a user is; later ones, and leaving, the loop repeats itself.
func (r *run) send(f *flight) {
	mode, patience := scriptkit.Once, r.s.cfg.ZombieAfter/6
	if !r.up && !f.leaves {
		mode, patience = scriptkit.Bounded, r.s.cfg.ZombieAfter
	}
	ctx, cancel := scriptkit.Limit(r.ctx, patience)
	f.cancel = cancel
	r.sent = f
	node, number, doubt, marked := r.node, r.number, r.doubt, r.marked
	r.tasks.Go(func() {
		defer cancel()
		err := guard.Run("a call of the swarm", r.s.cfg.Observe, func() error {
			if f.leaves {
				f.said = r.s.leave(ctx, node, number, doubt, marked)
			} else {
				f.said = r.s.calls.Probe(ctx, mode, node, number)
			}
			return nil
		})
		if err != nil {
			f.said = said{unanswered: true, err: err}
		}
		select {
		case r.answers <- f:
		case <-r.settled:
		}
	})
}

// hear takes what a call has learned, unless that is of a node that is no more.
func (r *run) hear(f *flight) {
	if f != r.sent {
		return
	}
	r.sent = nil
	if f.leaves {
		r.hearLeft(f)
	} else {
		r.hearProbe(f)
	}
}

func (r *run) hearProbe(f *flight) {
	r.doubt = r.doubt || f.said.unanswered
	r.joined = r.joined || f.said.unanswered || f.said.status == statusProbed
	r.note(f)
	switch {
	case f.said.err != nil:
		r.probeFailed(f.said.err)
	case f.said.status == statusCondemned:
		r.replace(ReasonCondemned)
		return
	case r.s.confirm(r.node, r.s.horizon(f.start)):
		r.failed = 0
		r.due = f.start + r.s.cfg.ProbeEvery
		r.mark(f.said.known)
		r.serve(nil)
		r.arrive()
	default: // late: it revives nobody, and turn replaces the node
	}
	if f.said.more || r.leaving || len(r.waiting) > 0 {
		r.due = r.s.cfg.Clock.Now()
	}
}

// mark lets the claims of the node say that it is in the swarm. One that was in it,
// and that the server did not know, has found out that the server forgets.
func (r *run) mark(known bool) {
	if r.marked && !known {
		r.s.forgotten()
	}
	if !r.leaving {
		node := r.node
		r.marked = true
		r.s.known.Store(&node)
	}
}

// probeFailed takes a probe that was not confirmed. The next one follows sooner than
// usual.
func (r *run) probeFailed(err error) {
	left := r.s.Horizon(r.node) - r.s.cfg.Clock.Now()
	if !r.joined && r.s.disarm(r.node) {
		left = 0 // it is not in the swarm, so nothing ends
	}
	r.retry()
	r.s.cfg.Observe(observe.Event{Kind: observe.ProbeFailed, Node: r.node, Left: max(0, left), Err: err})
	r.serve(err)
	if !r.up {
		r.leave(err)
	}
}

// retry lets the call that failed be sent again: after a tenth of ProbeEvery, then
// after twice as long each time, up to ProbeEvery.
func (r *run) retry() {
	pause := r.s.cfg.ProbeEvery / 10 << min(r.failed, 4)
	r.failed++
	r.due = r.s.cfg.Clock.Now() + min(pause, r.s.cfg.ProbeEvery)
}

// ask takes a wish for a probe.
func (r *run) ask(answer chan error) {
	if r.leaving {
		answer <- berth.ErrNotRunning
		return
	}
	r.waiting = append(r.waiting, answer)
	r.due = min(r.due, r.s.cfg.Clock.Now())
}

// serve answers those who wait for the probe that is back.
func (r *run) serve(err error) {
	for _, answer := range r.served {
		answer <- err
	}
	r.served = nil
}

// arrive lets Start return, once, and the flushes begin.
func (r *run) arrive() {
	if r.up || r.leaving {
		return
	}
	r.up = true
	if r.s.cfg.FlushEvery > 0 {
		r.tasks.Go(func() { r.s.flushOn(r.ctx) })
	}
	close(r.started)
}

// replace ends the node, and goes on under a new id. Until Replace returns, the old
// id's horizon has passed.
func (r *run) replace(reason Reason) {
	r.s.arm(r.node, over)
	r.s.known.Store(nil)
	if r.leaving && r.endErr == nil && reason == ReasonSilent {
		r.endErr = errUnsure
	}
	if r.sent != nil {
		r.sent.cancel()
		r.sent = nil
	}
	r.waiting, r.served = append(r.served, r.waiting...), nil
	if r.marked {
		// The server knew the node. Whether it still does, a new id cannot ask: a server that restarts without
		// its data may refuse probes for longer than ZombieAfter.
		r.s.forgotten()
	}
	r.node = r.s.cfg.Replace(r.ctx, reason)
	r.s.term.Store(nil)
	r.joined, r.marked, r.doubt, r.failed = false, false, false, 0
	r.due = r.s.cfg.Clock.Now()
	if r.node == "" {
		r.leave(berth.ErrClosed)
	}
}

// note keeps what Status tells of probes.
func (r *run) note(f *flight) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.probeErr = f.said.err
	if f.said.err == nil && f.said.status == statusProbed {
		r.s.probedAt = f.at
	}
}
