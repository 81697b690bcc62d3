package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// place is what the handles of the three primitives have in common.
type place interface {
	Release(ctx context.Context) error
	Renew(ctx context.Context) error
	Err() error
	Fence() int64
}

// scene is one name of each primitive on a topology, where one can hold at a time.
type scene struct {
	*testing.T
	d     *harness.Deployment
	ns    string
	lease time.Duration
	kinds []string
	take  map[string]func(context.Context) (place, error)
	line  chan observe.Event // of the claims that stand in line
}

// name is that of a scene's semaphore, lock or pool.
func name(kind string) string { return "the-" + kind }

func newScene(t *testing.T, d *harness.Deployment, lease time.Duration) *scene {
	t.Helper()
	s := &scene{T: t, d: d, ns: harness.Namespace(t), lease: lease, kinds: []string{"sem", "lock", "pool"}, line: make(chan observe.Event, 100)}
	redis := s.client()
	watch := observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			s.line <- e
		}
	})
	sems, err := semaphore.New(redis, semaphore.Config{Namespace: s.ns, Lease: lease, Observer: watch})
	require.NoError(t, err)
	locks, err := qlock.New(redis, qlock.Config{Namespace: s.ns, Lease: lease, Observer: watch})
	require.NoError(t, err)
	pools, err := allocator.New(redis, allocator.Config{Namespace: s.ns, Lease: lease, Observer: watch})
	require.NoError(t, err)
	sem, err := sems.Semaphore(name("sem"), 1)
	require.NoError(t, err)
	pool, err := allocator.NewPool(pools, name("pool"), allocator.PoolConfig[string]{})
	require.NoError(t, err)
	_, err = pool.Add(s.within(), []string{"only"}, nil)
	require.NoError(t, err)
	s.take = map[string]func(context.Context) (place, error){
		"sem": func(ctx context.Context) (place, error) { return sem.Acquire(ctx, nil) },
		"lock": func(ctx context.Context) (place, error) {
			return locks.Lock(ctx, name("lock"), &qlock.LockOptions{Lease: lease})
		},
		"pool": func(ctx context.Context) (place, error) { return pool.Allocate(ctx, nil) },
	}
	t.Cleanup(func() {
		require.NoError(t, sems.Close(s.within()))
		require.NoError(t, locks.Close(s.within()))
		require.NoError(t, pools.Close(s.within()))
	})
	return s
}

// client is one that the scene closes after those that stand on it.
func (s *scene) client() rueidis.Client {
	s.Helper()
	return s.d.Client(s)
}

func (s *scene) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.Cleanup(cancel)
	return ctx
}

// waiter is an acquire of a scene on its way.
type waiter struct {
	done chan struct{} // closed when it has returned
	held place
	err  error
}

// hold takes the place of each kind.
func (s *scene) hold() map[string]place {
	s.Helper()
	held := map[string]place{}
	for _, kind := range s.kinds {
		p, err := s.take[kind](s.within())
		require.NoError(s, err, kind)
		held[kind] = p
	}
	return held
}

// queue has some stand in line for each kind, one after the other.
func (s *scene) queue(n int) map[string][]*waiter {
	s.Helper()
	waiters := map[string][]*waiter{}
	for range n {
		for _, kind := range s.kinds {
			w := &waiter{done: make(chan struct{})}
			ctx := s.within()
			go func() {
				defer close(w.done)
				w.held, w.err = s.take[kind](ctx)
			}()
			waiters[kind] = append(waiters[kind], w)
			select {
			case <-s.line:
			case <-time.After(patience):
				require.FailNow(s, "nobody stands in line", kind)
			}
		}
	}
	return waiters
}

