package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
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
// asks the server nothing any more, and tells of no loss.
func TestDetachEndsTheHandle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		p := n.take(1, nil)
		w.Advance(time.Second)
		token := detach(t, p)
		require.ErrorIs(t, p.Err(), berth.ErrReleased)
		require.ErrorIs(t, context.Cause(p.Context()), berth.ErrReleased)
		require.Zero(t, p.Left())
		n.Reset()
		require.ErrorIs(t, p.Renew(ctx), berth.ErrReleased)
		_, err := p.Detach(ctx)
		require.ErrorIs(t, err, berth.ErrReleased)
		require.NoError(t, p.Release(ctx), "a deferred one may stay")
		left, _ := w.LeftOf(p.ID())
		require.Equal(t, lease, left, "the lease starts anew with the call")
		w.Advance(3 * time.Second)
		left, _ = w.LeftOf(p.ID())
		require.Equal(t, 3*time.Second, left, "nobody renews it")
		require.Empty(t, n.Scripts(), "nothing is sent for it")
		q, err := w.node().Resume(ctx, token)
		require.NoError(t, err)
		require.NoError(t, q.Release(ctx))
		w.Advance(time.Minute)
		require.Empty(t, n.Scripts())
		require.Equal(t, []observe.Kind{observe.Granted, observe.Detached}, n.Kinds())
		w.RequireIdle()
	})
}

// Nobody can know of a token that Detach did not return: the permit is the handle's,
// whatever became of the call.
func TestADetachThatIsNotAnsweredLeavesThePermitToItsHandle(t *testing.T) {
	for name, lose := range map[string]func(n *proc) (ctx context.Context, err error){
		"its answers are lost": func(n *proc) (context.Context, error) {
			n.OnCommand(func(link.Command) link.Fate { return link.LoseReply })
			return context.Background(), nil
		},
		"ctx ends before the answer": func(n *proc) (context.Context, error) {
			n.Delay(func() time.Duration { return 100 * ms })
			ctx, cancel := context.WithTimeout(context.Background(), 50*ms)
			n.w.T.Cleanup(cancel)
			return ctx, context.DeadlineExceeded
		},
	} {
		for end, what := range map[string]func(t *testing.T, w *world, n *proc, p *semaphore.Permit){
			"it is released": func(t *testing.T, w *world, _ *proc, p *semaphore.Permit) {
				require.NoError(t, p.Release(context.Background()))
				w.RequireIdle()
			},
			"the node is closed": func(t *testing.T, w *world, n *proc, p *semaphore.Permit) {
				require.NoError(t, n.Close(context.Background()))
				require.ErrorIs(t, p.Err(), berth.ErrReleased)
				w.RequireIdle()
			},
			"it is detached again": func(t *testing.T, w *world, _ *proc, p *semaphore.Permit) {
				q, err := w.node().Resume(context.Background(), detach(t, p))
				require.NoError(t, err)
				require.NoError(t, q.Release(context.Background()))
			},
			"nothing is done": func(t *testing.T, w *world, _ *proc, p *semaphore.Permit) {
				e := <-w.Watch(p)
				require.ErrorIs(t, e.Cause, berth.ErrLost)
				w.Advance(lease)
				require.Zero(t, w.stats().Held)
			},
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					n := w.node(node.Config{Retry: berth.Retry{Attempts: 2}})
					n.connect()
					p := n.take(1, nil)
					ctx, want := lose(n)
					_, err := p.Detach(ctx)
					require.Error(t, err)
					if want != nil {
						require.ErrorIs(t, err, want)
					}
					w.Advance(100 * ms)
					n.OnCommand(nil)
					n.Delay(nil)
					require.NoError(t, p.Err(), "it holds")
					require.True(t, w.Holders()[0].Detached)
					what(t, w, n, p)
				})
			})
		}
	}
}

func TestADetachedPermitOutlivesItsNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		token := detach(t, p)
		require.NoError(t, a.Close(context.Background()))
		require.ErrorIs(t, p.Err(), berth.ErrReleased)
		require.NoError(t, p.Release(context.Background()))
		require.Equal(t, 1, w.stats().Held)
		w.Advance(5 * time.Second)
		q, err := b.Resume(context.Background(), token)
		require.NoError(t, err)
		require.Equal(t, p.Fence(), q.Fence())
		require.Equal(t, p.ID(), q.ID())
		require.Equal(t, p.Weight(), q.Weight())
		w.Advance(time.Minute)
		require.NoError(t, q.Err(), "it renews again")
		require.NoError(t, q.Release(context.Background()))
		w.RequireIdle()
	})
}

func TestATokenServesOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		token := detach(t, p)
		w.Advance(time.Second)
		q, err := b.Resume(ctx, token)
		require.NoError(t, err)
		require.NoError(t, p.Release(ctx))
		require.ErrorIs(t, p.Renew(ctx), berth.ErrReleased)
		require.NoError(t, q.Err())
		require.Equal(t, b.ID(), w.Holders()[0].Node)

		_, err = a.Resume(ctx, token)
		require.ErrorIs(t, err, berth.ErrReleased)
		_, err = b.Resume(ctx, token)
		require.ErrorIs(t, err, berth.ErrInvalidConfig, "a handle of that node has it")
		require.NoError(t, q.Err())
		require.NoError(t, q.Release(ctx))
		_, err = b.Resume(ctx, token)
		require.ErrorIs(t, err, berth.ErrNotHeld)
	})
}

func TestAResumeWhoseReplyIsLostIsRepeated(t *testing.T) {
	for name, same := range map[string]bool{"on the same node": true, "on another node": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.node()
				b := a
				if !same {
					b = w.node()
				}
				token := detach(t, a.take(1, nil))
				b.Reset()
				b.Once("semaphore_resume", link.LoseReply)
				q, err := b.Resume(context.Background(), token)
				require.NoError(t, err)
				require.Equal(t, 2, b.Count("semaphore_resume"))
				w.Advance(time.Minute)
				require.NoError(t, q.Err())
			})
		})
	}
}

// The process that detached a permit has resumed it, and has not heard so: it
// may ask again, and its old handle keeps nothing alive.
func TestAnUnheardResumeCanBeRepeatedInTheSameProcess(t *testing.T) {
	for name, repeated := range map[string]bool{"repeated": true, "not repeated": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.node(node.Config{Retry: berth.Retry{Attempts: 1}})
				old := a.take(1, nil)
				token := detach(t, old)
				a.Once("semaphore_resume", link.LoseReply)
				_, err := a.Resume(context.Background(), token)
				require.ErrorIs(t, err, berth.ErrUnavailable)
				if repeated {
					p, err := a.Resume(context.Background(), token)
					require.NoError(t, err)
					w.Advance(3 * lease)
					require.NoError(t, p.Err())
					release(t, p)
				}
				require.ErrorIs(t, old.Err(), berth.ErrReleased)
				w.Advance(lease)
				require.Zero(t, w.stats().Held)
			})
		})
	}
}

func TestAnOldTokenDoesNotTakeUpWhatWasDetachedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		old := detach(t, a.take(1, nil))
		p, err := b.Resume(ctx, old)
		require.NoError(t, err)
		token := detach(t, p)
		for _, n := range []*proc{a, b} {
			_, err = n.Resume(ctx, old)
			require.ErrorIs(t, err, berth.ErrReleased)
		}
		q, err := a.Resume(ctx, token)
		require.NoError(t, err)
		w.Advance(time.Minute)
		require.NoError(t, q.Err())
	})
}

func TestResumeOfWhatIsGoneSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		expired := detach(t, a.take(3, nil))
		w.Advance(lease)
		_, err := b.Resume(ctx, expired)
		require.ErrorIs(t, err, berth.ErrNotHeld)

		forced := detach(t, a.take(3, nil))
		require.NoError(t, b.end(forced.Claim))
		_, err = b.Resume(ctx, forced)
		require.ErrorIs(t, err, berth.ErrReleased)

		p := a.take(3, nil)
		_, err = b.Resume(ctx, berth.Token{
			Kind: "sem", Namespace: "berth", Name: gpu, Claim: p.ID(), Node: a.ID(), Fence: p.Fence(),
		})
		require.ErrorIs(t, err, berth.ErrInvalidConfig, "it is not detached")
		require.NoError(t, p.Err())
	})
}

func TestForceOfAClaimEndsAHoldAndHandsOn(t *testing.T) {
	for name, deaf := range map[string]bool{"told by a push": false, "told by the heartbeat": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				a, b, operator := w.node(), w.node(), w.node()
				p := a.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
				q := b.queue(1, nil)
				last := a.queue(1, nil) // subscribes
				a.Deafen(deaf)
				ended := w.Watch(p)
				require.NoError(t, operator.end(p.ID()))
				q.Granted(0)
				e := <-ended
				require.ErrorIs(t, e.Cause, berth.ErrReleased)
				if !deaf {
					require.Zero(t, e.At)
				}
				require.LessOrEqual(t, e.At, lease/3)
				require.ErrorIs(t, p.Release(ctx), berth.ErrReleased)
				require.ErrorIs(t, operator.end(p.ID()), berth.ErrNotHeld)
				require.ErrorIs(t, operator.end("nobody.1"), berth.ErrNotHeld)

				waiting := w.Waiters()
				require.Len(t, waiting, 1)
				at := w.Now()
				require.NoError(t, operator.end(waiting[0].ID))
				<-last.Done
				require.LessOrEqual(t, last.At, at+lease/3)
				last.Refused(last.At, berth.ReasonGone)
				require.Zero(t, w.stats().Waiting)
			})
		})
	}
}

func TestForceOfAClaimOfWhatHasExpiredSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.acquireScript("dead", "dead.1", 1, semaphore.CapacityStored)
		w.Advance(lease)
		require.ErrorIs(t, w.node().end("dead.1"), berth.ErrExpired)
		require.Zero(t, w.stats().Held)
	})
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
