package integration

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// failoverWorld is one name of each primitive on a topology, where one can hold at a time.
type failoverWorld struct {
	testkit.Patient
	d     *harness.Deployment
	ns    string
	lease time.Duration
	kinds []string
	take  map[string]func(context.Context) (berth.Hold, error)
	try   map[string]func(context.Context) (berth.Hold, error)
	pause func(ctx context.Context, kind string, lasts time.Duration) error
	line  chan observe.Event // of the claims that stand in line
}

// name is that of a world's semaphore, lock or pool.
func name(kind string) string { return "the-" + kind }

func newFailoverWorld(t *testing.T, d *harness.Deployment, lease time.Duration) *failoverWorld {
	t.Helper()
	w := &failoverWorld{Patient: testkit.RealTime(t), d: d, ns: harness.Namespace(t), lease: lease, kinds: []string{"sem", "lock", "pool"}, line: make(chan observe.Event, 100)}
	redis := w.client()
	watch := observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			w.line <- e
		}
	})
	n, err := node.New(redis, node.Config{Namespace: w.ns, Lease: lease, Observer: watch, Retry: heard})
	require.NoError(t, err)
	sem, locks := semaphore.New(n, name("sem"), 1, nil), qlock.New(n, &qlock.Config{Lease: lease})
	pool := allocator.New(n, name("pool"), allocator.PoolConfig[string]{})
	_, err = pool.Add(w.Within(patience), []string{"only"}, nil)
	require.NoError(t, err)
	w.take = map[string]func(context.Context) (berth.Hold, error){
		"sem": func(ctx context.Context) (berth.Hold, error) { return sem.Acquire(ctx, nil) },
		"lock": func(ctx context.Context) (berth.Hold, error) {
			return locks.Lock(ctx, name("lock"), &qlock.LockOptions{Lease: lease})
		},
		"pool": func(ctx context.Context) (berth.Hold, error) { return pool.Allocate(ctx, nil) },
	}
	w.try = map[string]func(context.Context) (berth.Hold, error){
		"sem":  func(ctx context.Context) (berth.Hold, error) { return sem.TryAcquire(ctx, nil) },
		"lock": func(ctx context.Context) (berth.Hold, error) { return locks.TryLock(ctx, name("lock"), nil) },
		"pool": func(ctx context.Context) (berth.Hold, error) { return pool.TryAllocate(ctx, nil) },
	}
	w.pause = func(ctx context.Context, kind string, lasts time.Duration) error {
		return n.Operator().Pause(ctx, keyspace.Kind(kind), name(kind), lasts, "")
	}
	t.Cleanup(func() { require.NoError(t, n.Close(w.Within(patience))) })
	return w
}

// client is one that the world closes after those that stand on it.
func (w *failoverWorld) client() rueidis.Client {
	w.Helper()
	return w.d.Client(w)
}

// hold takes what there is of each kind.
func (w *failoverWorld) hold() map[string]berth.Hold {
	w.Helper()
	held := map[string]berth.Hold{}
	for _, kind := range w.kinds {
		p, err := w.take[kind](w.Within(patience))
		require.NoError(w, err, kind)
		held[kind] = p
	}
	return held
}

// queue has some stand in line for each kind, one after the other.
func (w *failoverWorld) queue(n int) map[string][]*testkit.Call[berth.Hold] {
	w.Helper()
	waiters := map[string][]*testkit.Call[berth.Hold]{}
	for range n {
		for _, kind := range w.kinds {
			q := testkit.Begin(w.Context(), w.take[kind]) // for as long as the faults last
			waiters[kind] = append(waiters[kind], q)
			select {
			case <-w.line:
			case <-time.After(patience):
				require.FailNow(w, "nobody stands in line", kind)
			}
		}
	}
	return waiters
}

// serve releases what is held and has all who wait have their turn, in their order.
func (w *failoverWorld) serve(held map[string]berth.Hold, waiters map[string][]*testkit.Call[berth.Hold]) {
	w.Helper()
	for _, kind := range w.kinds {
		require.NoError(w, held[kind].Release(w.Within(patience)), kind)
	}
	w.turns(held, waiters)
}

