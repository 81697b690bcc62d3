package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// detach detaches a permit, and sends the token through its text.
func detach(t *testing.T, p *semaphore.Permit) berth.Token {
	t.Helper()
	token, err := p.Detach(context.Background())
	require.NoError(t, err)
	text, err := token.MarshalText()
	require.NoError(t, err)
	var read berth.Token
	require.NoError(t, read.UnmarshalText(text))
	require.Equal(t, token, read)
	return read
}

// Whoever works on takes the permit up first: the handle says no longer that it holds,
// asks the server nothing any more, and tells of no loss. The permit outlives its node.
func TestDetachEndsTheHandle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		w.Advance(time.Second)
		token := detach(t, p)
		require.Equal(t, berth.Token{
			Kind: "sem", Namespace: "berth", Name: gpu, Claim: p.ID(), Node: n.ID(), Fence: p.Fence(),
		}, token)
		require.ErrorIs(t, p.Err(), berth.ErrReleased)
		require.ErrorIs(t, context.Cause(p.Context()), berth.ErrReleased)
		require.Zero(t, p.Left())
		n.Reset()
		require.ErrorIs(t, p.Renew(ctx), berth.ErrReleased)
		require.ErrorIs(t, testkit.Second(p.Detach(ctx)), berth.ErrReleased)
		require.NoError(t, p.Release(ctx), "a deferred one may stay")
		left, _ := w.LeftOf(p.ID())
		require.Equal(t, lease, left, "the lease starts anew with the call")
		w.Advance(3 * time.Second)
		left, _ = w.LeftOf(p.ID())
		require.Equal(t, 3*time.Second, left, "nobody renews it")
		require.Empty(t, n.Scripts(), "nothing is sent for it")
		require.NoError(t, n.Close(ctx))
		require.NoError(t, p.Release(ctx))
		require.Equal(t, 1, w.stats().Held)
		q := w.got(w.node().Resume(ctx, token))
		require.Equal(t, []any{p.Fence(), p.ID(), p.Weight()}, []any{q.Fence(), q.ID(), q.Weight()})
		w.Advance(time.Minute)
		require.NoError(t, q.Err(), "it renews again")
		release(t, q)
		require.Equal(t, []observe.Kind{observe.Granted, observe.Detached}, n.Kinds())
		w.RequireIdle()
	})
}

// Nobody can know of a token that Detach did not return: the permit is the handle's,
// whatever became of the call.
func TestADetachThatIsNotAnsweredLeavesThePermitToItsHandle(t *testing.T) {
	for name, want := range map[string]error{
		"its answers are lost": berth.ErrUnavailable, "ctx ends before the answer": context.DeadlineExceeded,
	} {
		for end, what := range map[string]func(w *world, n *proc, p *semaphore.Permit){
			"it is released": func(w *world, _ *proc, p *semaphore.Permit) {
				release(w.T, p)
				w.RequireIdle()
			},
			"the node is closed": func(w *world, n *proc, p *semaphore.Permit) {
				require.NoError(w.T, n.Close(context.Background()))
				require.ErrorIs(w.T, p.Err(), berth.ErrReleased)
				w.RequireIdle()
			},
			"it is detached again": func(w *world, _ *proc, p *semaphore.Permit) {
				q := w.got(w.node().Resume(context.Background(), detach(w.T, p)))
				release(w.T, q)
			},
			"nothing is done": func(w *world, _ *proc, p *semaphore.Permit) {
				require.ErrorIs(w.T, (<-w.Watch(p)).Cause, berth.ErrLost)
				w.Advance(lease)
				require.Zero(w.T, w.stats().Held)
			},
		} {
			inWorldOf(t, name+", "+end, func(t *testing.T, w *world) {
				n := w.node(node.Config{Retry: berth.Retry{Attempts: 2}})
				n.connect()
				p := n.take(1, nil)
				limit := time.Hour
				if errors.Is(want, berth.ErrUnavailable) {
					n.OnCommand(func(link.Command) link.Fate { return link.LoseReply })
				} else {
					n.Delay(func() time.Duration { return 100 * ms })
					limit = 50 * ms
				}
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				require.ErrorIs(t, testkit.Second(p.Detach(ctx)), want)
				w.Advance(100 * ms)
				n.OnCommand(nil)
				n.Delay(nil)
				require.NoError(t, p.Err(), "it holds")
				require.True(t, w.Holders()[0].Detached)
				what(w, n, p)
			})
		}
	}
}

func TestATokenServesOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		token := detach(t, p)
		w.Advance(time.Second)
		b.Once("semaphore_resume", link.LoseReply)
		q := w.got(b.Resume(ctx, token))
		require.Equal(t, 2, b.Count("semaphore_resume"), "its repeat is answered the same")
		require.NoError(t, p.Release(ctx))
		require.ErrorIs(t, p.Renew(ctx), berth.ErrReleased)
		require.Equal(t, b.ID(), w.Holders()[0].Node)
		require.ErrorIs(t, testkit.Second(a.Resume(ctx, token)), berth.ErrReleased)
		require.ErrorIs(t, testkit.Second(b.Resume(ctx, token)), berth.ErrInvalidConfig, "a handle of that node has it")
		w.Advance(time.Minute)
		require.NoError(t, q.Err())

		newer := detach(t, q)
		for _, n := range []*proc{a, b} {
			require.ErrorIs(t, testkit.Second(n.Resume(ctx, token)), berth.ErrReleased, "it was detached again")
		}
		last := w.got(a.Resume(ctx, newer))
		release(t, last)
		require.ErrorIs(t, testkit.Second(b.Resume(ctx, newer)), berth.ErrNotHeld)

		forced := detach(t, a.take(1, nil))
		require.NoError(t, b.end(forced.Claim))
		require.ErrorIs(t, testkit.Second(b.Resume(ctx, forced)), berth.ErrReleased)
	})
}

// The process that detached a permit has resumed it, and has not heard so: it
// may ask again, and its old handle keeps nothing alive.
func TestAnUnheardResumeCanBeRepeatedInTheSameProcess(t *testing.T) {
	for name, repeated := range map[string]bool{"repeated": true, "not repeated": false} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			a := w.node(node.Config{Retry: berth.Retry{Attempts: 1}})
			old := a.take(1, nil)
			token := detach(t, old)
			a.Once("semaphore_resume", link.LoseReply)
			require.ErrorIs(t, testkit.Second(a.Resume(context.Background(), token)), berth.ErrUnavailable)
			if repeated {
				p := w.got(a.Resume(context.Background(), token))
				w.Advance(3 * lease)
				require.NoError(t, p.Err())
				release(t, p)
			}
			require.ErrorIs(t, old.Err(), berth.ErrReleased)
			w.Advance(lease)
			require.Zero(t, w.stats().Held)
		})
	}
}

func TestForceOfAClaimEndsAHoldAndHandsOn(t *testing.T) {
	for name, deaf := range map[string]bool{"told by a push": false, "told by the heartbeat": true} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			a, b, operator := w.node(), w.node(), w.node()
			p := a.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
			q, last := b.queue(1, nil), a.queue(1, nil) // both subscribe
			a.Deafen(deaf)
			ended := w.Watch(p)
			require.NoError(t, operator.end(p.ID()))
			q.Granted(0)
			waiting := w.Waiters()
			require.Len(t, waiting, 1)
			require.NoError(t, operator.end(waiting[0].ID))
			e := <-ended
			require.ErrorIs(t, e.Cause, berth.ErrReleased)
			<-last.Done
			last.Refused(last.At, berth.ReasonGone)
			for _, at := range []time.Duration{e.At, last.At} {
				require.LessOrEqual(t, at, lease/3)
				require.Equal(t, deaf, at > 0)
			}
			require.ErrorIs(t, p.Release(context.Background()), berth.ErrReleased)
			require.ErrorIs(t, operator.end(p.ID()), berth.ErrNotHeld)
			require.Zero(t, w.stats().Waiting)
		})
	}
}

func TestForceOfAClaimThatMeetsALostAcquireRefusesIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Retry: berth.Retry{Base: time.Second}})
		n.connect()
		n.take(1, nil)
		n.queue(1, nil) // subscribes
		n.Once("semaphore_acquire", link.LoseReply)
		q := n.queue(1, nil)
		synctest.Wait()
		waiting := w.Waiters()
		require.Len(t, waiting, 2)
		require.NoError(t, w.node().end(waiting[1].ID))
		<-q.Done
		q.Refused(q.At, berth.ReasonGone)
	})
}

// How long it lasts on the server is for the model; this is what its handle knows.
func TestAResumedPermitIsOfTheKindThatItWas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		resumed := func(opts *semaphore.AcquireOptions) *semaphore.Permit {
			p := w.got(b.Resume(context.Background(), detach(t, a.take(2, opts))))
			return p
		}
		endless := resumed(&semaphore.AcquireOptions{Lease: berth.Forever})
		fixed := resumed(&semaphore.AcquireOptions{NoRenew: true, Lease: 20 * time.Second})
		e := <-w.Watch(fixed)
		require.ErrorIs(t, e.Cause, berth.ErrExpired)
		testkit.RequireWithin(t, 20*time.Second-202*ms, e.At)
		require.Equal(t, berth.Forever, endless.Left())
		require.NoError(t, endless.Err())
	})
}
