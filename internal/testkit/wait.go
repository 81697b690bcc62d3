package testkit

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// Wait is an acquire that is on its way.
type Wait[H any] struct {
	*Call[H]
	W      *World
	Cancel context.CancelCauseFunc
	At     time.Duration // when it returned
}

// Queue acquires in the background, and lets everything settle.
func Queue[H any](ctx context.Context, w *World, acquire func(context.Context) (H, error)) *Wait[H] {
	a := &Wait[H]{W: w}
	ctx, a.Cancel = context.WithCancelCause(ctx)
	a.Call = Begin(ctx, func(ctx context.Context) (H, error) {
		defer func() { a.At = w.Now() }()
		return acquire(ctx)
	})
	synctest.Wait()
	return a
}

// Pending says that the acquire has not returned.
func (a *Wait[H]) Pending() bool { return !a.Over() }

// Returned waits for the acquire to return, no longer than a second beyond the
// moment at which it should: what renews by itself would go on for ever.
func (a *Wait[H]) Returned(by time.Duration) {
	a.W.T.Helper()
	patience := time.NewTimer(max(by-a.W.Now(), 0) + time.Second)
	defer patience.Stop()
	select {
	case <-a.Done:
	case <-patience.C:
		require.Fail(a.W.T, "it has not returned")
	}
}

// Granted waits for the handle, and fails if it came at another time.
func (a *Wait[H]) Granted(at time.Duration) H {
	a.W.T.Helper()
	a.Returned(at)
	require.NoError(a.W.T, a.Err)
	require.Equal(a.W.T, at, a.At, "when it was granted")
	return a.Got
}

// GrantedWithin waits for the handle, and fails unless it came at that moment or less
// than slack later.
func (a *Wait[H]) GrantedWithin(at, slack time.Duration) H {
	a.W.T.Helper()
	a.Returned(at)
	require.NoError(a.W.T, a.Err)
	require.GreaterOrEqual(a.W.T, a.At, at, "when it was granted")
	require.Less(a.W.T, a.At, at+slack, "when it was granted")
	return a.Got
}

// GrantedBy waits for the handle, and fails unless it came at that moment or at most
// 50 ms later.
func (a *Wait[H]) GrantedBy(at time.Duration) H {
	a.W.T.Helper()
	return a.GrantedWithin(at, 50*time.Millisecond+1)
}

// Refused waits for the error, and fails if it came at another time or for
// another reason.
func (a *Wait[H]) Refused(at time.Duration, reason berth.Reason) *berth.AcquireError {
	a.W.T.Helper()
	a.Returned(at)
	require.Nil(a.W.T, a.Got)
	require.ErrorIs(a.W.T, a.Err, berth.ErrNotAcquired)
	var refusal *berth.AcquireError
	require.ErrorAs(a.W.T, a.Err, &refusal)
	require.Equal(a.W.T, reason, refusal.Reason)
	require.Equal(a.W.T, at, a.At, "when it was refused")
	require.Equal(a.W.T, a.W.Name, refusal.Name)
	require.NotEmpty(a.W.T, refusal.Claim)
	return refusal
}

// RequirePending fails unless all of them still wait.
func RequirePending[W interface{ Pending() bool }](t *testing.T, waits ...W) {
	t.Helper()
	synctest.Wait()
	for i, a := range waits {
		require.True(t, a.Pending(), "wait %d has returned", i)
	}
}

// Ended is when a hold's context ended, and why.
type Ended struct {
	At    time.Duration
	Cause error
}

// Watch tells how a hold ends.
func (w *World) Watch(h berth.Hold) <-chan Ended {
	ch := make(chan Ended, 1)
	go func() {
		<-h.Done()
		ch <- Ended{w.Now(), context.Cause(h.Context())}
	}()
	return ch
}

// RequireRenewedToItsMaximum renews a hold until its maximum, which is a second or more, has ended it. take
// gets the hold. The server's millisecond of the grant begins before the request, that of a renewal with it:
// so the deadline that a renewal gives is a bit before the local limit.
func (w *World) RequireRenewedToItsMaximum(limit time.Duration, take func() berth.Hold) {
	w.T.Helper()
	const begun = 900 * time.Microsecond
	w.Until(begun)
	h := take()
	w.Until(time.Millisecond)
	w.Until(limit - limit/50)
	for h.Renew(context.Background()) == nil {
		w.Advance(time.Millisecond + 5*time.Microsecond) // so that each gives another deadline
	}
	require.ErrorIs(w.T, h.Err(), berth.ErrExpired)
	require.NotErrorIs(w.T, h.Err(), berth.ErrLost)
	require.InDelta(w.T, begun+limit, w.Now(), float64(limit/50))
}

// RequireWithin compares a local deadline. One that comes from a request in the
// middle of a millisecond is up to one later: the server counts whole ones.
func RequireWithin(t *testing.T, want, got time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, got, want)
	require.Less(t, got, want+time.Millisecond)
}

// Collect reads a listing to its end.
func Collect[T any](t *testing.T, listing iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for item, err := range listing {
		require.NoError(t, err)
		all = append(all, item)
	}
	return all
}

// Must has a call succeed, and In says in which test; it is what the call returned.
func Must[V any](v V, err error) Returned[V] { return Returned[V]{v, err} }

// Returned is what a call returned.
type Returned[V any] struct {
	v   V
	err error
}

// In is what the call returned where it has not failed.
func (r Returned[V]) In(t interface {
	require.TestingT
	Helper()
},
) V {
	t.Helper()
	require.NoError(t, r.err)
	return r.v
}

// Second is the error of a call that returns something else before it.
func Second[T any](_ T, err error) error { return err }
