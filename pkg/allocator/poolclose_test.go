package allocator_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock" //nolint:depguard // a lock of the node outlasts the pool
)

func TestCloseOfAPoolEndsAllOfItAndNothingElseOfTheNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c")
		d, m := w.desk(allocator.Config[string]{}, nil), w.node()
		d.connect()
		held, kept := d.takes("a", nil), d.takes("b", nil)
		taken := must(d.Resume(ctx, detach(t, m.takes("c", nil))))(t)
		detach(t, kept)
		other := allocator.New(d.node, "other", allocator.Config[string]{})
		require.NoError(t, change(other.Add(ctx, []string{"x"}, nil)))
		x := must(other.Allocate(ctx, nil))(t)
		lock := must(qlock.New(d.node, qlock.Config{}).Lock(ctx, "door", nil))(t)
		front, first, second, back := d.queue(nil), m.queue(nil), m.queue(nil), d.queue(nil)

		require.NoError(t, d.Pool.Close(ctx))
		at := w.Now()
		for _, mine := range []*wait{front, back} {
			require.ErrorIs(t, mine.Refused(at, berth.ReasonClosed), berth.ErrClosed)
		}
		require.ElementsMatch(t, []string{"a", "c"}, []string{first.Granted(at).Resource(), second.Granted(at).Resource()})
		for _, a := range []*allocator.Allocation[string]{held, taken} {
			require.ErrorIs(t, a.Err(), berth.ErrReleased)
			require.NoError(t, a.Release(ctx))
		}
		require.Equal(t, kept.ID(), w.holder("b"), "it is detached")
		d.requireClosed("a", "b", "c")

		d.Fresh()
		for name, call := range calls(d.Pool) {
			require.ErrorIs(t, call(ctx), berth.ErrClosed, name)
		}
		require.NoError(t, d.Pool.Close(ctx))
		require.Empty(t, d.Counts(), "nothing is sent")

		w.Advance(2 * lease)
		require.NoError(t, x.Err())
		require.NoError(t, lock.Err())
		d.Pool = allocator.New(d.node, proxies, allocator.Config[string]{})
		require.Equal(t, "b", d.take(nil).Resource(), "the lease has ended")
		require.NoError(t, d.node.Close(ctx))
		require.ErrorIs(t, lock.Err(), berth.ErrReleased)
		require.Equal(t, allocator.Free, w.status("b").State)
		d.requireClosed("a", "b", "c")
	})
}

// Handles of a pool that is Shared have no hold that could be given back. Those from before the swarm gave the process another node
// are of the former one.
func TestCloseOfASharedPoolEndsItsHandles(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(inTurn, "a")
		require.NoError(t, n.node.Swarm().Start(ctx))
		before, former := n.take(nil), n.node.ID()
		n.Cut()
		w.Advance(15 * time.Second)
		require.NotEqual(t, former, n.node.ID())
		n.Mend()
		w.Advance(time.Second)
		after := n.take(nil)
		other := allocator.New(n.node, "other", inTurn)
		require.NoError(t, change(other.Add(ctx, []string{"x"}, nil)))
		x := must(other.Allocate(ctx, nil))(t)
		require.NoError(t, before.Err())

		require.NoError(t, n.Pool.Close(ctx))
		require.ErrorIs(t, before.Err(), berth.ErrClosed)
		require.ErrorIs(t, after.Err(), berth.ErrClosed)
		require.NoError(t, x.Err(), "it is of another pool")
	})
}

// What Close has begun goes on when its ctx has ended. Until it is done the pool is there, and so no other one of the name.
func TestCloseOfAPoolWaitsNoLongerThanItsContextAndABit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		d := w.desk(allocator.Config[string]{}, nil)
		held := d.takes("a", nil)
		d.Stall()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errMine)
		defer cancel()
		err := d.Pool.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errMine)
		require.Equal(t, 3*time.Second, w.Now(), "CleanupTimeout later")
		require.ErrorIs(t, held.Err(), berth.ErrReleased)
		requireInvalid(t, "name", allocator.New(d.node, proxies, allocator.Config[string]{}).Unbind(ctx, "b"))
		d.requireClosed()

		again := testkit.Begin(t.Context(), func(ctx context.Context) (bool, error) { return true, d.Pool.Close(ctx) })
		w.Advance(ms)
		require.False(t, again.Over(), "it waits for what the first has begun")
		d.Flow()
		<-again.Done
		require.NoError(t, again.Err)
		require.Equal(t, allocator.Free, w.status("a").State)
		d.requireClosed("a")
		require.NoError(t, allocator.New(d.node, proxies, allocator.Config[string]{}).Unbind(t.Context(), "b"))
	})
}