// turns has all who wait have their turn, in their order.
func (w *failoverWorld) turns(held map[string]berth.Hold, waiters map[string][]*testkit.Call[berth.Hold]) {
	w.Helper()
	for _, kind := range w.kinds {
		last := held[kind].Fence()
		for n, q := range waiters[kind] {
			what := fmt.Sprintf("%s, the waiter %d", kind, n+1)
			select {
			case <-q.Done:
			case <-time.After(patience):
				require.FailNow(w, "a wait does not go on", what)
			}
			require.NoError(w, q.Err, what)
			require.NoError(w, q.Got.Err(), what)
			require.Greater(w, q.Got.Fence(), last, "%s: fences do not rise", what)
			for _, later := range waiters[kind][n+1:] {
				select {
				case <-later.Done:
					require.FailNow(w, "somebody has passed the line", what)
				default:
				}
			}
			last = q.Got.Fence()
			require.NoError(w, q.Got.Release(w.Within(patience)), what)
		}
	}
}

// renewing renews what is held all the time, until stop says how often it was done. It returns when it was done once.
func (w *failoverWorld) renewing(held map[string]berth.Hold) (stop func() int) {
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for last := false; ; {
			for kind, p := range held {
				if err := p.Renew(w.Within(patience)); err != nil {
					w.Errorf("%s: renewing during the fault: %v", kind, err)
				}
				n++
			}
			if n == len(held) {
				close(begun)
			}
			if last {
				done <- n
				return
			}
			select {
			case <-end:
				last = true // once more, after the fault
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	<-begun
	stop = sync.OnceValue(func() int {
		close(end)
		return <-done
	})
	w.Cleanup(func() { stop() }) // where the test fails before
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
			w := newFailoverWorld(t, harness.Sentinel(t), time.Minute)
			held := w.hold()
			waiters := w.queue(4)
			w.replicated()
			stop := w.renewing(held)
			begin := time.Now()
			fail(t, w.d)
			t.Logf("writes after %v", time.Since(begin).Round(10*time.Millisecond))
			t.Logf("%d renewals meanwhile", stop())
			for kind, p := range held {
				require.NoError(t, p.Err(), kind)
			}
			w.serve(held, waiters)
		})
	}
}

// replicated returns when each master has a replica that has all that the master has.
func (w *failoverWorld) replicated() {
	w.Helper()
	for _, master := range w.d.Masters(w) {
		copied(w.Patient, master)
	}
}

var (
	offsetOfMaster  = regexp.MustCompile(`(?m)^master_repl_offset:(\d+)`)
	offsetOfReplica = regexp.MustCompile(`(?m)^slave\d+:.*,offset=(\d+)`)
)

// copied returns when a replica has all that was written to its master before. (WAIT would tell that only of what was
// written on its own connection.)
func copied(p testkit.Patient, master *harness.Server) {
	p.Helper()
	client := master.Client(p, func(o *rueidis.ClientOption) { o.ForceSingleClient = true })
	offsets := func(of *regexp.Regexp) (found []int) {
		text, err := client.Do(p.Context(), client.B().Info().Section("replication").Build()).ToString()
		require.NoError(p, err)
		for _, match := range of.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(match[1])
			require.NoError(p, err)
			found = append(found, n)
		}
		return found
	}
	written := offsets(offsetOfMaster)[0]
	p.Await("a replica has it all", func() bool {
		return slices.ContainsFunc(offsets(offsetOfReplica), func(n int) bool { return n >= written })
	})
}

func TestAFailoverOfAClusterGoesUnnoticed(t *testing.T) {
	t.Parallel()
	w := newFailoverWorld(t, harness.Cluster(t), time.Minute)
	held := w.hold()
	waiters := w.queue(4)
	w.replicated()
	stop := w.renewing(held)
	begin := time.Now()
	w.d.KillMaster(t, "{"+name("lock")+"}")
	t.Logf("writes after %v", time.Since(begin).Round(10*time.Millisecond))
	t.Logf("%d renewals meanwhile", stop())
	for kind, p := range held {
		require.NoError(t, p.Err(), kind)
	}
	w.serve(held, waiters)
}

