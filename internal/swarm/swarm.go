package swarm

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth"
)

// Swarm is a node's part in the swarm of its namespace. It is safe for
// concurrent use.
type Swarm struct {
	cfg   Config
	calls *calls
	term  atomic.Pointer[term]   // nil for none
	known atomic.Pointer[string] // the node of which a probe is confirmed and that is to stay; nil for none
	wake  chan struct{}          // tells the run's loop to look at the horizon

	mu       sync.Mutex
	run      *run      // from Start until all of it has ended; guarded by mu
	runs     int64     // how many there have been; guarded by mu
	probedAt time.Time // start of the last confirmed probe; guarded by mu
	probeErr error     // of the last probe; guarded by mu
	flushes  flushes   // guarded by mu
}

// Status is a node's part in the swarm.
type Status struct {
	// Running says whether the swarm is started, and not being stopped.
	Running bool
	// Node is the id of the node.
	Node string
	// ProbedAt is the start of the last probe that was confirmed, or zero.
	ProbedAt time.Time
	// FlushedAt is when the last flush ended, or zero.
	FlushedAt time.Time
	// Err is the error of the last probe, or else of the last flush, or nil.
	Err error
}

// New returns a Swarm that is not started. Its error is that of Config.Validate.
func New(cfg Config) (*Swarm, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Swarm{cfg: cfg, calls: newCalls(&cfg), wake: make(chan struct{}, 1)}, nil
}

// Start probes once, and goes on in the background. It does nothing if the swarm
// runs; if that one is only starting or ending, Start waits for it. A Start whose run
// is stopped before its first probe is confirmed begins another one. With an error
// the swarm does not run. If a probe may have run all the same, the node leaves in
// the background, as Stop has it leave; a Start or Stop that comes before it has left
// waits for that.
//
// The error is that of the first probe, or the context's, or berth.ErrClosed where
// Replace makes no node any more.
func (s *Swarm) Start(ctx context.Context) error {
	for {
		r, mine := s.join()
		select {
		case <-r.started:
		case <-ctx.Done():
			if mine {
				r.end()
			}
			return ended(ctx)
		}
		stopped := errors.Is(r.startErr, berth.ErrNotRunning)
		if mine && !stopped || r.startErr == nil && s.Running() {
			return r.startErr
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// join returns the run that there is, or makes one.
func (s *Swarm) join() (r *run, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		return s.run, false
	}
	s.runs++
	s.run = newRun(s, s.runs)
	go s.run.loop()
	return s.run, true
}

// Stop ends probing and flushing, waits for both, and takes the node out of the
// swarm, so that nobody flushes what it holds. It does nothing if the swarm does
// not run. It may be called several times at once.
//
// While it cannot be learned whether the node is out, Stop goes on asking until the
// horizon passes; then the node is replaced, as always, and Stop returns the error
// that it met. If ctx ends before, the node is replaced at once, for somebody may
// flush it, and Stop returns the context's error; what is in flight may then end up
// to a sixth of ZombieAfter later, and a further Stop waits for that.
func (s *Swarm) Stop(ctx context.Context) error {
	s.mu.Lock()
	r := s.run
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	r.end()
	select {
	case <-r.done:
		return r.endErr
	case <-ctx.Done():
	}
	r.hurry()
	<-r.settled
	return ended(ctx)
}

// Running reports whether the swarm is started, and not being stopped.
func (s *Swarm) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run != nil && !s.run.ending
}

// Status tells the node's part, without asking the server.
func (s *Swarm) Status() Status {
	st := Status{Running: s.Running(), Node: s.cfg.Node()}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.ProbedAt, st.FlushedAt, st.Err = s.probedAt, s.flushes.at, s.probeErr
	if st.Err == nil {
		st.Err = s.flushes.err
	}
	return st
}

// ProbeNow probes once. It returns nil when a probe that began after the call is
// confirmed, under a new id if the node had to be replaced, berth.ErrNotRunning if
// the swarm does not run, or the error of the probe or the context.
func (s *Swarm) ProbeNow(ctx context.Context) error {
	s.mu.Lock()
	r := s.run
	s.mu.Unlock()
	if r == nil {
		return berth.ErrNotRunning
	}
	answer := make(chan error, 1)
	select {
	case r.asks <- answer:
	case <-r.settled:
		return berth.ErrNotRunning
	case <-ctx.Done():
		return ended(ctx)
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ended(ctx)
	}
}

// Settle asks whether the node with that id still counts: it returns when a probe that
// began after the call is confirmed, when the node is not in the swarm, or has been
// replaced, or when ctx ends.
func (s *Swarm) Settle(ctx context.Context, node string) {
	for s.Horizon(node) != 0 && s.ProbeNow(ctx) != nil {
		pause := time.NewTimer(s.cfg.ProbeEvery / 10)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// ended is why a context has ended: its error, and its cause.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(ctx.Err(), cause) {
		return errors.Join(ctx.Err(), cause)
	}
	return ctx.Err()
}
