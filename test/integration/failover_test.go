package integration

import (
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
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/test/harness"
)

// kinds are the primitives, of each of which a test has one name, where one can hold at a time.
var kinds = []string{"sem", "lock", "pool"}

func name(kind string) string { return "the-" + kind }

// usersOf is how a node uses the name of each kind.
func usersOf(n *node.Node, lease time.Duration) map[string]*user {
	users := map[string]*user{}
	for _, kind := range kinds {
		users[kind] = userOf(n, keyspace.Kind(kind), name(kind), 1, lease, poolConfig{})
	}
	return users
}

// fills puts the one resource into the pool, and closes the node.
func fills(p testkit.Patient, redis rueidis.Client, ns string) {
	p.Helper()
	n, err := node.New(redis, node.Config{Namespace: ns, Retry: heard})
	require.NoError(p, err)
	_, err = poolOf(n, name("pool"), poolConfig{}).Add(p.Within(patience), []string{"only"}, nil)
	require.NoError(p, err)
	require.NoError(p, n.Close(p.Within(patience)))
}

// waits are those who wait, by kind.
type waits = map[string][]*testkit.Call[berth.Hold]

// failoverWorld is the names of all kinds on a topology.
type failoverWorld struct {
	testkit.Patient
	users map[string]*user
	d     *harness.Deployment
	ns    string
	lease time.Duration
	line  chan struct{} // of the claims that stand in line
}

func newFailoverWorld(t *testing.T, d *harness.Deployment, lease time.Duration) *failoverWorld {
	t.Helper()
	w := &failoverWorld{Patient: testkit.RealTime(t), d: d, ns: harness.Namespace(t), lease: lease}
	w.line = make(chan struct{}, 100)
	watch := observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			w.line <- struct{}{}
		}
	})
	n, err := node.New(d.Client(t), node.Config{Namespace: w.ns, Lease: lease, Observer: watch, Retry: heard})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close(w.Within(patience))) })
	w.users = usersOf(n, lease)
	fills(w.Patient, d.Client(t), w.ns)
	return w
}

// hold takes what there is of each kind.
func (w *failoverWorld) hold() map[string]berth.Hold {
	w.Helper()
	held := map[string]berth.Hold{}
	for _, kind := range kinds {
		p, err := w.users[kind].claim(w.Within(patience))
		require.NoError(w, err, kind)
		held[kind] = p
	}
	return held
}

// queue has some stand in line for each kind, one after the other.
func (w *failoverWorld) queue(n int) waits {
	w.Helper()
	waiters := waits{}
	for range n {
		for _, kind := range kinds {
			q := testkit.Begin(w.Context(), w.users[kind].claim) // for as long as the faults last
			waiters[kind] = append(waiters[kind], q)
			w.Signalled("the claim to stand in line", w.line)
		}
	}
	return waiters
}

// serve releases what is held and has all who wait have their turn, in their order.
func (w *failoverWorld) serve(held map[string]berth.Hold, waiters waits) {
	w.Helper()
	for _, kind := range kinds {
		require.NoError(w, held[kind].Release(w.Within(patience)), kind)
	}
	for _, kind := range kinds {
		last := held[kind].Fence()
		for n, q := range waiters[kind] {
			what := fmt.Sprintf("%s, the waiter %d", kind, n+1)
			w.Signalled(what, q.Done)
			require.NoError(w, q.Err, what)
			require.NoError(w, q.Got.Err(), what)
			require.Greater(w, q.Got.Fence(), last, "%s: fences do not rise", what)
			passed := slices.ContainsFunc(waiters[kind][n+1:], (*testkit.Call[berth.Hold]).Over)
			require.False(w, passed, "%s was passed by another", what)
			last = q.Got.Fence()
			require.NoError(w, q.Got.Release(w.Within(patience)), what)
		}
	}
}

// renewing renews what is held all the time, until stop has done so once more, after the fault.
func (w *failoverWorld) renewing(held map[string]berth.Hold) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	renew := func() {
		for kind, p := range held {
			if err := p.Renew(w.Within(patience)); err != nil {
				w.Errorf("%s: renewing during the fault: %v", kind, err)
			}
		}
	}
	renew()
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-time.After(50 * time.Millisecond):
				renew()
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(end); <-done; renew() })
	w.Cleanup(stop) // where the test fails before
	return stop
}

