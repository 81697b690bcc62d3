package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// AllocateOptions are the options of one allocation. A nil pointer means all
// defaults.
type AllocateOptions struct {
	// Priority moves the claim ahead of lower ones in line: -128 to 127.
	// Default 0.
	Priority int
	// Lease is how long the hold lives without being renewed: whole
	// milliseconds, at least 20 ms, or berth.Forever. What is longer than
	// Config.Lease begins with the first heartbeat after the grant, a third of
	// Config.Lease later at the most; with NoRenew or MaxHold, before Allocate
	// returns. Default Config.Lease.
	Lease time.Duration
	// NoRenew leaves the renewing to the caller: the hold ends with its lease
	// unless Renew is called. Default false.
	NoRenew bool
	// MaxHold bounds how long the resource may be held, renewed or not: whole
	// milliseconds. Default 0, no bound.
	MaxHold time.Duration
	// MaxWait bounds the wait, beside ctx. Default 0, no bound.
	MaxWait time.Duration
	// Meta is stored with the claim and shown in listings: up to 16 KiB.
	// Default none.
	Meta map[string]string
	// Attrs goes to the observer with every event of the claim, and nowhere
	// else. Default none.
	Attrs map[string]any
	// Bind names a binding, any bytes up to 512: the claim gets the resource that
	// is bound to it if that is free, and another one otherwise, which is bound to
	// it then. Default "", none.
	Bind string
	// BindFor is how long the binding lasts at least, counted from the grant: whole
	// milliseconds, or berth.Forever. A binding to the same resource that lasts longer
	// stays as it is. It needs a Bind. Default 1 h.
	BindFor time.Duration
}

func (o AllocateOptions) withDefaults(cfg Config) AllocateOptions {
	if o.Lease == 0 {
		o.Lease = cfg.Lease
	}
	return o
}

func (o AllocateOptions) validate() error {
	if err := settings.Priority("Priority", o.Priority); err != nil {
		return err
	}
	if err := settings.Lease("Lease", o.Lease); err != nil {
		return err
	}
	if err := settings.MaxHold("MaxHold", o.MaxHold); err != nil {
		return err
	}
	if o.MaxWait < 0 {
		return berth.Invalid("MaxWait", "%s is negative", o.MaxWait)
	}
	if err := settings.Text("Bind", o.Bind); err != nil {
		return err
	}
	if o.BindFor != 0 && o.Bind == "" {
		return berth.Invalid("BindFor", "there is no Bind that could last for %s", o.BindFor)
	}
	if err := settings.Duration("BindFor", o.BindFor); err != nil {
		return err
	}
	return settings.Meta("Meta", o.Meta)
}

// Allocate waits in line until a resource is granted, ctx ends or MaxWait has
// passed. Claims of one priority are granted strictly in the order in which the
// server saw them first. A pool without resources is waited for as well. Then it
// opens the value, unless this process has.
//
// It returns a *berth.AcquireError, which matches berth.ErrNotAcquired, when it
// did not get a resource; one that the end of ctx caused also matches ctx.Err()
// and context.Cause(ctx), and returns at once: what is left of the claim on the
// server is removed in the background. Where Open failed, it matches Open's error;
// where ctx ended while Open ran, Open goes on in the background, and the resource is
// given back when it has returned.
// It returns berth.ErrInvalidConfig for bad options and berth.ErrClosed on a closed
// client.
func (p *Pool[T]) Allocate(ctx context.Context, opts *AllocateOptions) (*Allocation[T], error) {
	return p.allocate(ctx, opts, true, 0)
}

// TryAllocate takes a resource if one is free and nobody waits for it, and never
// waits in line itself. Where the pool has no resources and a Source, it waits until the
// Source has answered, within ctx and MaxWait: for the refresh that is under way in this
// process, or for one that it begins, whosever turn it is, at most once a second; many
// who try at once share it. Then it tries once more. The reason in the
// *berth.AcquireError is ReasonFull, ReasonResting, ReasonEmpty or ReasonQueuedAhead
// where no resource is free; else as Allocate.
func (p *Pool[T]) TryAllocate(ctx context.Context, opts *AllocateOptions) (*Allocation[T], error) {
	return p.allocate(ctx, opts, false, 0)
}

