package integration

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// A round trip of 3 % of the lease: one batch in flight at a time would take 15 s to
// renew what has to be renewed in 10 s.
func TestTenThousandHoldsBehindALongRoundTrip(t *testing.T) {
	t.Parallel()
	const holds, lease, trip = 10_000, 10 * time.Second, 300 * time.Millisecond
	for name, start := range map[string]func(testing.TB, ...string) *harness.Deployment{
		"redis": harness.Single, "valkey": harness.Valkey,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, start(t).Servers()[0]).turn()
			front := harness.Proxy(t, b.server)
			client := b.clientOn(front.Client(t), semaphore.Config{Lease: lease, CallTimeout: patience})
			s := b.sem(client, "gpu", holds)
			permits := make([]*semaphore.Permit, holds)
			var all sync.WaitGroup
			const workers = 500
			for i := range workers {
				all.Go(func() {
					for at := i; at < holds; at += workers {
						p, err := s.Acquire(b.within(4*patience), nil)
						if err != nil {
							b.Errorf("acquire: %v", err)
							return
						}
						permits[at] = p
					}
				})
			}
			all.Wait()
			require.False(t, b.Failed())

			front.AddLatency(t, trip)
			end := time.NewTimer(2 * lease)
			defer end.Stop()
			<-end.C
			lost := 0
			for _, p := range permits {
				if p.Err() != nil {
					lost++
				}
			}
			front.Heal(t)
			require.Zero(t, lost, "holds that the server had renewed")
		})
	}
}
