package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// wanted says whether somebody wants a permit back, as its process knows.
func wanted(p berth.Handle) bool {
	select {
	case <-p.Wanted():
		return true
	default:
		return false
	}
}

// want asks for what a target has, and lets a push come.
func (n *proc) want(target berth.Target, count int) {
	n.w.T.Helper()
	asked, err := n.Operator().Want(context.Background(), target)
	require.NoError(n.w.T, err)
	require.Equal(n.w.T, count, asked)
	synctest.Wait()
}

func TestAPushPromptsTheHeartbeatThatSaysWanted(t *testing.T) {
	for name, opts := range map[string]*semaphore.AcquireOptions{
		"of a lease that renews": nil,
		"of a fixed lease":       {NoRenew: true, Lease: time.Hour},
		"without end":            {Lease: berth.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, op := w.node(), w.node()
				p, other := n.take(2, opts), n.take(2, opts)
				require.False(t, wanted(p))
				w.Advance(500 * ms)
				op.want(berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: p.ID()}, 1)
				require.True(t, wanted(p), "at once")
				require.False(t, wanted(other))
				require.NoError(t, p.Err(), "the hold goes on")
				w.Advance(2 * lease)
				op.want(berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: p.ID()}, 1)
				require.NoError(t, p.Err())
				require.Len(t, n.Told(observe.Wanted), 1, "once")
				require.Equal(t, p.Fence(), n.Told(observe.Wanted)[0].Fence)
				for _, h := range w.Holders() {
					want := time.Duration(0)
					if h.ID == p.ID() {
						want = 2 * lease
					}
					require.Equal(t, want, h.Wanted, "since the first call")
				}
				require.NoError(t, p.Release(context.Background()))
				require.False(t, wanted(other))
			})
		})
	}
}

// A push proves nothing: it costs a heartbeat.
func TestAForgedPushWantsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		p := n.take(1, nil)
		require.False(t, wanted(p))
		synctest.Wait()
		n.Reset()
		w.Publish(n.ID(), "wanted", gpu, p.ID())
		synctest.Wait()
		require.Equal(t, map[string]int{"thin_renew": 1}, n.Scripts())
		w.Advance(lease)
		require.False(t, wanted(p))
	})
}

// A hold of a thin name makes the name fat when it is wanted, and stays as long as it would have.
func TestAHoldOfAThinNameIsWanted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		p := n.take(1, nil)
		w.Advance(time.Second)
		require.True(t, w.Thin())
		before, _ := w.LeftOf(p.ID())
		op.want(berth.Target{Kind: keyspace.Sem, Name: gpu}, 1)
		require.False(t, w.Thin())
		left, ok := w.LeftOf(p.ID())
		require.True(t, ok)
		require.Equal(t, before, left, "a want moves no deadline")
		w.Until(2 * time.Second)
		require.True(t, wanted(p), "a node that nobody has asked for the channel yet has no subscription")
		require.NoError(t, p.Release(context.Background()))
		q := n.take(1, nil)
		w.Advance(lease)
		require.False(t, wanted(q), "it is another hold")
	})
}

func TestAWantThatIsNotHeardOfByPushComesWithTheNextHeartbeat(t *testing.T) {
	for name, lose := range map[string]func(n *proc){
		"the push is lost": func(n *proc) { n.Deafen(true) },
		"so is the reply of the heartbeat": func(n *proc) {
			n.Once("semaphore_renew", link.LoseReply)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, op := w.node(), w.node()
				p := n.take(2, nil)
				require.False(t, wanted(p))
				synctest.Wait()
				lose(n)
				w.Advance(time.Second)
				op.want(berth.Target{Node: n.ID()}, 1)
				asked := w.Now()
				<-p.Wanted()
				require.LessOrEqual(t, w.Now()-asked, 2*lease/3)
				require.NoError(t, p.Err())
			})
		})
	}
}