// Whichever of the two is first, a value is closed when its resource has been given back.
func TestClosesOfAPoolAndOfItsNodeAtOnce(t *testing.T) {
	inEach(t, map[string]bool{"the node first": true, "the pool first": false}, func(t *testing.T, w *world, first bool) {
		w.add("a")
		var states []allocator.State
		d := w.desk(allocator.Config[string]{}, func(key string) error {
			states = append(states, w.status(key).State)
			<-time.After(time.Second)
			return nil
		})
		d.takes("a", nil)
		d.Stall()
		closes := []func(context.Context) error{d.Pool.Close, d.node.Close}
		if first {
			closes[0], closes[1] = closes[1], closes[0]
		}
		var all []*testkit.Call[time.Duration]
		for _, shut := range closes {
			all = append(all, testkit.Begin(t.Context(), func(ctx context.Context) (time.Duration, error) {
				err := shut(ctx)
				return w.Now(), err
			}))
			synctest.Wait()
		}
		w.Advance(100 * ms)
		d.requireClosed()
		d.Flow()
		for _, c := range all {
			<-c.Done
			require.NoError(t, c.Err)
			require.Equal(t, 1100*ms, c.Got, "each waits until the value is closed")
		}
		require.Equal(t, []allocator.State{allocator.Free}, states)
	})
}

// call is one that is on its way.
type call = *testkit.Call[*allocator.Allocation[string]]

// begins begins a call in just this context.
func begins(ctx context.Context, by func(context.Context, *allocator.AllocateOptions) (*allocator.Allocation[string], error)) call {
	return testkit.Begin(ctx, func(ctx context.Context) (*allocator.Allocation[string], error) { return by(ctx, nil) })
}

// A Close may come at any moment of a call. Whatever the call has got by then goes back.
func TestACloseOfAPoolInTheMomentOfAGrantLeavesNothingHeld(t *testing.T) {
	const trip = 10 * ms
	waits := func(opts allocator.AllocateOptions) func(n, other *proc) call {
		return func(n, other *proc) call {
			held := other.take(nil)
			q := n.queue(&opts)
			n.w.Advance(10 * trip)
			time.AfterFunc(trip/2, func() { _ = held.Release(context.Background()) })
			return q.Call
		}
	}
	for name, begin := range map[string]func(n, other *proc) call{
		"one that is free": func(n, _ *proc) call { return begins(context.Background(), n.Allocate) },
		"one that is free, where the caller may leave": func(n, _ *proc) call { return begins(n.w.T.Context(), n.Allocate) },
		"one of a call that does not wait":             func(n, _ *proc) call { return begins(context.Background(), n.TryAllocate) },
		"one that is handed over":                      waits(allocator.AllocateOptions{}),
		"one that is to be confirmed":                  waits(allocator.AllocateOptions{MaxHold: time.Minute}),
		"one that is resumed": func(n, other *proc) call {
			token := detach(n.w.T, other.take(nil))
			return testkit.Begin(context.Background(), func(ctx context.Context) (*allocator.Allocation[string], error) {
				return n.Resume(ctx, token)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for after := time.Duration(0); after <= 7*trip; after += trip / 2 {
				t.Run(after.String(), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						w.add("a")
						n, other := w.nodeOf(allocator.Config[string]{Open: func(_ context.Context, key string) (string, error) {
							<-time.After(trip)
							return key, nil
						}}), w.node()
						n.connect()
						n.Delay(func() time.Duration { return trip })
						q := begin(n, other)
						w.Advance(after)
						require.NoError(t, n.Pool.Close(context.Background()))
						<-q.Done
						if q.Err == nil {
							require.ErrorIs(t, q.Got.Err(), berth.ErrReleased)
						} else {
							require.ErrorIs(t, q.Err, berth.ErrClosed)
						}
						w.Advance(time.Second)
						require.Equal(t, []string{"a"}, w.list())
						w.requireIdle()
					})
				})
			}
		})
	}
}

// An observer is told of a grant before its caller has the handle.
func TestACloseOfAPoolBetweenAGrantAndItsHandle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		var n *proc
		n = w.nodeWith(node.Config{Observer: observe.Func(func(e observe.Event) {
			if e.Kind == observe.Granted {
				require.NoError(t, n.Pool.Close(ctx))
			}
		})}, allocator.Config[string]{})
		_, err := n.Allocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.Equal(t, []string{"a"}, w.list())
		w.requireIdle()
	})
}

// A call that has no bound of its own waits for a server that stands still, wherever it is.
func TestCloseOfAPoolEndsWaitsForAServerThatStandsStill(t *testing.T) {
	const many = 600 // more than are sent at once
	mayEnd, never := (*testing.T).Context, func(*testing.T) context.Context { return ctx }
	type row struct {
		ctx   func(t *testing.T) context.Context
		calls int
		ends  time.Duration // at the latest: an attempt, and a pause
	}
	inEach(t, map[string]row{
		"one under a context that may end":    {mayEnd, 1, 0},
		"one under a context that never ends": {never, 1, 4 * time.Second},
		"many under a context that may end":   {mayEnd, many, 0},
	}, func(t *testing.T, w *world, c row) {
		n := w.node().connect()
		n.Stall()
		var all []call
		for range c.calls {
			all = append(all, begins(c.ctx(t), n.Allocate))
		}
		synctest.Wait()
		require.NoError(t, n.Pool.Close(t.Context()))
		w.Advance(c.ends)
		synctest.Wait()
		for _, q := range all {
			require.True(t, q.Over())
			require.ErrorIs(t, q.Err, berth.ErrClosed)
		}
		n.Flow()
	})
}

