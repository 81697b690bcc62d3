package semaphore

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Acquire waits in line until the permit is granted, ctx ends or MaxWait has passed. Claims of
// one priority are granted strictly in the order in which they first reached the server.
//
// If the permit is not granted, Acquire returns a *berth.AcquireError, which matches
// berth.ErrNotAcquired. When ctx ends, Acquire returns at once; the error then also matches
// ctx.Err() and context.Cause(ctx), and the node removes the claim in the background. Acquire
// returns berth.ErrInvalidConfig for bad options and berth.ErrClosed on a closed node.
func (s *Semaphore) Acquire(ctx context.Context, opts *AcquireOptions) (*Permit, error) {
	return s.acquire(ctx, opts, true)
}

// TryAcquire takes a permit if enough capacity is free and no claim waits in line. TryAcquire
// itself never waits in line. If the server does not answer, the call is repeated within
// node.Config.Retry.
//
// TryAcquire returns the errors of Acquire. The reason in the *berth.AcquireError is ReasonFull
// if too little capacity is free, and ReasonQueuedAhead if other claims wait. A MaxWait or
// WantAfter in opts is refused; one in Config.Defaults is ignored.
func (s *Semaphore) TryAcquire(ctx context.Context, opts *AcquireOptions) (*Permit, error) {
	return s.acquire(ctx, opts, false)
}

func (s *Semaphore) acquire(ctx context.Context, opts *AcquireOptions, wait bool) (*Permit, error) {
	if s.bad != nil {
		return nil, s.bad
	}
	o := s.defaults
	if opts != nil {
		o = opts.or(o)
	}
	o = o.complete(s.p.Settings.Lease)
	if err := o.validate(); err != nil {
		return nil, err
	}
	if !wait {
		if opts != nil && opts.MaxWait != 0 {
			return nil, berth.Invalid("MaxWait", "a call that does not wait has no use for it")
		}
		if opts != nil && opts.WantAfter != 0 {
			return nil, berth.Invalid("WantAfter", "a call that does not wait has no use for it")
		}
		o.MaxWait, o.WantAfter = 0, 0
	}
	owner := berth.Owner(ctx)
	if err := settings.Text("owner", owner); err != nil {
		return nil, err
	}
	start := s.p.Clock.Now()
	for now := start; ; now = s.p.Clock.Now() {
		face := s.face()
		claim := s.claim(face, &o, owner, wait)
		claim.Before = now - start
		hold, err := face.Engine.Acquire(ctx, claim, line.Rest(o.MaxWait, now-start))
		if err == nil {
			return &Permit{face: face, hold: hold}, nil
		}
		again, err := s.p.Replaced(ctx, face.Node, err)
		if !again {
			return nil, err
		}
	}
}

// claim returns a new claim for a permit.
func (s *Semaphore) claim(f *line.Face, o *AcquireOptions, owner string, wait bool) *engine.Claim {
	return &engine.Claim{
		ID: f.Engine.ClaimID(), Kind: keyspace.Sem, Name: s.name, MayWait: wait, Capacity: s.capacity, Attrs: o.Attrs,
		WantAfter: o.WantAfter, Request: s,
		Record: engine.Record{
			Weight: o.Weight, Wait: s.p.Settings.Lease, Lease: o.Lease, MaxHold: o.MaxHold,
			NoRenew: o.NoRenew || o.Lease == berth.Forever, Phase: 'w', Priority: o.Priority,
			Node: f.ID, Owner: owner, Label: s.p.Settings.Label, Meta: o.Meta,
		},
	}
}

// Do acquires a permit, runs f, and releases the permit, even if f panics. The context of f
// carries the owner, and ends with ctx or with the permit, whichever ends first.
//
// If f did not run, Do returns Acquire's error. Otherwise Do returns f's error. If the permit
// ended before f returned, Do joins the permit's *berth.EndError; the joined error matches
// context.Canceled and context.DeadlineExceeded only if ctx itself has ended.
//
// A release without an answer is repeated within node.Config.Retry while Do waits; if the
// release fails, Do sends the event release_failed and returns no error for it. A nil f is
// refused with berth.ErrInvalidConfig.
func (s *Semaphore) Do(ctx context.Context, opts *AcquireOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	permit, err := s.Acquire(ctx, opts)
	if err != nil {
		return err
	}
	return permit.hold.Do(ctx, f)
}

// TryDo is like Do, but uses TryAcquire instead of Acquire.
func (s *Semaphore) TryDo(ctx context.Context, opts *AcquireOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	permit, err := s.TryAcquire(ctx, opts)
	if err != nil {
		return err
	}
	return permit.hold.Do(ctx, f)
}
