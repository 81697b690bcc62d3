package integration

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
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
			master, replica := start(t, "--repl-diskless-sync-delay", "0").Servers()[0], start(t).Servers()[0]
			front := harness.Proxy(t, master)
			ask := func(s *harness.Server, words ...string) {
				c := s.Client(t, func(o *rueidis.ClientOption) { o.ForceSingleClient = true })
				require.NoError(t, c.Do(t.Context(), c.B().Arbitrary(words...).Build()).Error(), words)
			}
			host, port, err := net.SplitHostPort(master.Addr)
			require.NoError(t, err)
			ask(replica, "REPLICAOF", host, port)

			// A heartbeat comes each 10 s, and no lease ends before the test does.
			const lease = 30 * time.Second
			ns := harness.Namespace(t)
			queued, lost := make(chan struct{}, 1), make(chan observe.Event, 1)
			pool := func() *allocator.Pool[string] {
				n, err := node.New(front.Client(t), node.Config{
					Namespace: ns, Lease: lease,
					Observer: observe.Func(func(e observe.Event) {
						switch e.Kind {
						case observe.Queued:
							queued <- struct{}{}
						case observe.Lost:
							lost <- e
						}
					}),
				})
				require.NoError(t, err)
				t.Cleanup(func() { _ = n.Close(context.Background()) })
				return allocator.New(n, "proxies", allocator.PoolConfig[string]{})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			others, mine := pool(), pool()
			_, err = others.Add(ctx, []string{"r1", "r2"}, nil)
			require.NoError(t, err)
			fixed := &allocator.AllocateOptions{Lease: time.Hour, NoRenew: true}
			x, err := others.Allocate(ctx, fixed)
			require.NoError(t, err)
			y, err := others.Allocate(ctx, fixed)
			require.NoError(t, err)
			require.Equal(t, []string{"r1", "r2"}, []string{x.Resource(), y.Resource()})
			got := make(chan *allocator.Allocation[string], 1)
			go func() {
				a, err := mine.Allocate(ctx, nil)
				if err != nil {
					t.Error(err)
				}
				got <- a
			}()
			<-queued
			copied(testkit.RealTime(t), master)
			ask(replica, "REPLICAOF", "NO", "ONE")

			require.NoError(t, x.Release(ctx))
			a := <-got
			require.NotNil(t, a)
			require.Equal(t, "r1", a.Resource())
			front.Lead(t, replica)
			require.NoError(t, y.Release(ctx), "on the new master, which grants r2 to the same claim")
			select {
			case e := <-lost:
				require.Equal(t, a.ID(), e.Claim)
			case <-time.After(patience):
				require.FailNow(t, "the handle goes on believing in r1")
			}
			require.ErrorIs(t, a.Err(), berth.ErrLost)
			require.ErrorIs(t, context.Cause(a.Context()), berth.ErrLost)

			// r2 is given back, and r1 too: x's release, which the new master has not heard of, is asked again.
			b, err := mine.Allocate(ctx, nil)
			require.NoError(t, err)
			require.Contains(t, []string{"r1", "r2"}, b.Resource())
			require.NoError(t, b.Err())
			require.Greater(t, b.Fence(), a.Fence())
			require.NoError(t, b.Release(ctx))
		})
	}
}
