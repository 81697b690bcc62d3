package integration

import (
	"testing"
	"time"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// The scenarios are those of semaphores; these show that pools have them too, and a rest
// after each hold.
func TestACrashCostsAResourceAtMostALease(t *testing.T) {
	t.Parallel()
	for what, rest := range map[string]time.Duration{"of a holder": 0, "of a holder whose resource rests": 300 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			w := sharedPools(t)
			client := w.node(node.Config{Lease: crashLease})
			p := w.proxies(client, poolConfig{})
			w.add(p, "r0")
			c := w.crash(proxies, client.ID())
			holder := w.spawn(crashLease)
			holder.does(order{Do: "acquire", Rest: rest})
			q := w.allocateQueue(p, nil, 1)
			c.kill(holder)
			a := q.Wait(w)
			c.inTime(a.ID(), rest)
			w.giveBack(a)
			w.Await("it has rested, as after every hold of the pool", func() bool {
				w.swept(p.Name())
				return w.reader().Look(keyspace.Pool, p.Name()).Pool.Free == 1
			})
			w.allFree(p, 1)
		})
	}
}
