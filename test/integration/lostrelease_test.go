package integration

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/test/harness"
)

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
