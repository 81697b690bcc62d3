package qlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
)

// LockAll locks all the names or none. The order is the same for every caller, so two calls
// that share names never wait for each other in a cycle. Repeated names count once. While
// LockAll waits for the rest, it renews the locks that it has, even with NoRenew; a fixed lease
// starts once all are held. If a lock is lost meanwhile, the wait ends. MaxWait and Attempts
// limit all waits together. All locks have one owner: that of ctx, or a new one.
//
// LockAll returns the errors of Lock, for the name that was not acquired. When ctx ends,
// LockAll returns at once and releases its locks in the background.
func (l *Locks) LockAll(ctx context.Context, names []string, opts *LockOptions) (*LockSet, error) {
	return l.lockAll(ctx, names, opts, true)
}

// TryLockAll is like LockAll, but never waits.
func (l *Locks) TryLockAll(ctx context.Context, names []string, opts *LockOptions) (*LockSet, error) {
	return l.lockAll(ctx, names, opts, false)
}

// DoAll is like Do, but uses LockAll instead of Lock.
func (l *Locks) DoAll(ctx context.Context, names []string, opts *LockOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	set, err := l.LockAll(ctx, names, opts)
	if err != nil {
		return err
	}
	return set.do(ctx, f)
}

// TryDoAll is like Do, but uses TryLockAll instead of Lock.
func (l *Locks) TryDoAll(ctx context.Context, names []string, opts *LockOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	set, err := l.TryLockAll(ctx, names, opts)
	if err != nil {
		return err
	}
	return set.do(ctx, f)
}

// order returns the names, each once, in the order in which all callers lock them.
func order(names []string) []string {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func (l *Locks) lockAll(ctx context.Context, names []string, opts *LockOptions, wait bool) (*LockSet, error) {
	if len(names) == 0 {
		return nil, berth.Invalid("names", "there is none")
	}
	names = order(names)
	r, err := l.request(ctx, opts, wait, names...)
	if err != nil {
		return nil, err
	}
	if r.owner == "" {
		r.owner = l.face().Engine.ClaimID()
	}
	locks, err := r.lockAll(ctx, names)
	if err != nil {
		drop(ctx, locks)
		return nil, err
	}
	return newLockSet(ctx, locks, l.p.Clock.Now()-r.start), nil
}

// lockAll locks one name after the other, and returns the locks that it has, even with an
// error.
func (r *request) lockAll(ctx context.Context, names []string) (locks []*Lock, err error) {
	keeping, stop := context.WithCancel(context.Background())
	var keepers sync.WaitGroup
	defer keepers.Wait()
	defer stop()
	// A lock that has ended makes the wait for the rest pointless.
	whole, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, name := range names {
		lock, err := r.lock(whole, name, r.l.p.Clock.Now())
		for _, held := range locks {
			if ended := held.Err(); err != nil && ended != nil && ctx.Err() == nil {
				return locks, r.lostMeanwhile(ctx, held, ended)
			}
		}
		if err != nil {
			return locks, err
		}
		locks = append(locks, lock)
		defer context.AfterFunc(lock.hold.Context(), cancel)()
		if r.fixed() {
			keepers.Go(func() { r.keep(keeping, lock) })
		}
	}
	stop()
	keepers.Wait()
	for _, lock := range locks {
		err := lock.Err()
		if err == nil && r.fixed() {
			err = lock.Renew(ctx) // fixed leases run from here on
		}
		if err != nil {
			return locks, r.lostMeanwhile(ctx, lock, err)
		}
	}
	return locks, nil
}

// fixed reports whether the locks have leases that end and that nobody renews.
func (r *request) fixed() bool { return r.NoRenew && r.Lease != berth.Forever }

// keep renews a lock with a fixed lease during the wait for the rest; other locks renew
// themselves.
func (r *request) keep(ctx context.Context, lock *Lock) {
	ticker := time.NewTicker(min(r.Lease, r.l.wait) / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = lock.Renew(ctx) // after a failure, lockAll finds the lock lost
		case <-ctx.Done():
			return
		}
	}
}

// lostMeanwhile returns the error of a LockAll that lost a lock while it waited for another.
func (r *request) lostMeanwhile(ctx context.Context, lock *Lock, err error) error {
	refusal := &berth.AcquireError{
		Name: lock.Name(), Claim: lock.ID(), Reason: berth.ReasonFailed, Waited: r.l.p.Clock.Now() - r.start, Cause: err,
	}
	if ctx.Err() != nil {
		refusal.Reason, refusal.Cause = line.EndOf(ctx)
	}
	return refusal
}

// drop releases the locks, the last first; in the background if ctx has ended.
func drop(ctx context.Context, locks []*Lock) {
	for _, lock := range slices.Backward(locks) {
		if ctx.Err() != nil {
			lock.hold.Drop()
		} else {
			_ = lock.Release(ctx) // after a failure the lock ends with its lease; the observer is told
		}
	}
}

// LockSet is the handle of several locks, which LockAll returns. A LockSet ends when the first
// of its locks ends. A LockSet is safe for concurrent use.
type LockSet struct {
	locks  []*Lock
	waited time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc
	wanted func() <-chan struct{} // closed when the first of the locks is wanted back
}

var _ berth.Handle = (*LockSet)(nil)