// serve releases what is held and has all who wait have their turn, in their order.
func (s *scene) serve(held map[string]place, waiters map[string][]*waiter) {
	s.Helper()
	for _, kind := range s.kinds {
		last := held[kind].Fence()
		require.NoError(s, held[kind].Release(s.within()), kind)
		for n, w := range waiters[kind] {
			what := fmt.Sprintf("%s, the waiter %d", kind, n+1)
			select {
			case <-w.done:
			case <-time.After(patience):
				require.FailNow(s, "a wait does not go on", what)
			}
			require.NoError(s, w.err, what)
			require.NoError(s, w.held.Err(), what)
			require.Greater(s, w.held.Fence(), last, "%s: fences do not rise", what)
			for _, later := range waiters[kind][n+1:] {
				select {
				case <-later.done:
					require.FailNow(s, "somebody has passed the line", what)
				default:
				}
			}
			last = w.held.Fence()
			require.NoError(s, w.held.Release(s.within()), what)
		}
	}
}

// renewing renews what is held all the time, until stop says how often it was done.
func (s *scene) renewing(held map[string]place) (stop func() int) {
	end, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-end:
				done <- n
				return
			default:
			}
			<-time.After(5 * time.Millisecond)
			for kind, p := range held {
				if err := p.Renew(s.within()); err != nil {
					s.Errorf("%s: renewing during the fault: %v", kind, err)
				}
				n++
			}
		}
	}()
	stop = sync.OnceValue(func() int {
		close(end)
		return <-done
	})
	s.Cleanup(func() { stop() }) // where the test fails before
	return stop
}

// A master that is killed takes nothing from who holds for longer than the failover
// lasts, and from who waits: neither sees an error.
func TestAFailoverBySentinelGoesUnnoticed(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*testing.T, *harness.Deployment){
		"the master is killed": func(t *testing.T, d *harness.Deployment) { t.Helper(); d.Failover(t) },
		"an operator orders it": func(t *testing.T, d *harness.Deployment) {
			t.Helper()
			d.Switchover(t)
			d.Rejoin(t) // until then the old master takes writes, too, which are lost
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, harness.Sentinel(t), time.Minute)
			held := s.hold()
			waiters := s.queue(4)
			s.replicated()
			stop := s.renewing(held)
			begin := time.Now()
			fail(t, s.d)
			t.Logf("writes after %v", time.Since(begin).Round(10*time.Millisecond))
			require.Positive(t, stop())
			for kind, p := range held {
				require.NoError(t, p.Err(), kind)
			}
			s.serve(held, waiters)
		})
	}
}

// replicated returns when the replicas have all that the masters have.
func (s *scene) replicated() {
	s.Helper()
	for _, server := range s.d.Masters(s) {
		client := server.Client(s, func(o *rueidis.ClientOption) { o.ForceSingleClient = true })
		n, err := client.Do(s.within(), client.B().Wait().Numreplicas(1).Timeout(patience.Milliseconds()).Build()).AsInt64()
		require.NoError(s, err)
		require.Positive(s, n)
	}
}

func TestAFailoverOfAClusterGoesUnnoticed(t *testing.T) {
	t.Parallel()
	s := newScene(t, harness.Cluster(t), time.Minute)
	held := s.hold()
	waiters := s.queue(4)
	s.replicated()
	stop := s.renewing(held)
	begin := time.Now()
	s.d.KillMaster(t, "{"+name("lock")+"}")
	t.Logf("writes after %v", time.Since(begin).Round(10*time.Millisecond))
	require.Positive(t, stop())
	for kind, p := range held {
		require.NoError(t, p.Err(), kind)
	}
	s.serve(held, waiters)
}

// While a slot moves, holds are renewed, released and handed on as ever; a wait that
// would need keys that are not there yet stands until it has moved.
func TestASlotThatMovesKeepsItsHoldsAndItsLine(t *testing.T) {
	t.Parallel()
	d := harness.Cluster(t)
	for _, when := range []string{"before any key has moved", "when all keys have moved", "when the slot has moved"} {
		t.Run(when, func(t *testing.T) {
			s := newScene(t, d, safe)
			held := s.hold()
			waiters := s.queue(4)
			var moves []*harness.Move
			for _, kind := range s.kinds {
				moves = append(moves, s.d.Move(t, "{"+name(kind)+"}"))
			}
			stop := s.renewing(held)
			s.beat(held)
			if when != "before any key has moved" {
				for _, m := range moves {
					m.Keys(t)
				}
				s.beat(held)
			}
			if when == "when the slot has moved" {
				for _, m := range moves {
					m.Finish(t)
				}
			}
			t.Logf("%d renewals meanwhile", stop())
			for kind, p := range held {
				require.NoError(t, p.Err(), kind)
			}
			s.serve(held, waiters)
			if when != "when the slot has moved" {
				for _, m := range moves {
					m.Finish(t)
				}
			}
			for kind, p := range s.hold() {
				require.NoError(t, p.Release(s.within()), kind)
			}
		})
	}
}

