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

// out is for how long a candidate that was refused stays out of the line.
const out = time.Second

// Run stands for election, runs f while this process leads, and stands again after a loss, until f returns while
// its context lives, or ctx ends; see the package's Model. The context of f ends with ctx or with the hold, before
// anybody else can lead, and carries the owner of the hold. f never runs twice at the same time, and never begins under
// a context that has ended. It runs on the goroutine of Run.
//
// Run returns f's error, or nil if f returned nil. If f does not run, Run returns an error that matches ctx.Err() and
// context.Cause(ctx) when ctx has ended; berth.ErrInvalidConfig for a nil f, and an election that cannot be used;
// berth.ErrClosed when the election or the node is closed; and berth.ErrDeadlock if the owner of ctx (berth.WithOwner) leads the
// name already. No other error ends Run: the observer and the logger are told of it.
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

// ends says whether standing again would be refused for the same reason.
func ends(err error) bool {
	return errors.Is(err, berth.ErrClosed) || errors.Is(err, berth.ErrInvalidConfig) || errors.Is(err, berth.ErrDeadlock)
}

// stayOut waits until a candidate that was refused may stand again. When ctx has ended, or the election or the node is
// closed, that is at once: stand says so.
func (e *Election) stayOut(ctx context.Context) {
	for again := true; again; {
		again = e.wait(ctx, out) && e.p.Notice.Drains()
	}
}

// lead runs f for one term, and resigns. over says that Run ends with f's error.
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
		_ = lock.Release(ctx) // the observer is told where it fails: the hold ends with its lease then
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

// listen hears during a term whether the lock is wanted back, and whether the election or the node is closed: then it hands the
// lock on.
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

// tells tells that a term begins, and returns what tells that it is over, and why.
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
