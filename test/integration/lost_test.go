package integration

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/test/harness"
)

// The replica is cut off in sync, the master grants r1 to who waits, and the replica
// takes over: there the next release grants r2 to the same claim.
func TestAFailoverThatLosesAHandOffEndsItsHold(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, ...string) *harness.Deployment{
		"redis": harness.Single, "valkey": harness.Valkey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, start(t, "--repl-diskless-sync-delay", "0").Servers()[0])
			replica := newWorld(t, start(t).Servers()[0])
			w.kind = keyspace.Pool
			front := harness.Proxy(t, w.server)
			host, port, err := net.SplitHostPort(w.server.Addr)
			require.NoError(t, err)
			replica.do("REPLICAOF", host, port)

			// A heartbeat comes each 10 s, and no lease ends before the test does.
			lost := make(chan observe.Event, 1)
			cfg := node.Config{Lease: 30 * time.Second, Observer: observe.Func(func(e observe.Event) {
				if e.Kind == observe.Lost {
					lost <- e
				}
			})}
			others := w.proxies(w.nodeOn(front.Client(t), cfg), poolConfig{})
			mine := w.proxies(w.nodeOn(front.Client(t), cfg), poolConfig{})
			w.add(others, "r1", "r2")
			fixed := &allocator.AllocateOptions{Lease: time.Hour, NoRenew: true}
			x, y := w.allocate(others, fixed), w.allocate(others, fixed)
			require.Equal(t, []string{"r1", "r2"}, []string{x.Resource(), y.Resource()})
			q := w.allocateQueue(mine, nil, 1)
			copied(testkit.RealTime(t), w.server)
			replica.do("REPLICAOF", "NO", "ONE")

			w.release(x)
			a := q.Wait(w)
			require.Equal(t, "r1", a.Resource())
			front.Lead(t, replica.server)
			w.release(y) // on the new master, which grants r2 to the same claim
			w.Await("the handle believes in r1 no more", func() bool { return len(lost) > 0 })
			require.Equal(t, a.ID(), (<-lost).Claim)
			require.ErrorIs(t, a.Err(), berth.ErrLost)
			require.ErrorIs(t, context.Cause(a.Context()), berth.ErrLost)

			// r2 is given back, and r1 too: x's release, which the new master has not heard of, is asked again.
			b := w.allocate(mine, nil)
			require.Contains(t, []string{"r1", "r2"}, b.Resource())
			require.NoError(t, b.Err())
			require.Greater(t, b.Fence(), a.Fence())
			w.release(b)
		})
	}
}

// A server that starts from an older snapshot has holds again that were given back. Their node lives, so
// nothing else would ever end one without end.
func TestAReleaseThatTheServerLosesIsAskedAgain(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		kind  keyspace.Kind
		swarm bool
		lease time.Duration
	}{
		"a lock":                          {keyspace.Lock, false, berth.Forever},
		"a lock of a swarm":               {keyspace.Lock, true, berth.Forever},
		"a permit":                        {keyspace.Sem, false, berth.Forever},
		"an allocation with a long lease": {keyspace.Pool, false, 100 * time.Hour},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Single(t).Servers()[0])
			w.kind = test.kind
			var again atomic.Int64
			cfg := node.Config{Observer: observe.Func(func(e observe.Event) {
				if e.Kind == observe.ReleasedAgain {
					again.Add(1)
				}
			})}
			if test.swarm {
				cfg.Swarm = node.SwarmConfig{ProbeEvery: time.Second, ZombieAfter: time.Minute}
			}
			u := w.use(cfg)
			if test.swarm {
				require.NoError(t, u.Swarm().Start(w.Within(patience)))
			}
			hold := w.hold(u, terms{Lease: test.lease})
			w.server.Snapshot(t)
			w.release(hold)
			w.server.Restore(t)
			// A wait would subscribe, which is the sign by itself: so nobody waits.
			w.Await("the release is asked again", func() bool { return again.Load() == 1 })
			w.release(w.hold(u, terms{Lease: test.lease}))
		})
	}
}