// A grant with a limit of its own begins with the claimant's next call.
func TestCloseOfAPoolEndsAWaitWhoseGrantIsNotConfirmed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		n.subscribe()
		w.add("a")
		held := other.take(nil)
		q := n.queue(&allocator.AllocateOptions{MaxHold: time.Minute})
		n.on("pool_renew", func() link.Fate { return link.LoseRequest })
		w.release(held)
		require.True(t, q.Pending())
		require.NoError(t, n.Pool.Close(t.Context()))
		q.Refused(w.Now(), berth.ReasonClosed)
		w.Advance(10 * time.Second)
		require.Equal(t, []string{"a"}, w.list())
	})
}

// A Source or an Open of it is not called, and nothing of it runs.
func TestAPoolOnANodeThatIsClosedIsClosed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node().connect()
		require.NoError(t, n.node.Close(ctx))
		p := allocator.New(n.node, "other", allocator.Config[string]{
			Source: func(context.Context) ([]string, error) { panic("asked") },
			Open:   func(context.Context, string) (string, error) { panic("opened") },
		})
		for _, p := range []*allocator.Pool[string]{p, n.Pool} {
			for name, call := range calls(p) {
				require.ErrorIs(t, call(ctx), berth.ErrClosed, name)
			}
			require.NoError(t, p.Close(ctx))
			require.NoError(t, p.Close(ctx))
		}
		w.Advance(time.Hour)
		require.Empty(t, w.Keys())
	})
}

// An Open of another pool hangs, and has begun before the swarm gave the process another node.
func TestCloseOfAPoolDoesNotWaitForAnOpenOfAnother(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.Config[string]{}).connect()
		let := make(chan struct{})
		slow := allocator.New(n.node, "slow", allocator.Config[string]{
			OpenTimeout: time.Second, Open: func(context.Context, string) (string, error) { <-let; return "", nil },
		})
		require.NoError(t, change(slow.Add(context.Background(), []string{"x"}, nil)))
		require.NoError(t, n.node.Swarm().Start(context.Background()))
		call := testkit.Begin(context.Background(), func(ctx context.Context) (*allocator.Allocation[string], error) { return slow.Allocate(ctx, nil) })
		synctest.Wait()
		former := n.node.ID()
		n.Cut()
		w.Advance(16 * time.Second)
		n.Mend()
		w.Advance(10 * time.Second)
		require.NotEqual(t, former, n.node.ID())
		began := w.Now()
		end := testkit.Begin(context.Background(), func(ctx context.Context) (time.Duration, error) { return w.Now(), n.Pool.Close(ctx) })
		w.Advance(time.Minute)
		over := end.Over()
		close(let)
		<-end.Done
		<-call.Done
		require.True(t, over, "it took more than a minute, from %s", began)
	})
}

// A grant of a Shared pool that Close meets before its caller has the handle has an end as all others: who counts what is held would
// else count it for good.
func TestCloseTellsTheEndOfASharedHoldThatItMeets(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		var n *proc
		done := make(chan error, 1)
		n = w.nodeWith(node.Config{Observer: observe.Func(func(e observe.Event) {
			if e.Kind == observe.Granted && e.Name == proxies {
				go func() { done <- n.Pool.Close(ctx) }()
				<-time.After(ms)
			}
		})}, allocator.Config[string]{Shared: true})
		n.connect()
		n.Delay(func() time.Duration { return 10 * ms })
		_, _ = n.Allocate(t.Context(), nil) // it is granted, and ended
		require.NoError(t, <-done)
		w.Advance(time.Second)
		require.Zero(t, n.Held(), "events of holds that began and did not end")
	})
}

// A pool is closed while it takes up a hold: that hold is given back when the answer comes. The next pool of the name asks for the same
// hold meanwhile, by the same token, and must not be handed what is given back behind it. Which of the two the server sees first is
// chance: they go over several connections.
func TestTheNextPoolDoesNotTakeUpWhatTheFirstGivesBack(t *testing.T) {
	for i := range 20 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, other := w.node("a"), w.node()
				token := detach(t, n.take(nil))
				wait := other.queue(nil)
				n.Delay(func() time.Duration { return 10 * ms })
				first := testkit.Begin(context.Background(), func(ctx context.Context) (*allocator.Allocation[string], error) { return n.Resume(ctx, token) })
				<-time.After(8 * ms)
				require.NoError(t, n.Pool.Close(context.Background()))
				a, err := allocator.New(n.node, proxies, allocator.Config[string]{}).Resume(context.Background(), token)
				<-first.Done
				require.Error(t, first.Err)
				w.Advance(time.Second)
				if err != nil { // it is not detached any more, or not held
					require.False(t, wait.Pending())
					require.NoError(t, wait.Err)
					return
				}
				require.NoError(t, a.Err())
				require.True(t, wait.Pending())
			})
		})
	}
}