// A master that is killed takes nothing from who holds for longer than the failover
// lasts, and from who waits: neither sees an error.
func TestAFailoverGoesUnnoticed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		deploy func(testing.TB) *harness.Deployment
		fail   func(testing.TB, *harness.Deployment)
	}{
		"Sentinels, the master is killed": {harness.Sentinel, func(t testing.TB, d *harness.Deployment) {
			t.Helper()
			d.Failover(t)
		}},
		"Sentinels, an operator orders it": {harness.Sentinel, func(t testing.TB, d *harness.Deployment) {
			t.Helper()
			d.Switchover(t)
			d.Rejoin(t) // until then the old master takes writes, too, which are lost
		}},
		"a Cluster": {harness.Cluster, func(t testing.TB, d *harness.Deployment) {
			t.Helper()
			d.KillMaster(t, "{"+name("lock")+"}")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFailoverWorld(t, test.deploy(t), time.Minute)
			held, waiters := w.hold(), w.queue(4)
			w.replicated()
			stop := w.renewing(held)
			begin := time.Now()
			test.fail(t, w.d)
			t.Logf("writes after %v", time.Since(begin).Round(10*time.Millisecond))
			stop()
			w.keeps(held)
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

// While a slot moves, holds are renewed, released and handed on as ever; a wait that
// would need keys that are not there yet stands until it has moved.
func TestASlotThatMovesKeepsItsHoldsAndItsLine(t *testing.T) {
	t.Parallel()
	d := harness.Cluster(t)
	for steps, when := range []string{"before any key has moved", "when all keys have moved", "when the slot has moved"} {
		t.Run(when, func(t *testing.T) {
			w := newFailoverWorld(t, d, 2*safe)
			held, waiters := w.hold(), w.queue(4)
			var moves []*harness.Move
			for _, kind := range kinds {
				moves = append(moves, w.d.Move(t, "{"+name(kind)+"}"))
			}
			stop := w.renewing(held)
			w.beat(held)
			finish := func() {
				for _, m := range moves {
					m.Finish(t)
				}
			}
			if steps > 0 {
				for _, m := range moves {
					m.Keys(t)
				}
				w.beat(held)
			}
			if steps == 2 {
				finish()
			}
			stop()
			w.keeps(held)
			w.serve(held, waiters)
			if steps < 2 {
				finish()
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
	held, waiters := w.hold(), w.queue(2)
	for _, kind := range kinds {
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
// granted with a larger fence. Where it goes back nothing is lost: holds renew, the line keeps its order, fences rise.
func TestTheServersClockIsSetForwardAndBack(t *testing.T) {
	t.Parallel()
	w := newFailoverWorld(t, harness.Single(t), safe)
	held, waiters := w.hold(), w.queue(3)
	w.d.SetClock(t, time.Minute)
	first := map[string]berth.Hold{}
	for _, kind := range kinds {
		w.Signalled(kind+" to be lost", held[kind].Done())
		require.ErrorIs(t, held[kind].Err(), berth.ErrLost, kind)
		// Of those who stood in line the first to ask again is granted, see law 9.
		i, h := firstOf(w.Patient, waiters[kind])
		require.Greater(t, h.Fence(), held[kind].Fence(), kind)
		first[kind], waiters[kind] = h, slices.Delete(waiters[kind], i, i+1)
	}
	w.d.SetClock(t, -time.Hour)
	w.beat(first)
	for kind, later := range w.queue(1) { // by the clock they came an hour before the others
		waiters[kind] = append(waiters[kind], later...)
	}
	w.serve(first, waiters)
}

// beat lets pass the time of a heartbeat, in which nothing may happen to what is held.
func (w *failoverWorld) beat(held map[string]berth.Hold) {
	w.Helper()
	<-time.After(w.lease / 2)
	w.keeps(held)
}

// keeps wants all of it to be held yet.
func (w *failoverWorld) keeps(held map[string]berth.Hold) {
	w.Helper()
	for kind, p := range held {
		require.NoError(w, p.Err(), kind)
	}
}
