package integration

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// However many wait, one connection more at the most brings their wake-ups. Of RESP 2 pkg/semaphore has it.
func TestWaitersOpenAtMostOneConnection(t *testing.T) {
	w := private(t)
	n := w.node(node.Config{})
	s := w.sem(n, "gpu", 1)
	w.eachOf(250, func(int) error { // all connections of the node are opened
		return testkit.Second(n.Operator().Sweep(w.Within(patience), keyspace.Sem, "gpu"))
	})
	before := w.number("clients", "connected_clients")
	p := w.take(s, nil)
	var waits []*taking
	for range 50 {
		waits = append(waits, w.begin(s, nil))
	}
	w.Await("all wait", func() bool { return w.waiting("gpu") == len(waits) })
	w.subscribed(n)
	require.LessOrEqual(t, w.number("clients", "connected_clients")-before, 1)
	w.release(p)
	drain(w, waits)
}

// One reads the notice: a grant beside that could be one in a pause.
func TestTheFirstCallOfANodeTakesThreeTripsAtTheMost(t *testing.T) {
	const trip = 100 * time.Millisecond // of virtual time
	for name, c := range map[string]struct {
		kind     keyspace.Kind
		capacity int
		held     bool
		most     time.Duration
	}{
		"a lock":                               {keyspace.Lock, 1, false, 2 * trip},
		"a semaphore of 10":                    {keyspace.Sem, 10, false, 2 * trip},
		"a semaphore of 1 that is in fat form": {keyspace.Sem, 1, true, 3 * trip},
		"a pool":                               {keyspace.Pool, 1, false, 2 * trip},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.In(t, contended[c.kind], "", "", func(t *testing.T, w *testkit.World) {
				ctx, wire := context.Background(), link.New(nil)
				far, err := w.Server.Client(link.Slim, wire.Wrap, func(o *rueidis.ClientOption) { o.PipelineMultiplex = -1 })
				require.NoError(t, err)
				defer far.Close()
				var users []*user // the first one prepares
				for _, redis := range []rueidis.Client{w.Redis, far} {
					n, err := node.New(redis, node.Config{})
					require.NoError(t, err)
					defer func() { require.NoError(t, n.Close(ctx)) }()
					users = append(users, userOf(n, c.kind, contended[c.kind], c.capacity, time.Minute, poolConfig{}))
				}
				if p := users[0].pool; p != nil {
					_, err := p.Add(ctx, []string{"r0"}, nil)
					require.NoError(t, err)
				}
				if c.held {
					_, err := users[0].claim(ctx)
					require.NoError(t, err)
				}
				wire.Delay(func() time.Duration { return trip / 2 })
				began := time.Now()
				_, err = users[1].try(ctx, terms{})
				took := time.Since(began)
				if c.held {
					require.ErrorIs(t, err, berth.ErrBusy)
				} else {
					require.NoError(t, err)
				}
				require.GreaterOrEqual(t, took, trip, "the wire delays nothing")
				require.LessOrEqual(t, took, c.most)
			})
		})
	}
}