// Nobody hears of a detached hold that is wanted, until somebody takes it up.
func TestWhoResumesAHoldThatIsWantedKnowsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		p := n.take(1, nil)
		token := detach(t, p)
		op.want(berth.Target{Kind: keyspace.Sem, Name: gpu}, 1)
		w.Advance(time.Second)
		require.False(t, wanted(p))
		q, err := w.node().Resume(context.Background(), token)
		require.NoError(t, err)
		require.True(t, wanted(q))
		r, err := n.Resume(context.Background(), detach(t, q))
		require.NoError(t, err)
		require.True(t, wanted(r), "also the next one")
		require.Len(t, n.Told(observe.Wanted), 1)
	})
}

func TestWantLeavesAloneWhatHoldsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, n, op := berth.WithOwner(context.Background(), "me"), w.node(), w.node()
		ask := func(target berth.Target) error {
			return testkit.Second(op.Operator().Want(context.Background(), target))
		}
		p := n.take(1, &semaphore.AcquireOptions{NoRenew: true})
		q := n.queueOn(ctx, n.gpu(1), nil)
		require.ErrorIs(t, ask(berth.Target{Kind: keyspace.Sem, Name: gpu, Owner: "me"}), berth.ErrNotHeld, "it waits")
		waits := w.Waiters()[0].ID
		require.ErrorIs(t, ask(berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: waits}), berth.ErrNotHeld)
		require.ErrorIs(t, ask(berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: p.ID(), Node: op.ID()}), berth.ErrNotHeld, "of another node")
		require.ErrorIs(t, ask(berth.Target{Kind: keyspace.Sem, Name: "nobody's"}), berth.ErrNotHeld)
		require.NoError(t, ask(berth.Target{Owner: "nobody"}))
		require.ErrorIs(t, ask(berth.Target{}), berth.ErrInvalidConfig)
		require.Empty(t, op.Told(observe.WantedBack))
		<-q.Done
		require.NoError(t, q.Err)
		require.False(t, wanted(q.Got))
		require.ErrorIs(t, ask(berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: p.ID()}), berth.ErrNotHeld, "it has ended")
		require.NoError(t, ask(berth.Target{All: true}))
		w.Advance(lease / 3)
		require.True(t, wanted(q.Got))
	})
}

func TestAWantOfAHoldThatNobodyHasSweptIsExpired(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.acquireScript("dead", "dead.1", 1, semaphore.CapacityStored)
		w.Advance(lease)
		_, err := n.Operator().Want(context.Background(), berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: "dead.1"})
		require.ErrorIs(t, err, berth.ErrExpired)
	})
}

// Whoever works under Do reads the channel from the context.
func TestWantedUnderDo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		s := n.gpu(1)
		require.Nil(t, s.Wanted(context.Background()))
		require.NoError(t, s.Do(context.Background(), nil, func(ctx context.Context) error {
			w.Advance(time.Second)
			op.want(berth.Target{Kind: keyspace.Sem, Name: gpu}, 1)
			<-s.Wanted(ctx)
			require.NoError(t, ctx.Err())
			return nil
		}))
		require.LessOrEqual(t, w.Now(), lease/3)
	})
}

// The first in line asks for as many of the longest holds as its weight takes, once each WantAfter.
func TestWhoWaitsForLongAsksForWhatItLacks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node(), w.node()
		var held []*semaphore.Permit
		for _, weight := range []int{1, 2, 1, 1} {
			held = append(held, n.take(6, &semaphore.AcquireOptions{Weight: weight}))
			require.False(t, wanted(held[len(held)-1]))
			w.Advance(10 * ms)
		}
		asked := func() (all []bool) {
			synctest.Wait()
			for _, p := range held {
				all = append(all, wanted(p))
			}
			return all
		}
		q := m.queue(6, &semaphore.AcquireOptions{Weight: 4, WantAfter: 30 * time.Second})
		behind := m.queue(6, &semaphore.AcquireOptions{WantAfter: 100 * ms})
		w.Until(30 * time.Second)
		require.Equal(t, []bool{false, false, false, false}, asked(), "who is not the first asks for nothing")
		w.Until(31 * time.Second)
		require.Equal(t, []bool{true, true, false, false}, asked(), "1 is free, and these have 3")
		w.Until(2 * time.Minute)
		require.Equal(t, []bool{true, true, false, false}, asked(), "they are wanted already")
		require.NoError(t, held[0].Release(context.Background()))
		require.True(t, q.Pending())
		require.NoError(t, held[1].Release(context.Background()))
		synctest.Wait()
		require.NoError(t, q.Err)
		require.False(t, q.Pending())
		held = held[2:]
		w.Advance(lease / 3)
		require.Equal(t, []bool{true, false}, asked(), "now the other one is the first")
		require.NoError(t, held[0].Release(context.Background()))
		<-behind.Done
		w.Advance(time.Minute)
		require.Equal(t, []bool{true, false}, asked())
		require.Len(t, n.Told(observe.Wanted), 3)
	})
}

