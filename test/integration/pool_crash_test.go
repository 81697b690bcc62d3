package integration

import (
	"testing"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
)

// The scenarios are those of semaphores; these show that pools have them too, and a rest
// after each hold.
func TestACrashCostsAResourceAtMostALease(t *testing.T) {
	t.Parallel()
	for what, rest := range map[string]time.Duration{"of a holder": 0, "of a holder whose resource rests": 300 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			b := sharedPools(t)
			client := b.pooler(allocator.Config{Lease: crashLease})
			p := b.proxies(client, poolConfig{})
			b.add(p, "r0")
			c := b.crash(proxies, client.Node())
			holder := b.spawn(crashLease)
			holder.does(order{Do: "acquire", Rest: rest})
			w := b.allocateQueue(p, nil, 1)
			c.kill(holder)
			a := w.take(b)
			c.inTime(a.ID(), rest)
			b.giveBack(a)
			b.allFree(p, 1)
		})
	}
}