// AllocateHealthy is Allocate that asks Healthy before it returns: a resource that is
// not healthy is given back, to rest for FailureRest, and a new claim waits at the end of
// the line. MaxWait bounds all waits together; an Open or a Healthy under way ends by
// OpenTimeout. Its errors are those of Allocate; where nothing is healthy it goes on
// until MaxWait or ctx ends it.
func (p *Pool[T]) AllocateHealthy(ctx context.Context, opts *AllocateOptions) (*Allocation[T], error) {
	o := AllocateOptions{}
	if opts != nil {
		o = *opts
	}
	clock := p.core.client.node.Engine
	pace := scriptkit.NewPace(p.core.client.cfg.Retry)
	for began, whole := clock.Now(), o.MaxWait; ; {
		a, err := p.allocate(ctx, &o, true, clock.Now()-began)
		if err != nil {
			return nil, err
		}
		bad := p.unhealthy(ctx, a)
		if bad == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return nil, p.failed(ctx, a.hold, bad)
		}
		// Where what is not healthy does not rest, it may be the next one again.
		if p.cfg.FailureRest == 0 && !pace.Pause(ctx, nil) {
			return nil, p.failed(ctx, a.hold, bad)
		}
		if whole > 0 {
			if o.MaxWait = whole - (clock.Now() - began); o.MaxWait <= 0 {
				return nil, p.outOfTime(a.hold, clock.Now()-began, bad)
			}
		}
	}
}

// allocate takes a claim to its handle; before is how long the call had taken already.
func (p *Pool[T]) allocate(ctx context.Context, opts *AllocateOptions, wait bool, before time.Duration) (*Allocation[T], error) {
	if opts == nil {
		opts = &AllocateOptions{}
	}
	o := opts.withDefaults(p.core.client.cfg)
	if err := o.validate(); err != nil {
		return nil, err
	}
	clock := p.core.client.node.Engine
	began := clock.Now() - before
	claim := p.core.claim(ctx, o, wait)
	claim.Before = before
	hold, err := p.core.acquire(ctx, claim, o.MaxWait)
	if refusal, ok := errors.AsType[*berth.AcquireError](err); ok && !wait && refusal.Reason == berth.ReasonEmpty {
		if p.fill(ctx, o.MaxWait) {
			claim = p.core.claim(ctx, o, wait)
			claim.Before = clock.Now() - began
			hold, err = p.core.acquire(ctx, claim, o.MaxWait)
		} else if ctx.Err() != nil {
			return nil, p.gaveUp(ctx, refusal, clock.Now()-began)
		}
	}
	if err != nil {
		return nil, p.unfilled(err)
	}
	return p.open(ctx, hold)
}

// fill waits for the Source of a pool that was found empty, and returns whether it was
// asked.
func (p *Pool[T]) fill(ctx context.Context, patience time.Duration) bool {
	if patience > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, patience)
		defer stop()
	}
	return p.refresher.Fill(ctx)
}

// Do allocates, runs f under the hold and gives the resource back, also when f
// panics. The context of f carries the owner; it ends with ctx or with the hold,
// whichever comes first. The allocation is only valid within f. Do returns
// Allocate's error if f did not run; else f's error, joined with the *berth.EndError of
// the hold if that ended before f did, and not by f's own Release or Detach. That error
// matches context.Canceled and context.DeadlineExceeded only if ctx itself has ended. A
// nil f is refused with berth.ErrInvalidConfig.
func (p *Pool[T]) Do(ctx context.Context, opts *AllocateOptions, f func(context.Context, *Allocation[T]) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	a, err := p.Allocate(ctx, opts)
	if err != nil {
		return err
	}
	return a.do(ctx, f)
}

// TryDo is Do with TryAllocate in the place of Allocate.
func (p *Pool[T]) TryDo(ctx context.Context, opts *AllocateOptions, f func(context.Context, *Allocation[T]) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	a, err := p.TryAllocate(ctx, opts)
	if err != nil {
		return err
	}
	return a.do(ctx, f)
}

// Fence is the fence of the allocation from this pool that ctx was made under: the
// context of Do, or one of an allocation. It is 0 where there is none, which whatever
// refuses smaller fences refuses too.
func (p *Pool[T]) Fence(ctx context.Context) int64 {
	hold := p.core.client.node.Engine.Held(ctx, p.core.name)
	if hold == nil {
		return 0
	}
	return hold.Fence()
}

// Resume takes up a hold of this pool that was detached, in this or another process,
// and opens its value. It is renewed again if it was before. It returns
// berth.ErrNotHeld if the hold has ended, berth.ErrReleased if another node has
// resumed or released it, berth.ErrInvalidConfig for a token of another kind,
// namespace or pool, or for a hold that is not detached; Open's error, and then the
// resource was given back.
func (p *Pool[T]) Resume(ctx context.Context, token berth.Token) (*Allocation[T], error) {
	if token.Name != p.core.name {
		return nil, berth.Invalid("token.Name", "%q is not this pool's, %q", token.Name, p.core.name)
	}
	hold, err := p.core.client.node.Resume(ctx, token)
	if err != nil {
		return nil, err
	}
	return p.open(ctx, hold)
}
