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

// Election is a name that one process of many leads. It is safe for concurrent use.
type Election struct {
	name  string
	bad   error // what each call returns; nil for a usable one
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
	left  error          // guarded by mu: of locks that could not be given back
	terms sync.WaitGroup // locks that Close gives back; Add only under mu while life lasts
}

// defaultLease is that of locks.
const defaultLease = 5 * time.Second

// New returns the election of a name on a node. It does no I/O and always returns an Election: what is wrong
// with the arguments each call returns, as a *berth.ConfigError, and, but for a bad name, Check of the node too. A term is never reported as forgotten: it may
// take its time.
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

// Name is the name that is led.
func (e *Election) Name() string { return e.name }

// Fence returns the fence of the term that ctx was made under: the context of f, or one made from it. Fences
// rise with every term. Fence returns 0 for any other context; every check of fences refuses 0.
func (e *Election) Fence(ctx context.Context) int64 {
	if e.bad != nil {
		return 0
	}
	return e.locks.Fence(ctx, e.name)
}

// Wanted is closed when somebody has asked for leadership back in the term that ctx was made under, as Fence
// has it: an operator, a drain, or a candidate with WantAfter. It returns nil, which is never closed, for any
// other context.
func (e *Election) Wanted(ctx context.Context) <-chan struct{} {
	if e.bad != nil {
		return nil
	}
	return e.locks.Wanted(ctx, e.name)
}

// Close ends the wait of each Run with berth.ErrClosed, ends the context of each f, and hands on what this process
// leads, without waiting for f. Each Run then waits for its f, and returns. If nobody is to lead before f
// has returned, end the context of Run, and wait for Run, before Close. Close returns when what was led is handed on, or ctx's
// error, or that of a lock that could not be given back, which ends with its lease. It may be called more than once. Close of the node does the same.
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

// Current reads who leads: its node, label, owner, fence, Meta, since when (Granted) and for how much longer if nothing
// renews it (Left). Current returns nil without an error if nobody leads. It returns nothing that it has not just read: its
// errors are those of inspect.Reader, of them berth.ErrUnavailable if the server has not answered for Config.Retry.
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

// Watch tells who leads, and from then on each change, until ctx ends: nil without an error means that nobody
// leads. Watch reads once in each third of Config.Lease, on the caller's goroutine, and not while the loop's body
// runs. So a change is told that much later, and of several only the newest. A new term of the same process is a
// change.
//
// When the server refuses, or does not answer, the loop gets nil and that error, once. An outage is told at most
// Config.Lease after the last answer, or after the body has returned that got it: the lease of who was told of may
// be over then, and is at the latest when the Left that was told has passed. Nothing is known from then on, until
// the loop gets an answer again: who leads, changed or not. An error that matches berth.ErrInvalidConfig or
// berth.ErrClosed is the last.
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

// seen is what a Watch has told last.
type seen struct {
	any, failed bool
	node        string
	fence       int64
}

// news says whether that is to be told, and takes it as told.
func (s *seen) news(now *berth.Holder, err error) bool {
	next := seen{any: true, failed: err != nil}
	if now != nil {
		next.node, next.fence = now.Node, now.Fence
	}
	before := *s
	*s = next
	return next != before
}

// wait waits for so long, and reports false if ctx has ended or Close, of the election or the node, has begun.
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
