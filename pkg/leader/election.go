package leader

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Election is a name that one of many processes leads. An Election is safe for concurrent use.
type Election struct {
	name  string
	bad   error // the error of each call; nil for a usable Election
	keep  bool  // Config.KeepWhenWanted
	attrs map[string]any
	p     *line.Process
	locks *qlock.Locks
	read  *inspect.Reader
	tell  line.Teller
	every time.Duration // of Watch

	life  context.Context // ends with Close
	end   context.CancelCauseFunc
	mu    sync.Mutex
	left  error          // guarded by mu: errors of locks that could not be given back
	terms sync.WaitGroup // locks that Close gives back; Add only under mu while life lasts
}

// defaultLease is the default lease of locks.
const defaultLease = 5 * time.Second

// New returns the election of a name on a node. New does no I/O and always returns an Election. If an argument is bad, each
// call of the Election returns a *berth.ConfigError. Check of the node returns it too, unless the bad argument is the name.
func New(n *node.Node, name string, cfg Config) *Election {
	e := &Election{name: name, keep: cfg.KeepWhenWanted, attrs: maps.Clone(cfg.Attrs)}
	e.life, e.end = context.WithCancelCause(context.Background())
	e.p, e.bad = line.UseName(n, name, func(p *line.Process) (err error) {
		s := &p.Settings
		e.tell, e.every = p.Tell.Of(keyspace.Lock), cmp.Or(cfg.Lease, min(defaultLease, s.Lease))/3
		if err := cfg.validate(); err != nil {
			return err
		}
		e.read, err = inspect.New(p.Redis, inspect.Config{Namespace: s.Namespace, CallTimeout: s.CallTimeout, Retry: s.Retry})
		return err
	})
	if e.bad == nil {
		e.locks = qlock.New(n, qlock.Config{Lease: cfg.Lease, WarnHeldLongerThan: -1, Defaults: cfg.lock()})
	}
	return e
}

// Name returns the name of the election.
func (e *Election) Name() string { return e.name }

// Fence returns the fence of the term that ctx belongs to: ctx must be the context of f or derived from it.
// Every term has a greater fence than all terms before it. Fence returns 0 for any other context; every
// check of fences refuses 0.
func (e *Election) Fence(ctx context.Context) int64 {
	if e.bad != nil {
		return 0
	}
	return e.locks.Fence(ctx, e.name)
}

// Wanted returns a channel that is closed when somebody asks for leadership in the term that ctx belongs to:
// an operator, a drain, or a candidate with WantAfter. ctx must be as for Fence. Wanted returns nil, which is
// never closed, for any other context.
func (e *Election) Wanted(ctx context.Context) <-chan struct{} {
	if e.bad != nil {
		return nil
	}
	return e.locks.Wanted(ctx, e.name)
}

// Close ends the wait of each Run with berth.ErrClosed, ends the context of each f, and hands leadership on without waiting
// for f. Each Run then waits for its f, and returns. If no other process may lead before f has returned, end the context of
// Run, and wait for Run, before calling Close.
//
// Close returns when leadership has been handed on. Close returns ctx's error, or the error of a lock that could not be
// given back, which ends with its lease. Close may be called more than once. Close of the node does the same.
func (e *Election) Close(ctx context.Context) error {
	e.mu.Lock()
	e.end(berth.ErrClosed)
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		e.terms.Wait()
		close(ended)
	}()
	if err := caller.Await(ctx, ended); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left
}

func (e *Election) isClosed() bool { return e.life.Err() != nil || e.p.Closed() }

// Current reads the leader: its node, label, owner, fence and Meta, since when it leads (Granted), and how much longer if
// nothing renews the lease (Left). Current returns nil without an error if nobody leads. Current always asks the server.
// Its errors are those of inspect.Reader, including berth.ErrUnavailable if the server has not answered within
// Config.Retry.
func (e *Election) Current(ctx context.Context) (*berth.Holder, error) {
	if e.bad != nil {
		return nil, e.bad
	}
	page, err := e.read.Holders(ctx, keyspace.Lock, e.name, "", 0)
	if err = errors.Join(append(page.Problems, err)...); err != nil || len(page.Items) == 0 {
		return nil, err
	}
	now := &page.Items[0] // the outermost entry
	delete(now.Meta, settings.MetaKey)
	return now, nil
}

// Watch yields the present leader, and then each change, until ctx ends. A nil Holder without an error means that
// nobody leads. Watch reads once in each third of Config.Lease, on the caller's goroutine, and not while the
// loop's body runs. So a change is yielded up to that much later, and of several changes only the newest. A new
// term of the same process is a change.
//
// If the server refuses or does not answer, Watch yields nil and the error, once. Watch yields the error of an
// outage at most Config.Lease after the last answer, or after the loop's body for that answer has returned. The
// lease of the last yielded leader may be over then; it is over at the latest when the yielded Left has passed.
// From then on the leader is unknown, until Watch yields the leader again, changed or not.
//
// After an error that matches berth.ErrInvalidConfig or berth.ErrClosed, Watch ends.
func (e *Election) Watch(ctx context.Context) iter.Seq2[*berth.Holder, error] {
	return func(yield func(*berth.Holder, error) bool) {
		var told seen
		for {
			read, cancel := scriptkit.Limit(ctx, 2*e.every) // after a wait of every: the lease is over then
			now, err := e.Current(read)
			cancel()
			if ctx.Err() != nil {
				return
			}
			if told.news(now, err) && !yield(now, err) || errors.Is(err, berth.ErrInvalidConfig) {
				return
			}
			if !e.wait(ctx, e.every) {
				if ctx.Err() == nil {
					yield(nil, berth.ErrClosed)
				}
				return
			}
		}
	}
}

// seen is the last answer that a Watch has yielded.
type seen struct {
	any, failed bool
	node        string
	fence       int64
}

// news reports whether an answer differs from the last one, and stores it.
func (s *seen) news(now *berth.Holder, err error) bool {
	next := seen{any: true, failed: err != nil}
	if now != nil {
		next.node, next.fence = now.Node, now.Fence
	}
	before := *s
	*s = next
	return next != before
}

// wait waits for d, and reports false if ctx has ended or Close, of the election or the node, has begun.
func (e *Election) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-e.life.Done():
	case <-e.p.Closing():
	}
	return false
}
