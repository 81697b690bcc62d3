package leader

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// out is how long a refused candidate stays out of the line.
const out = time.Second

// Run stands for election, runs f while this process leads, and stands again after a loss, until f returns while its
// context lives, or until ctx ends; see the Model in the package comment. The context of f ends with ctx or with the
// hold, before any other process can lead, and carries the owner of the hold. Function f runs on the goroutine of
// Run, never twice at the same time, and never begins under a context that has ended.
//
// Run returns f's error, or nil if f returned nil. If ctx ends while f does not run, Run returns an error that matches
// ctx.Err() and context.Cause(ctx). Run returns berth.ErrInvalidConfig for a nil f or an election with bad arguments,
// berth.ErrClosed if the election or the node is closed, and berth.ErrDeadlock if the owner of ctx (berth.WithOwner)
// already leads the name. No other error ends Run: Run reports it to the observer and the logger.
func (e *Election) Run(ctx context.Context, f func(context.Context) error) error {
	if err := cmp.Or(e.bad, settings.Function(f != nil)); err != nil {
		return err
	}
	for {
		lock, err := e.stand(ctx)
		switch {
		case err == nil:
			if over, err := e.lead(ctx, lock, f); over {
				return err
			}
		case ctx.Err() != nil || ends(err):
			return err
		default:
			e.stayOut(ctx)
		}
	}
}

// stand waits in line for a term.
func (e *Election) stand(ctx context.Context) (*qlock.Lock, error) {
	if e.isClosed() {
		return nil, berth.ErrClosed
	}
	open, cancel := caller.Until(ctx, e.life)
	defer cancel()
	lock, err := e.locks.Lock(open, e.name, nil)
	if refused, ok := errors.AsType[*berth.AcquireError](err); ok && e.isClosed() && ctx.Err() == nil {
		refused.Reason, refused.Cause = berth.ReasonClosed, berth.ErrClosed
	}
	return lock, err
}

// ends reports whether standing again would be refused for the same reason.
func ends(err error) bool {
	return errors.Is(err, berth.ErrClosed) || errors.Is(err, berth.ErrInvalidConfig) || errors.Is(err, berth.ErrDeadlock)
}

// stayOut waits until a refused candidate may stand again. stayOut returns at once if ctx has ended, or if the
// election or the node is closed; stand then returns the error.
func (e *Election) stayOut(ctx context.Context) {
	for again := true; again; {
		again = e.wait(ctx, out) && e.p.Notice.Drains()
	}
}

// lead runs f for one term, and resigns. over reports that Run ends with f's error.
func (e *Election) lead(ctx context.Context, lock *qlock.Lock, f func(context.Context) error) (over bool, err error) {
	if !e.begin() {
		_ = lock.Release(ctx)
		return true, berth.ErrClosed
	}
	asked, ask := context.WithCancelCause(ctx)
	term, end := lock.Within(asked)
	heard, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(heard)
		e.listen(lock, done, ask)
	}()
	told := func(error) {}
	defer func() { // also where f does not return, but panics
		why := context.Cause(term)
		end()
		ask(nil)
		close(done)
		<-heard
		_ = lock.Release(ctx) // the observer learns of a failure: the hold ends with its lease then
		told(why)
	}()
	if term.Err() != nil {
		return false, nil
	}
	told = e.tells(ctx, lock)
	err = f(term)
	return ctx.Err() != nil || term.Err() == nil && (err != nil || !wanted(lock)), err
}

// begin counts a term, which ends with listen, unless the election or the node is closed.
func (e *Election) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isClosed() {
		return false
	}
	e.terms.Add(1)
	return true
}

// listen watches, during a term, whether the lock is wanted back, and whether the election or the node is closed. In the
// latter case listen hands the lock on.
func (e *Election) listen(lock *qlock.Lock, done <-chan struct{}, ask context.CancelCauseFunc) {
	defer e.terms.Done()
	for wanted := lock.Wanted(); ; {
		select {
		case <-wanted:
			if wanted = nil; !e.keep {
				ask(ErrWanted)
			}
			continue
		case <-done:
			return
		case <-e.life.Done():
		case <-e.p.Closing():
		}
		ask(berth.ErrClosed)
		if err := lock.Release(context.Background()); err != nil && !errors.Is(err, berth.ErrNotHeld) && !errors.Is(err, berth.ErrReleased) {
			e.mu.Lock()
			e.left = errors.Join(e.left, err)
			e.mu.Unlock()
		}
		return
	}
}

// tells sends the event of a term's beginning, and returns the function that sends the event of
// its end.
func (e *Election) tells(ctx context.Context, lock *qlock.Lock) (over func(why error)) {
	ev := observe.Event{
		Kind: observe.TermBegan, Context: ctx, Name: lock.Name(), Node: lock.Node(), Claim: lock.ID(), Owner: berth.Owner(ctx),
		Fence: lock.Fence(), Attrs: e.attrs,
	}
	e.tell.Send(ev)
	began := e.p.Clock.Now()
	return func(why error) {
		ev.Kind, ev.Held, ev.Err = observe.TermEnded, e.p.Clock.Now()-began, why
		e.tell.Send(ev)
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