// What a call has dropped it does not ask for besides: a step is bounded.
func TestWhoAsksHasAHundredWithWhatItDrops(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node(), w.node()
		for i := range 130 {
			lasts := time.Hour
			if i < 60 {
				lasts = time.Second
			}
			n.take(130, &semaphore.AcquireOptions{NoRenew: true, Lease: lasts})
		}
		m.queue(130, &semaphore.AcquireOptions{Weight: 130})
		claim := w.Waiters()[0].ID
		for _, of := range []*proc{n, m} {
			of.OnCommand(func(link.Command) link.Fate { return link.LoseRequest })
		}
		w.Advance(time.Second + ms)
		node, _, _ := strings.Cut(claim, ".")
		r := w.Call("semaphore_renew", "60000", "nobody:", gpu, node, claim, "want")
		require.Equal(t, "renewed", r.Status())
		w.Advance(ms)
		asked := 0
		for _, h := range w.Holders() {
			if h.Wanted > 0 {
				asked++
			}
		}
		require.Equal(t, 40, asked)
	})
}

// The records that a beat of the same node changes, as the one that confirms a long lease, keep the word.
func TestAWaiterAsksForAHoldOfItsOwnNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, &semaphore.AcquireOptions{Lease: time.Minute})
		n.queue(1, &semaphore.AcquireOptions{WantAfter: 20 * ms})
		w.Advance(lease)
		require.True(t, wanted(p))
	})
}

// What is given back during a pause helps nobody: the first in line asks when the pause is over.
func TestNobodyAsksWhileTheNameIsPaused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		require.False(t, wanted(p))
		require.NoError(t, n.Operator().Pause(context.Background(), keyspace.Sem, gpu, time.Minute, ""))
		w.node().queue(1, &semaphore.AcquireOptions{WantAfter: time.Second})
		w.Until(59 * time.Second)
		require.False(t, wanted(p))
		w.Until(time.Minute + lease/2)
		require.True(t, wanted(p))
	})
}

// Holds that no process has come last: nobody hears of them.
func TestAWaiterAsksForDetachedHoldsLast(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node(), w.node()
		hour := &semaphore.AcquireOptions{Lease: time.Hour}
		token := detach(t, n.take(2, hour))
		p := n.take(2, hour)
		m.queue(2, &semaphore.AcquireOptions{Weight: 1, WantAfter: time.Second})
		w.Advance(lease)
		require.True(t, wanted(p))
		q, err := n.Resume(context.Background(), token)
		require.NoError(t, err)
		require.False(t, wanted(q))
		token = detach(t, q)
		m.queue(2, &semaphore.AcquireOptions{Weight: 2, WantAfter: time.Second, Priority: 1})
		w.Advance(lease)
		q, err = n.Resume(context.Background(), token)
		require.NoError(t, err)
		require.True(t, wanted(q), "the heavy one needs both")
	})
}

func TestWantAfterIsForCallsThatWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		refused := func(opts *semaphore.AcquireOptions, call func(context.Context, *semaphore.AcquireOptions) (*semaphore.Permit, error)) {
			_, err := call(context.Background(), opts)
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			require.ErrorContains(t, err, "WantAfter")
		}
		refused(&semaphore.AcquireOptions{WantAfter: time.Second}, n.gpu(1).TryAcquire)
		refused(&semaphore.AcquireOptions{WantAfter: 19 * ms}, n.gpu(1).Acquire)
		refused(&semaphore.AcquireOptions{WantAfter: -1}, n.gpu(1).Acquire)
		p, err := n.gpu(1).Acquire(context.Background(), &semaphore.AcquireOptions{WantAfter: berth.Forever})
		require.NoError(t, err)
		require.NoError(t, p.Release(context.Background()))
	})
}
