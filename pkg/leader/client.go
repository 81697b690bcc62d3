package leader

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Client is a node that stands for election on one Redis. It is safe for concurrent use.
type Client struct {
	locks *qlock.Client
	read  *inspect.Reader
	tell  line.Teller
	attrs map[string]any // of each claim
	clock clock.Clock
	every time.Duration // of Watch

	closing chan struct{} // closed when Close begins
	close   sync.Once
}

// defaultLease is that of locks.
const defaultLease = 5 * time.Second

// New returns a client on a rueidis client, with a lock client of its own that has this configuration:
// namespace, label, lease, retries, logger, observer and the like. Config.Lease is the lease of who leads: within it
// the next one leads after a death. Config.WarnHeldLongerThan is by default below 0, which is never: a term may take
// its time. Of Config.Defaults count Priority, WantAfter, MaxHold, Meta and Attrs.
//
// The rueidis client stays the caller's: close it after the returned client. New does no I/O. Its errors are
// *berth.ConfigError, those of qlock.New.
func New(redis rueidis.Client, cfg qlock.Config) (*Client, error) {
	cfg.Lease = cmp.Or(cfg.Lease, defaultLease)
	cfg.WarnHeldLongerThan = cmp.Or(cfg.WarnHeldLongerThan, -1)
	d := cfg.Defaults
	cfg.Defaults = qlock.LockOptions{Priority: d.Priority, WantAfter: d.WantAfter, MaxHold: d.MaxHold, Meta: d.Meta, Attrs: d.Attrs}
	locks, err := qlock.New(redis, cfg)
	if err != nil {
		return nil, err
	}
	read, err := inspect.New(redis, inspect.Config{Namespace: cfg.Namespace, CallTimeout: cfg.CallTimeout, Retry: cfg.Retry})
	if err != nil {
		return nil, err
	}
	c := &Client{locks: locks, read: read, attrs: d.Attrs, clock: clock.New(), every: cfg.Lease / 3, closing: make(chan struct{})}
	// The locks write what an outage does.
	tell, _ := line.NewTeller(cmp.Or(cfg.Namespace, keyspace.DefaultNamespace), locks.Node, cfg.Logger, cfg.Observer)
	c.tell = tell.Of(keyspace.Lock)
	return c, nil
}

// Node is the id of this client's node, as qlock.Client has it: the Node that Current tells where this client leads.
func (c *Client) Node() string { return c.locks.Node() }

// Fence returns the fence of the term of name that ctx was made under: the context of f, or one made from it. Fences
// rise with every term. Fence returns 0 for any other context; every check of fences refuses 0.
func (c *Client) Fence(ctx context.Context, name string) int64 { return c.locks.Fence(ctx, name) }

// Wanted is closed when somebody has asked for leadership back in the term that ctx was made under, as Fence
// has it: an operator, a drain, or a candidate with WantAfter. It returns nil, which is never closed, for any
// other context.
func (c *Client) Wanted(ctx context.Context, name string) <-chan struct{} {
	return c.locks.Wanted(ctx, name)
}

// Close ends all waits with berth.ErrClosed, ends the context of each f, and hands on what this client
// leads, without waiting for f. Each Run then waits for its f, and returns. If nobody is to lead before f
// has returned, end the context of Run, and wait for Run, before Close. Errors and waiting are those of
// qlock.Client.Close. Close does not close the rueidis client.
func (c *Client) Close(ctx context.Context) error {
	c.close.Do(func() { close(c.closing) })
	return c.locks.Close(ctx)
}

// Current reads who leads: its node, label, owner, fence, Meta, since when (Granted) and for how much longer if nothing
// renews it (Left). Current returns nil without an error if nobody leads. It returns nothing that it has not just read: its
// errors are those of inspect.Reader, of them berth.ErrUnavailable if the server has not answered for Config.Retry.
func (c *Client) Current(ctx context.Context, name string) (*berth.Holder, error) {
	page, err := c.read.Holders(ctx, keyspace.Lock, name, "", 0)
	if err = errors.Join(append(page.Problems, err)...); err != nil || len(page.Items) == 0 {
		return nil, err
	}
	return &page.Items[0], nil // the outermost entry
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
func (c *Client) Watch(ctx context.Context, name string) iter.Seq2[*berth.Holder, error] {
	return func(yield func(*berth.Holder, error) bool) {
		var told seen
		for {
			read, cancel := scriptkit.Limit(ctx, 2*c.every) // after a wait of every: the lease is over then
			now, err := c.Current(read, name)
			cancel()
			if ctx.Err() != nil {
				return
			}
			if told.news(now, err) && !yield(now, err) || errors.Is(err, berth.ErrInvalidConfig) {
				return
			}
			if !c.wait(ctx, c.every) {
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

// wait waits for so long, and reports false if ctx has ended or Close has begun.
func (c *Client) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-c.closing:
	}
	return false
}
