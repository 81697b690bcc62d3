package allocator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/pkg/observe"
)

const (
	// kickGap is the least time between two asks for the turn, unless RefreshEvery
	// is shorter: many who find a pool empty at once cost no more than that.
	kickGap = time.Second
	// turnRetry is when the turn is asked for again that could not be.
	turnRetry = 10 * time.Second
	// firstRetry is when Source is asked again after it has failed; each further
	// failure doubles that, up to RefreshEvery.
	firstRetry = time.Second
	// longestPause keeps sums of times within their range.
	longestPause = 24 * time.Hour
)

var errEmpty = errors.New("berth: Source returned no resources; AllowEmpty lets that empty the pool")

// keeper is what a refresher needs of the pool on the server.
type keeper interface {
	// turn asks whether this node is to ask Source now; nobody else is to before
	// every has passed. Else left is how long until the turn comes up.
	turn(ctx context.Context, every time.Duration) (mine bool, left time.Duration, err error)
	// stay says that this node is still at it: the turn comes up every from now.
	stay(ctx context.Context, every time.Duration) error
	replace(ctx context.Context, resources []string, expiry time.Duration, sharers int, progress func(done, total int)) (Change, error)
	// absent returns which of the resources, up to 200, are not in the pool.
	absent(ctx context.Context, resources []string) ([]string, error)
}

// refreshConfig is what a refresher works with.
type refreshConfig struct {
	source     func(context.Context) ([]string, error) // nil for none
	every      time.Duration
	expiry     time.Duration
	sharers    int
	allowEmpty bool
	server     keeper
	idle       func() []string                     // the resources whose values nobody uses
	drop       func(resource string)               // ends such a value
	tell       func(observe.Event)                 // must not be nil
	jitter     func(d time.Duration) time.Duration // is added to a pause d
}

// refresher keeps a pool filled from its Source, asked by one node at a time, and
// this process free of values whose resources have left the pool. All timing is
// its one goroutine's, from start to stop; beside it runs what keeps the turn.
type refresher struct {
	refreshConfig
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

	reconciled time.Duration // the goroutine's: when reconcile began last
	failures   int           // the goroutine's: how often in a row Source or its Replace has failed
}

// round is one turn of the loop, for those who wait for it.
type round struct {
	force bool          // Source is to be asked, whosever turn it is
	asked bool          // it was, or nothing can be asked; written before done is closed
	done  chan struct{} // closed when it has ended
}

// refresherOf starts the refresher of a pool, or returns nil where there is nothing
// for one to do.
func refresherOf[T any](p *Pool[T]) *refresher {
	if p.cfg.Source == nil && p.cfg.Open == nil {
		return nil
	}
	r := newRefresher(refreshConfig{
		source: p.cfg.Source, every: p.cfg.RefreshEvery, expiry: p.cfg.Expiry, sharers: p.cfg.MaxSharers,
		allowEmpty: p.cfg.AllowEmpty, server: p.core, idle: p.values.idle, drop: p.values.drop, tell: p.core.tell,
	})
	r.start()
	return r
}

// Refresh asks Source now, on the caller's goroutine and whosever turn it is, and
// makes the pool hold what it returns. It returns the error of Source;
// berth.ErrInvalidConfig without a Source, for a key that cannot be a resource's; an
// error for an empty answer unless AllowEmpty is set; ErrSuperseded if another
// process has begun a newer Replace; berth.ErrClosed, or the server's error. The change is what was
// done, also beside an error.
func (p *Pool[T]) Refresh(ctx context.Context) (Change, error) {
	if p.cfg.Source == nil {
		return Change{}, berth.Invalid("Source", "the pool has none that could be asked")
	}
	return p.refresher.refreshNow(ctx)
}

func newRefresher(cfg refreshConfig) *refresher {
	if cfg.jitter == nil {
		cfg.jitter = func(d time.Duration) time.Duration { return rand.N(d/20 + 1) }
	}
	r := &refresher{
		refreshConfig: cfg, clock: clock.New(),
		kicks: make(chan struct{}, 1), fills: make(chan struct{}, 1), done: make(chan struct{}),
		wanted: &round{done: make(chan struct{})}, // the first one is waited for as well
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// start begins the goroutine, once.
func (r *refresher) start() { go r.loop() }

// stop ends the goroutine and waits for it, Source included, until ctx ends; then
// it returns what ctx says. It may be called again, and does nothing on nil.
func (r *refresher) stop(ctx context.Context) error {
	if r == nil {
		return nil
	}
	r.end()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return endOfContext(ctx)
	}
}

// end has the goroutine end, and does not wait. It does nothing on nil.
func (r *refresher) end() {
	if r != nil {
		r.cancel(berth.ErrClosed)
	}
}

// kick asks for the turn soon, for somebody who has found the pool empty: what the
// server knew of the turn may be gone with the pool. It never blocks, and does
// nothing on nil.
func (r *refresher) kick() {
	if r == nil || r.source == nil {
		return
	}
	select {
	case r.kicks <- struct{}{}:
	default: // one is under way
	}
}

// fill returns when Source has been asked for somebody who has found the pool empty: by
// the round that is under way, or else by one that it has begun now, for all who come
// meanwhile. It returns false at once where Source was asked a moment ago, and where ctx
// ends first. It does nothing on nil.
func (r *refresher) fill(ctx context.Context) bool {
	if r == nil || r.source == nil {
		return false
	}
	for {
		on := r.join()
		if on == nil {
			return false
		}
		select {
		case <-on.done:
			if on.asked {
				return true
			}
		case <-r.done:
			return true // the client is closed
		case <-ctx.Done():
			return false
		}
	}
}

// join returns the round that is under way or wanted, or has one begin; nil where it is
// too soon for that.
func (r *refresher) join() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.current != nil:
		return r.current
	case r.wanted != nil:
		return r.wanted
	case r.asked && r.clock.Now()-r.answered < min(kickGap, r.every):
		return nil
	}
	r.wanted = &round{force: true, done: make(chan struct{})}
	r.fills <- struct{}{} // begin takes both
	return r.wanted
}

