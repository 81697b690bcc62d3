// Package refresh keeps a pool filled from a Source, which one node at a time asks,
// and keeps a process free of values whose resources have left the pool.
package refresh

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
)

const (
	// kickGap is the least time between two asks for the turn, unless Every is
	// shorter: many who find a pool empty at once cost no more than that.
	kickGap = time.Second
	// turnRetry is when the turn is asked for again that could not be.
	turnRetry = 10 * time.Second
	// firstRetry is when Source is asked again after it has failed; each further
	// failure doubles that, up to Every.
	firstRetry = time.Second
	// longestPause keeps sums of times within their range.
	longestPause = 24 * time.Hour
)

// Config is what a Refresher works with: times, and functions of the pool.
type Config struct {
	// Source returns what the pool should hold. Nil for none: only values are dropped.
	Source func(context.Context) ([]string, error)
	// Every is how often Source is asked.
	Every time.Duration
	// Turn asks whether this node is to ask Source now; nobody else is to before
	// every has passed. Else left is how long until the turn comes up.
	Turn func(ctx context.Context, every time.Duration) (mine bool, left time.Duration, err error)
	// Stay says that this node is still at it: the turn comes up every from now.
	Stay func(ctx context.Context, every time.Duration) error
	// Replace makes the pool hold what Source returned.
	Replace func(ctx context.Context, resources []string) error
	// Absent returns which of the resources, up to 200, are not in the pool.
	Absent func(ctx context.Context, resources []string) ([]string, error)
	// Idle returns the resources whose values nobody uses.
	Idle func() []string
	// Drop ends the value of a resource.
	Drop func(resource string)
	// Tell is told of each refresh: how many resources Source returned, or the error. ctx is
	// that of the call which asked for it, or the refresher's own.
	Tell func(ctx context.Context, resources int, err error)

	jitter func(d time.Duration) time.Duration // is added to a pause d; tests set it
}

// Refresher refreshes one pool. It is safe for concurrent use. All timing is its one
// goroutine's, from Start to Stop; beside it runs what keeps the turn. A nil one is of
// a pool with nothing to refresh: its methods do nothing, but for Now.
type Refresher struct {
	cfg   Config
	clock clock.Clock
	kicks chan struct{} // has room for one
	fills chan struct{} // has room for one: there is a round that is wanted now

	ctx    context.Context // of all that the goroutine does; ends with ErrClosed
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the goroutine has ended

	mu       sync.Mutex
	last     error         // guarded by mu: of the last refresh
	current  *round        // guarded by mu: under way, nil for none
	wanted   *round        // guarded by mu: the next one, where somebody waits for it
	asked    bool          // guarded by mu: Source was asked by the loop
	answered time.Duration // guarded by mu: when that ended last
	answers  int           // guarded by mu: how many answers of Source the pool was made to hold

	reconciled time.Duration // the goroutine's: when reconcile began last
	failures   int           // the goroutine's: how often in a row Source or its Replace has failed
}

// Start begins to refresh a pool, until End or Stop.
func Start(cfg Config) *Refresher {
	if cfg.jitter == nil {
		cfg.jitter = jitter
	}
	r := &Refresher{
		cfg: cfg, clock: clock.New(),
		kicks: make(chan struct{}, 1), fills: make(chan struct{}, 1), done: make(chan struct{}),
		wanted: &round{done: make(chan struct{})}, // the first one is waited for as well
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	go r.loop()
	return r
}

// jitter is up to a twentieth of a pause, so that nodes do not ask all at once.
func jitter(d time.Duration) time.Duration { return rand.N(d/20 + 1) }

// End has the refreshing end, a Source that heeds its ctx too, and does not wait.
func (r *Refresher) End() {
	if r != nil {
		r.cancel(berth.ErrClosed)
	}
}

// Stop is End that waits until nothing runs any more, Source included.
func (r *Refresher) Stop() {
	if r != nil {
		r.End()
		<-r.done
	}
}

// Now asks Source on the caller's goroutine, whosever turn it is, and has replace make
// the pool hold what it returned, in place of Config.Replace. It returns the error of
// either, or berth.ErrClosed.
func (r *Refresher) Now(ctx context.Context, replace func(context.Context, []string) error) error {
	if r.ctx.Err() != nil {
		return berth.ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(berth.ErrClosed) })()
	err := r.refresh(ctx, r.cfg.Source, replace)
	if err == nil {
		r.reconcile()
	}
	return err
}

// refresh asks a source, and has replace make the pool hold what it returned.
func (r *Refresher) refresh(ctx context.Context, source func(context.Context) ([]string, error), replace func(context.Context, []string) error) error {
	resources, err := source(ctx)
	if err == nil {
		err = replace(ctx, resources)
	}
	r.ended(ctx, len(resources), err)
	return err
}

// ended keeps and tells what became of a refresh, but no error of being stopped.
func (r *Refresher) ended(ctx context.Context, resources int, err error) {
	if err != nil && r.ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	if r.last = err; err == nil {
		r.answers++
	}
	r.mu.Unlock()
	r.cfg.Tell(ctx, resources, err)
}

// LastError is why the pool could not be refreshed the last time, nil if it was.
func (r *Refresher) LastError() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// reconcile ends the values whose resources have left the pool. What nobody uses here
// is asked for only, and what is allocated again meanwhile outlives its drop until it
// is given back. If the server does not answer, the next round asks again.
func (r *Refresher) reconcile() {
	for some := range slices.Chunk(r.cfg.Idle(), 200) {
		gone, err := r.cfg.Absent(r.ctx, some)
		if err != nil {
			return
		}
		for _, resource := range gone {
			r.cfg.Drop(resource)
		}
	}
}