// A name whose keys are on two masters stands still: no script runs. What is asked
// meanwhile is answered when the slot has moved, and no lease that outlasts that is lost.
func TestANameWhoseKeysAreApartStandsStillUntilTheSlotHasMoved(t *testing.T) {
	t.Parallel()
	s := newScene(t, harness.Cluster(t), time.Minute)
	held := s.hold()
	waiters := s.queue(2)
	for _, kind := range s.kinds {
		move := s.d.Move(t, "{"+name(kind)+"}")
		move.Part(t, fmt.Sprintf("%s:%s:{%s}:state", s.ns, kind, name(kind)))
		renewed := make(chan error, 1)
		go func() { renewed <- held[kind].Renew(s.within()) }()
		select {
		case err := <-renewed:
			require.FailNow(t, "a script ran on keys that are apart", "%s: %v", kind, err)
		case <-time.After(time.Second): // what shows is that nothing comes
		}
		move.Finish(t)
		require.NoError(t, <-renewed, kind)
	}
	s.serve(held, waiters)
}

// Where the server's clock goes forward, leases end before their time: who held
// learns of it with its next heartbeat, who waits stands in line again, and is
// granted with a larger fence. Where it goes back again nothing is lost.
func TestTheServersClockIsSetForwardAndBack(t *testing.T) {
	t.Parallel()
	const lease, step = safe, time.Minute
	s := newScene(t, harness.Single(t), lease)
	held := s.hold()
	waiters := s.queue(3)
	s.d.SetClock(t, step)
	for _, kind := range s.kinds {
		require.Eventually(t, func() bool { return held[kind].Err() != nil }, patience, 10*time.Millisecond, kind)
		require.ErrorIs(t, held[kind].Err(), berth.ErrLost, kind)
	}
	// Of those who stood in line the first to ask again is granted, see law 9.
	first := map[string]place{}
	for _, kind := range s.kinds {
		w := s.whoever(waiters[kind])
		require.NoError(t, w.err, kind)
		require.Greater(t, w.held.Fence(), held[kind].Fence(), kind)
		waiters[kind] = slices.DeleteFunc(waiters[kind], func(other *waiter) bool { return other == w })
		first[kind] = w.held
	}
	s.d.SetClock(t, 0)
	s.beat(first)
	s.serve(first, waiters)
}

// Where it goes back, all stays: holds renew, the line keeps its order, fences rise.
func TestTheServersClockIsSetBack(t *testing.T) {
	t.Parallel()
	const lease, step = safe, -time.Hour
	s := newScene(t, harness.Single(t), lease)
	held := s.hold()
	waiters := s.queue(2)
	s.d.SetClock(t, step)
	s.beat(held)
	last := s.queue(1) // by the clock they came an hour before the others
	for _, kind := range s.kinds {
		waiters[kind] = append(waiters[kind], last[kind]...)
	}
	s.serve(held, waiters)
}

// whoever waits for the first of them that is granted.
func (s *scene) whoever(waiters []*waiter) *waiter {
	s.Helper()
	done := make(chan *waiter, len(waiters))
	for _, w := range waiters {
		go func() {
			<-w.done
			done <- w
		}()
	}
	select {
	case w := <-done:
		return w
	case <-time.After(patience):
		require.FailNow(s, "nobody of the line is granted")
		return nil
	}
}

// beat lets pass the time of a heartbeat, in which nothing may happen to what is held.
func (s *scene) beat(held map[string]place) {
	s.Helper()
	<-time.After(s.lease / 2)
	for kind, p := range held {
		require.NoError(s, p.Err(), kind)
	}
}
