package leader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// closes are the Close of the election, and that of the node.
var closes = map[string]func(ctx context.Context, c *candidate) error{
	"the election": func(ctx context.Context, c *candidate) error { return c.e.Close(ctx) },
	"the node":     func(ctx context.Context, c *candidate) error { return c.n.Close(ctx) },
}

func TestCloseHandsOnWithoutWaitingForF(t *testing.T) {
	each(t, closes, func(t *testing.T, w *world, end func(ctx context.Context, c *candidate) error) {
		a := w.node().stand(nil, func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(10 * time.Second) // it heeds late
			return errOwn
		})
		b := w.node().stand(nil, nil)
		for range 2 {
			require.NoError(t, end(t.Context(), a))
			require.Zero(t, w.Now())
		}
		synctest.Wait()
		require.True(t, b.leads())
		require.ErrorIs(t, context.Cause(a.only().ctx), berth.ErrClosed) // or the end of the hold, which says so
		w.Advance(10*time.Second - 1)
		require.Zero(t, a.only().by)
		w.Advance(1)
		require.ErrorIs(t, a.returned(), berth.ErrClosed)
		require.ErrorIs(t, a.e.Run(t.Context(), func(context.Context) error { return nil }), berth.ErrClosed)
		var last error
		for _, err := range a.e.Watch(t.Context()) {
			last = err
		}
		require.ErrorIs(t, last, berth.ErrClosed)
	})
}

func TestCloseEndsTheWaitOfACandidate(t *testing.T) {
	each(t, closes, func(t *testing.T, w *world, end func(ctx context.Context, c *candidate) error) {
		a, b := w.node().stand(nil, nil), w.node().stand(nil, nil)
		require.Equal(t, 1, w.waiting())
		other := a.n.stand(&leader.Config{Priority: -1}, nil)
		require.NoError(t, other.e.Close(t.Context()))
		require.ErrorIs(t, other.returned(), berth.ErrClosed, "that election alone")
		require.NoError(t, end(t.Context(), b))
		require.ErrorIs(t, b.returned(), berth.ErrClosed)
		var refused *berth.AcquireError
		require.ErrorAs(t, b.returned(), &refused)
		require.Equal(t, berth.ReasonClosed, refused.Reason)
		require.Zero(t, w.waiting())
		require.True(t, a.leads())
		w.Notice("n:"+b.n.ID(), 0, "drain")
		w.Advance(5 * time.Second)
		out := b.n.stand(nil, nil) // it stays out of the line, or is refused already
		require.NoError(t, b.n.Close(t.Context()))
		require.ErrorIs(t, out.returned(), berth.ErrClosed)
	})
}

// The election is closed, or the context of Run ends, in the moment of the grant.
func TestFNeverBeginsOnceItsElectionOrItsContextHasEnded(t *testing.T) {
	each(t, map[string]error{"closed": berth.ErrClosed, "ended": errOwn}, func(t *testing.T, w *world, why error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var e *leader.Election
		n := w.node(node.Config{Observer: observe.Func(func(ev observe.Event) {
			if ev.Kind == observe.Granted && errors.Is(why, errOwn) {
				cancel(errOwn)
			} else if ev.Kind == observe.Granted {
				_ = e.Close(context.Background())
			}
		})})
		e = n.election(nil)
		require.ErrorIs(t, e.Run(ctx, func(context.Context) error { return errors.New("it ran") }), why)
		require.Len(t, n.Told(observe.Granted), 1)
		require.Empty(t, n.Told(observe.TermBegan))
		w.RequireIdle()
	})
}

// A run of the node takes a minute to end, and keeps the node open for as long.
func TestANodeThatClosesLeadsNoMoreWhileItsRunsEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		a := n.stand(nil, nil)
		go func() {
			_, _ = once.New(n.Node, "digest", once.Config{Every: time.Hour}).Do(context.Background(), func(ctx context.Context, _ *once.Run) error {
				<-ctx.Done()
				<-time.After(time.Minute)
				return nil
			})
		}()
		b := other.stand(&leader.Config{Priority: -1}, nil)
		go func() { _ = n.Close(context.Background()) }()
		w.Advance(ms)
		require.ErrorIs(t, a.returned(), berth.ErrClosed)
		require.True(t, b.leads())
		require.ErrorIs(t, n.stand(nil, nil).returned(), berth.ErrClosed)
		w.Advance(time.Minute)
	})
}

// Who asks for the end of leadership hears where it is not known to be handed on.
func TestCloseSaysWhatItCouldNotHandOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		long := &leader.Config{Lease: time.Minute}
		n := w.node(node.Config{Lease: time.Minute})
		c := n.stand(long, nil)
		require.True(t, c.leads())
		next := w.node(node.Config{Lease: time.Minute}).stand(long, nil)
		n.Cut()
		require.ErrorIs(t, c.e.Close(context.Background()), berth.ErrUnavailable)
		require.False(t, next.leads())
		n.Mend()
	})
}

// A term is of the node that had it, also where the swarm has given the process another one since.
func TestTheEndOfATermNamesItsNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{})
		former := n.ID()
		require.NoError(t, n.Swarm().Start(t.Context()))
		c := n.stand(nil, func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(20 * time.Second) // longer than until the process has another node
			return nil
		})
		require.True(t, c.leads())
		n.Cut()
		w.Advance(16 * time.Second)
		n.Mend()
		w.Advance(25 * time.Second)
		require.NotEqual(t, former, n.ID())
		require.Equal(t, former, n.Told(observe.TermEnded)[0].Node)
	})
}