// begin begins a round.
func (r *refresher) begin() *round {
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
func (r *refresher) over(on *round) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current = nil; on.asked {
		r.asked, r.answered = true, r.clock.Now()
	}
	close(on.done)
}

func (r *refresher) loop() {
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
func (r *refresher) round(on *round) (pause time.Duration) {
	select {
	case <-r.kicks: // it is served by this round
	default:
	}
	pause, replaced := r.every, false
	if r.source != nil {
		pause, replaced = r.ask(on)
	}
	// Not in every round: kicks may make one a second, and a process may have many
	// idle values.
	if now := r.clock.Now(); replaced || now-r.reconciled >= r.every/2 {
		r.reconciled = now
		r.reconcile()
	}
	return pause
}

// ask asks for the turn, and Source if the turn is this node's, or if it is to be asked
// in any case.
func (r *refresher) ask(on *round) (pause time.Duration, replaced bool) {
	mine, left, err := r.server.turn(r.ctx, r.every)
	on.asked = err != nil || mine || on.force
	switch {
	case err != nil:
		r.failed(err)
		return min(turnRetry, r.every), false
	case !mine && !on.force:
		return left, false
	}
	letGo := func() {}
	if mine {
		letGo = r.keepTurn()
	}
	_, err = r.refresh(r.ctx, func(ctx context.Context) (resources []string, err error) {
		err = caught("Source", func() error {
			resources, err = r.source(ctx)
			return err
		})
		return resources, err
	})
	letGo()
	switch {
	case !mine:
		return left, err == nil
	case err == nil:
		r.failures = 0
		return r.every, true
	}
	// The turn stays this node's, and comes again soon: a pool that was never filled
	// must not wait for RefreshEvery. If the node dies, another has it then.
	pause = min(firstRetry<<min(r.failures, 16), r.every)
	r.failures++
	_ = r.server.stay(r.ctx, pause)
	return pause, false
}

// keepTurn lets no other node have the turn until its result is called. A stay that
// fails is made good by the next; if none works, two nodes ask Source, and the
// newer Replace decides.
func (r *refresher) keepTurn() (done func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	var beat sync.WaitGroup
	beat.Go(func() {
		ticker := time.NewTicker(max(r.every/3, time.Millisecond))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = r.server.stay(ctx, r.every)
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
func (r *refresher) wait(began, pause time.Duration) bool {
	pause = min(pause, longestPause)
	soonest := began + min(kickGap, r.every)
	now := r.clock.Now()
	timer := time.NewTimer(max(pause+r.jitter(pause), soonest-now))
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

// refreshNow asks Source on the caller's goroutine, whosever turn it is.
func (r *refresher) refreshNow(ctx context.Context) (Change, error) {
	if r.ctx.Err() != nil {
		return Change{}, berth.ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(berth.ErrClosed) })()
	change, err := r.refresh(ctx, r.source)
	if err == nil {
		r.reconcile()
	}
	return change, err
}

// refresh asks a source, and makes the pool hold what it returned.
func (r *refresher) refresh(ctx context.Context, source func(context.Context) ([]string, error)) (Change, error) {
	resources, err := source(ctx)
	if err == nil {
		resources, err = r.check(resources)
	}
	if err != nil {
		r.failed(err)
		return Change{}, err
	}
	change, err := r.server.replace(ctx, resources, r.expiry, r.sharers, nil)
	if err != nil {
		r.failed(err)
		return change, err
	}
	r.keep(nil)
	r.tell(observe.Event{Kind: observe.Refreshed, Count: len(resources)})
	return change, nil
}

// check returns what Source returned without repeats. One key that cannot be in a
// pool refuses the whole: a list that is broken in one place is not to be trusted.
func (r *refresher) check(resources []string) ([]string, error) {
	if len(resources) == 0 && !r.allowEmpty {
		return nil, errEmpty
	}
	for i, resource := range resources {
		if err := checkResource(resource); err != nil {
			return nil, fmt.Errorf("berth: element %d of what Source returned: %w", i, err)
		}
	}
	return unique(resources), nil
}

// failed reports an error, unless it is that of being stopped.
func (r *refresher) failed(err error) {
	if r.ctx.Err() == nil {
		r.keep(err)
		r.tell(observe.Event{Kind: observe.RefreshFailed, Err: err})
	}
}

// keep remembers what became of the last refresh, for those who find the pool empty.
func (r *refresher) keep(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = err
}

// lastError is why the pool could not be refreshed the last time, nil if it was. It is
// nil on nil.
func (r *refresher) lastError() error {
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
func (r *refresher) reconcile() {
	for batch := range slices.Chunk(r.idle(), chunk) {
		gone, err := r.server.absent(r.ctx, batch)
		if err != nil {
			return
		}
		for _, resource := range gone {
			r.drop(resource)
		}
	}
}