// While a slot moves, holds are renewed, released and handed on as ever; a wait that
// would need keys that are not there yet stands until it has moved.
func TestASlotThatMovesKeepsItsHoldsAndItsLine(t *testing.T) {
	t.Parallel()
	d := harness.Cluster(t)
	for _, when := range []string{"before any key has moved", "when all keys have moved", "when the slot has moved"} {
		t.Run(when, func(t *testing.T) {
			w := newFailoverWorld(t, d, 2*safe)
			held := w.hold()
			waiters := w.queue(4)
			var moves []*harness.Move
			for _, kind := range w.kinds {
				moves = append(moves, w.d.Move(t, "{"+name(kind)+"}"))
			}
			stop := w.renewing(held)
			w.beat(held)
			if when != "before any key has moved" {
				for _, m := range moves {
					m.Keys(t)
				}
				w.beat(held)
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
			w.serve(held, waiters)
			if when != "when the slot has moved" {
				for _, m := range moves {
					m.Finish(t)
				}
			}
			for kind, p := range w.hold() {
				require.NoError(t, p.Release(w.Within(patience)), kind)
			}
		})
	}
}

// A name whose keys are on two masters stands still: no script runs. What is asked
// meanwhile is answered when the slot has moved, and no lease that outlasts that is lost.
func TestANameWhoseKeysAreApartStandsStillUntilTheSlotHasMoved(t *testing.T) {
	t.Parallel()
	w := newFailoverWorld(t, harness.Cluster(t), time.Minute)
	held := w.hold()
	waiters := w.queue(2)
	for _, kind := range w.kinds {
		move := w.d.Move(t, "{"+name(kind)+"}")
		move.Part(t, fmt.Sprintf("%s:%s:{%s}:state", w.ns, kind, name(kind)))
		renewed := make(chan error, 1)
		go func() { renewed <- held[kind].Renew(w.Within(patience)) }()
		select {
		case err := <-renewed:
			require.FailNow(t, "a script ran on keys that are apart", "%s: %v", kind, err)
		case <-time.After(time.Second): // what shows is that nothing comes
		}
		move.Finish(t)
		require.NoError(t, <-renewed, kind)
	}
	w.serve(held, waiters)
}

// Where the server's clock goes forward, leases end before their time: who held
// learns of it with its next heartbeat, who waits stands in line again, and is
// granted with a larger fence. Where it goes back again nothing is lost.
func TestTheServersClockIsSetForwardAndBack(t *testing.T) {
	t.Parallel()
	const lease, step = safe, time.Minute
	w := newFailoverWorld(t, harness.Single(t), lease)
	held := w.hold()
	waiters := w.queue(3)
	w.d.SetClock(t, step)
	for _, kind := range w.kinds {
		require.Eventually(t, func() bool { return held[kind].Err() != nil }, patience, 10*time.Millisecond, kind)
		require.ErrorIs(t, held[kind].Err(), berth.ErrLost, kind)
	}
	// Of those who stood in line the first to ask again is granted, see law 9.
	first := map[string]berth.Hold{}
	for _, kind := range w.kinds {
		q := w.whoever(waiters[kind])
		require.NoError(t, q.Err, kind)
		require.Greater(t, q.Got.Fence(), held[kind].Fence(), kind)
		waiters[kind] = slices.DeleteFunc(waiters[kind], func(other *testkit.Call[berth.Hold]) bool { return other == q })
		first[kind] = q.Got
	}
	w.d.SetClock(t, 0)
	w.beat(first)
	w.serve(first, waiters)
}

// Where it goes back, all stays: holds renew, the line keeps its order, fences rise.
func TestTheServersClockIsSetBack(t *testing.T) {
	t.Parallel()
	const lease, step = safe, -time.Hour
	w := newFailoverWorld(t, harness.Single(t), lease)
	held := w.hold()
	waiters := w.queue(2)
	w.d.SetClock(t, step)
	w.beat(held)
	last := w.queue(1) // by the clock they came an hour before the others
	for _, kind := range w.kinds {
		waiters[kind] = append(waiters[kind], last[kind]...)
	}
	w.serve(held, waiters)
}

// whoever waits for the first of them that is granted.
func (w *failoverWorld) whoever(waiters []*testkit.Call[berth.Hold]) *testkit.Call[berth.Hold] {
	w.Helper()
	done := make(chan *testkit.Call[berth.Hold], len(waiters))
	for _, q := range waiters {
		go func() {
			<-q.Done
			done <- q
		}()
	}
	select {
	case q := <-done:
		return q
	case <-time.After(patience):
		require.FailNow(w, "nobody of the line is granted")
		return nil
	}
}

// beat lets pass the time of a heartbeat, in which nothing may happen to what is held.
func (w *failoverWorld) beat(held map[string]berth.Hold) {
	w.Helper()
	<-time.After(w.lease / 2)
	for kind, p := range held {
		require.NoError(w, p.Err(), kind)
	}
}
