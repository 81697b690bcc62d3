package qlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Lock waits in line until it has the lock, ctx ends or MaxWait has passed. The
// lock is never nil without an error.
//
// It returns a *berth.AcquireError, which matches berth.ErrNotAcquired, when it
// did not get the lock: also berth.ErrBusy if others kept it waiting for too long,
// berth.ErrDeadlock by the conflict strategy, berth.ErrTooManyEntries if the owner
// has 100 entries, and ctx.Err() and context.Cause(ctx)
// if ctx ended; then it returns at once, and what is left of the claim on the
// server is removed in the background. It returns berth.ErrInvalidConfig for bad
// options and berth.ErrClosed on a closed client.
func (c *Client) Lock(ctx context.Context, name string, opts *LockOptions) (*Lock, error) {
	return c.lock(ctx, name, opts, true)
}

// TryLock takes the lock if nobody holds it and nobody waits for it, and never
// waits in line itself. The reason in the *berth.AcquireError is ReasonHeld or
// ReasonQueuedAhead where it is not; else as Lock. MaxWait, MaxAttempts and
// QueueTTL are refused.
func (c *Client) TryLock(ctx context.Context, name string, opts *LockOptions) (*Lock, error) {
	return c.lock(ctx, name, opts, false)
}

// Do locks, runs f under the lock and releases it, also when f panics. The context
// of f carries the owner; it ends with ctx or with the hold, whichever comes
// first. Do returns Lock's error if f did not run; else f's error, joined with the
// *berth.EndError of the hold if that ended before f did. That error matches
// context.Canceled and context.DeadlineExceeded only if ctx itself has ended. A nil f is
// refused with berth.ErrInvalidConfig. Goroutines that f starts with its context share
// the owner.
func (c *Client) Do(ctx context.Context, name string, opts *LockOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	lock, err := c.Lock(ctx, name, opts)
	if err != nil {
		return err
	}
	return lock.hold.Do(ctx, f)
}

// TryDo is Do with TryLock in the place of Lock.
func (c *Client) TryDo(ctx context.Context, name string, opts *LockOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	lock, err := c.TryLock(ctx, name, opts)
	if err != nil {
		return err
	}
	return lock.hold.Do(ctx, f)
}

// Fence is the fence of the lock under which ctx was made: the context of Do, or
// one of a handle of this client and name. It is 0 where there is none, which
// whatever refuses smaller fences refuses too.
func (c *Client) Fence(ctx context.Context, name string) int64 {
	hold := c.seat.Load().Engine.Held(ctx, name)
	if hold == nil {
		return 0
	}
	return hold.Fence()
}

// Resume takes up a lock that was detached, in this or another process. It is
// renewed again if it was before. It returns berth.ErrNotHeld if the hold has
// ended, berth.ErrReleased if another node has resumed it and holds it, or it was
// released by force, berth.ErrLost if this node was found dead meanwhile, and
// berth.ErrInvalidConfig for a token of another kind or namespace, or for a lock
// that is not detached.
func (c *Client) Resume(ctx context.Context, token berth.Token) (*Lock, error) {
	for {
		seat := c.seat.Load()
		hold, err := seat.Resume(ctx, token)
		if err == nil {
			return &Lock{seat: seat, hold: hold, process: Resumed}, nil
		}
		if !errors.Is(err, berth.ErrClosed) && !errors.Is(err, engine.ErrReplaced) || !c.replaced(ctx, seat) {
			return nil, c.ended(ctx, err)
		}
	}
}

func (c *Client) lock(ctx context.Context, name string, opts *LockOptions, wait bool) (*Lock, error) {
	o, err := c.options(name, opts, wait)
	if err != nil {
		return nil, err
	}
	g := &gathering{c: c, o: o, owner: berth.Owner(ctx), wait: wait, start: c.clock.Now(), bound: o.attempts()}
	return g.lock(ctx, name, g.start)
}

