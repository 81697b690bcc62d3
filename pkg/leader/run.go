package leader

import (
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// out is for how long a candidate that was refused stays out of the line.
const out = time.Second

// Run stands for election, runs f while this process leads, and stands again after a loss, until f returns while
// its context lives, or ctx ends; see the package's Model. The context of f ends with ctx or with the hold, before
// anybody else can lead, and carries the owner of the hold. f never runs twice at the same time, and never begins under
// a context that has ended. It runs on the goroutine of Run.
//
// Run returns f's error, or nil if f returned nil. If f does not run, Run returns an error that matches ctx.Err() and
// context.Cause(ctx) when ctx has ended; berth.ErrInvalidConfig for a bad name, options or a nil f;
// berth.ErrClosed on a closed client; and berth.ErrDeadlock if the owner of ctx (berth.WithOwner) leads the
// name already. No other error ends Run: the observer and the logger are told of it.
func (c *Client) Run(ctx context.Context, name string, opts *Options, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	if opts == nil {
		opts = &Options{}
	}
	for {
		lock, err := c.locks.Lock(ctx, name, opts.lock())
		switch {
		case err == nil:
			if over, err := c.lead(ctx, lock, opts.KeepWhenWanted, f); over {
				return err
			}
		case ctx.Err() != nil || ends(err):
			return err
		default:
			c.stayOut(ctx)
		}
	}
}

// ends says whether standing again would be refused for the same reason.
func ends(err error) bool {
	return errors.Is(err, berth.ErrClosed) || errors.Is(err, berth.ErrInvalidConfig) || errors.Is(err, berth.ErrDeadlock)
}

// stayOut waits until a candidate that was refused may stand again. When ctx or the client has ended, that is at
// once: the next Lock says so.
func (c *Client) stayOut(ctx context.Context) {
	for again := true; again; {
		again = c.wait(ctx, out) && c.locks.Draining()
	}
}

// lead runs f for one term, and resigns. over says that Run ends with f's error.
func (c *Client) lead(ctx context.Context, lock *qlock.Lock, keep bool, f func(context.Context) error) (over bool, err error) {
	asked, ask := context.WithCancelCause(ctx)
	term, end := lock.Within(asked)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		select {
		case <-lock.Wanted():
			if !keep {
				ask(ErrWanted)
			}
		case <-term.Done():
		}
	}()
	told := func(error) {}
	defer func() { // also where f does not return, but panics
		why := context.Cause(term)
		end()
		ask(nil)
		<-heard
		_ = lock.Release(ctx) // the observer is told where it fails: the hold ends with its lease then
		told(why)
	}()
	if term.Err() != nil {
		return false, nil
	}
	told = c.tells(ctx, lock)
	err = f(term)
	return ctx.Err() != nil || term.Err() == nil && (err != nil || !wanted(lock)), err
}

// tells tells that a term begins, and returns what tells that it is over, and why.
func (c *Client) tells(ctx context.Context, lock *qlock.Lock) (over func(why error)) {
	ev := observe.Event{
		Kind: observe.TermBegan, Context: ctx, Name: lock.Name(), Claim: lock.ID(), Owner: berth.Owner(ctx), Fence: lock.Fence(), Attrs: c.attrs,
	}
	c.tell.Send(ev)
	began := c.clock.Now()
	return func(why error) {
		ev.Kind, ev.Held, ev.Err = observe.TermEnded, c.clock.Now()-began, why
		c.tell.Send(ev)
	}
}

func wanted(lock *qlock.Lock) bool {
	select {
	case <-lock.Wanted():
		return true
	default:
		return false
	}
}