// newLockSet returns the handle of held locks.
func newLockSet(ctx context.Context, locks []*Lock, waited time.Duration) *LockSet {
	s := &LockSet{locks: locks, waited: waited}
	under := context.WithoutCancel(ctx)
	for _, lock := range s.locks {
		under = lock.hold.Mark(under)
	}
	under, s.cancel = context.WithCancelCause(under)
	s.ctx = engine.Clocked(under, s, s.cancel)
	for _, lock := range s.locks {
		ended := lock.hold.Context()
		context.AfterFunc(ended, func() { s.cancel(named(lock, context.Cause(ended))) })
	}
	s.wanted = sync.OnceValue(func() <-chan struct{} {
		wanted := make(chan struct{})
		want := sync.OnceFunc(func() { close(wanted) })
		for _, lock := range s.locks {
			context.AfterFunc(lock.hold.Asked(), want)
		}
		return wanted
	})
	return s
}

// Locks returns the locks, in the order of Names. The release of one lock ends the set.
func (s *LockSet) Locks() []*Lock { return slices.Clone(s.locks) }

// Names returns the names, each once, in the order in which they were locked.
func (s *LockSet) Names() []string {
	names := make([]string, len(s.locks))
	for i, lock := range s.locks {
		names[i] = lock.Name()
	}
	return names
}

// Fences returns the fences by name.
func (s *LockSet) Fences() map[string]int64 {
	return maps.Collect(func(yield func(string, int64) bool) {
		for _, lock := range s.locks {
			if !yield(lock.Name(), lock.Fence()) {
				return
			}
		}
	})
}

// Left returns the time until the earliest local deadline of the locks: berth.Forever for no
// end, 0 once one of the locks has ended.
func (s *LockSet) Left() time.Duration {
	left := berth.Forever
	for _, lock := range s.locks {
		left = min(left, lock.Left())
	}
	return left
}

// Waited returns how long the acquiring call took.
func (s *LockSet) Waited() time.Duration { return s.waited }

// Context returns the set's context, which has the owner and the values of the acquiring
// context but ends only with the first of the holds. Its context.Cause says why.
func (s *LockSet) Context() context.Context {
	_ = s.Err()
	return s.ctx
}

// Within returns a context that carries the owner and ends with ctx or with the first of the
// holds, whichever ends first. Call the CancelFunc when the work under the context is done.
func (s *LockSet) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	for _, lock := range s.locks {
		ctx = lock.hold.Mark(ctx)
	}
	return engine.Within(ctx, s.ctx, s)
}

// Done returns a channel that is closed when the first of the holds has ended.
func (s *LockSet) Done() <-chan struct{} { return s.Context().Done() }

// Err returns nil while all holds live, and afterwards the reason for the end of one of them. Err of a nil LockSet is
// berth.ErrNotHeld.
func (s *LockSet) Err() error {
	if s == nil {
		return berth.ErrNotHeld
	}
	for _, lock := range s.locks {
		if err := lock.Err(); err != nil {
			err = named(lock, err)
			s.cancel(err) // a context's end travels by a goroutine of its own
			return err
		}
	}
	return nil
}

// named adds the name of the lock to an error.
func named(lock *Lock, err error) error {
	if _, said := errors.AsType[*berth.EndError](err); said || err == nil {
		return err
	}
	return fmt.Errorf("%q: %w", lock.Name(), err)
}

// Wanted returns a channel that is closed when the first of the locks is wanted back; see
// Lock.Wanted.
func (s *LockSet) Wanted() <-chan struct{} { return s.wanted() }

// Release releases all locks, the last first, by Lock.Release, and joins the errors. Release of
// a nil LockSet returns berth.ErrNotHeld.
func (s *LockSet) Release(ctx context.Context) error {
	if s == nil {
		return berth.ErrNotHeld
	}
	errs := make([]error, 0, len(s.locks))
	for _, lock := range slices.Backward(s.locks) {
		errs = append(errs, named(lock, lock.Release(ctx)))
	}
	return errors.Join(errs...)
}

// Renew renews all locks by Lock.Renew, and joins the errors.
func (s *LockSet) Renew(ctx context.Context) error {
	return s.each(func(lock *Lock) error { return lock.Renew(ctx) })
}

// Extend extends all locks by Lock.Extend, and joins the errors. If one lock may not be
// extended, none is.
func (s *LockSet) Extend(ctx context.Context, by time.Duration) error {
	if err := checkExtension(by); err != nil {
		return err
	}
	for _, lock := range s.locks {
		if err := lock.hold.MayExtend(by); err != nil {
			return named(lock, err)
		}
	}
	return s.each(func(lock *Lock) error { return lock.Extend(ctx, by) })
}

func (s *LockSet) each(do func(*Lock) error) error {
	errs := make([]error, 0, len(s.locks))
	for _, lock := range s.locks {
		errs = append(errs, named(lock, do(lock)))
	}
	return errors.Join(errs...)
}

// do runs f under all locks and releases them, even if f panics.
func (s *LockSet) do(ctx context.Context, f func(context.Context) error) (err error) {
	inner, cancel := s.Within(ctx)
	defer func() {
		cancel()
		ended := s.Err()
		released := s.Release(ctx)
		if ended == nil && errors.Is(released, berth.ErrNotHeld) {
			ended = released // a lock had ended, which this process had not learned yet
		}
		err = caller.Outcome(ctx, err, ended, ended != nil)
	}()
	return f(inner)
}