// options checks the arguments of a call.
func (c *Client) options(name string, opts *LockOptions, wait bool) (LockOptions, error) {
	if opts == nil {
		opts = &LockOptions{}
	}
	if err := keyspace.CheckName(name); err != nil {
		return LockOptions{}, err
	}
	if opts.MaxAttempts == 0 && (opts.RetryDelay != 0 || opts.RetryJitter != 0) {
		return LockOptions{}, berth.Invalid("RetryDelay", "it stands between attempts, and MaxAttempts is 0")
	}
	o := opts.withDefaults(&c.cfg)
	if err := o.validate(); err != nil {
		return o, err
	}
	if !wait {
		return o, o.validateTry()
	}
	return o, nil
}

// lock takes one claim from its start to its hold. Where the node is replaced
// meanwhile, it asks again under the next one, at the end of the line: what the
// former had is gone with it. start is the moment of the call.
func (g *gathering) lock(ctx context.Context, name string, start time.Duration) (*Lock, error) {
	if err := settings.Text("owner", g.owner); err != nil {
		return nil, err
	}
	_, ends := ctx.Deadline()
	for now := start; ; now = g.c.clock.Now() {
		seat := g.c.seat.Load()
		claim := g.c.claim(seat, name, g.owner, &g.o, g.wait, ends)
		maxWait, attempts := g.left(now)
		claim.Attempts, claim.Before = attempts, now-start
		hold, err := seat.Engine.Acquire(ctx, claim, maxWait)
		if err == nil {
			return &Lock{seat: seat, hold: hold, process: process(hold, g.o.Conflict)}, nil
		}
		if errors.Is(err, engine.ErrReplaced) && g.c.replaced(ctx, seat) {
			continue
		}
		return nil, g.c.detailed(ctx, name, g.o, g.c.ended(ctx, err))
	}
}

// ended says why a call did not go on under the next node: ctx or the client has
// ended. Other errors stay what they are.
func (c *Client) ended(ctx context.Context, err error) error {
	if !errors.Is(err, engine.ErrReplaced) {
		return err
	}
	reason, cause := berth.ReasonClosed, berth.ErrClosed
	if ctx.Err() != nil {
		reason, cause = endOf(ctx)
	}
	var refusal *berth.AcquireError
	if errors.As(err, &refusal) {
		refusal.Reason, refusal.Cause = reason, cause
		return err
	}
	return cause
}

// replaced waits until the client has another node than it had, and reports false
// if it will not, or ctx has ended.
func (c *Client) replaced(ctx context.Context, seat *calls) bool {
	select {
	case <-seat.over:
		return c.seat.Load() != seat && ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// process says how a hold came about.
func process(hold *engine.Hold, conflict Conflict) Process {
	switch {
	case !hold.Reentered():
		return Granted
	case conflict == ExtendAndWorkThrough:
		return ReenteredExtended
	}
	return Reentered
}

// detailWaiters is how many waiters an error tells of.
const detailWaiters = 10

// detailed adds who holds and who waits to an error for which others are the
// reason, if that was asked for. It reads them after the fact: others may be in
// the way by then.
func (c *Client) detailed(ctx context.Context, name string, o LockOptions, err error) error {
	var refusal *berth.AcquireError
	if !o.DetailedErrors || !errors.As(err, &refusal) || !refusal.Is(berth.ErrBusy) && refusal.Reason != berth.ReasonDeadlock && refusal.Reason != berth.ReasonTooManyEntries {
		return err
	}
	ctx, cancel := scriptkit.Limit(context.WithoutCancel(ctx), c.cfg.CallTimeout)
	defer cancel()
	// Nothing is lost where this fails: the error is the caller's either way.
	if info, err := c.Info(ctx, name); err == nil {
		// Its own claim may not have been removed yet.
		refusal.Holders = slices.DeleteFunc(info.Entries, func(h Holder) bool { return h.ID == refusal.Claim })
	}
	for w, err := range c.Queue(ctx, name) {
		if err != nil || len(refusal.Waiters) == detailWaiters {
			break
		}
		if w.ID != refusal.Claim {
			refusal.Waiters = append(refusal.Waiters, w)
		}
	}
	return err
}
