package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Each call that goes unanswered takes as long as node.Config.Retry allows: what a server has that
// answers nothing must not be asked for one by one.
func TestAnOperatorDoesNotWaitForEveryClaimOfAServerThatDoesNotAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := berth.WithOwner(context.Background(), "me")
		n, op := w.node(), w.node(node.Config{Retry: berth.Retry{Within: 2 * time.Second}})
		const names, claims = 20, 20
		for i := range names {
			s := semaphore.New(n.Node, fmt.Sprint("n", i), claims, nil)
			for range claims {
				_, err := s.Acquire(ctx, &semaphore.AcquireOptions{Lease: berth.Forever})
				require.NoError(t, err)
			}
		}
		lost := func(script string) {
			op.OnCommand(func(c link.Command) link.Fate {
				if c.Name == script {
					return link.LoseRequest
				}
				return link.Pass
			})
		}
		took := func(f func(ctx context.Context) (int, error)) time.Duration {
			began := w.Now()
			ended, err := f(context.Background())
			require.ErrorIs(t, err, berth.ErrUnavailable)
			require.Zero(t, ended)
			return w.Now() - began
		}
		all := map[string]berth.Target{"name": {Name: "n1"}, "owner": {Owner: "me"}, "node": {Node: n.ID()}, "all": {All: true}}
		for what, target := range all {
			target.Kind = keyspace.Sem
			most := 3 * 2 * time.Second // three names
			if target.Name != "" {
				most = 2 * time.Second
			}
			for _, script := range []string{"MGET", "semaphore_force_release"} {
				lost(script)
				require.LessOrEqual(t, took(func(ctx context.Context) (int, error) { return op.Operator().Release(ctx, target) }),
					most, "%s, %s", what, script)
			}
		}
		lost("semaphore_sweep")
		require.LessOrEqual(t, took(func(ctx context.Context) (int, error) { return op.Operator().Sweep(ctx, keyspace.Sem) }), 6*time.Second)

		lost("")
		ended, err := op.Operator().Release(context.Background(), berth.Target{Owner: "me"})
		require.NoError(t, err)
		require.Equal(t, names*claims, ended)
	})
}

// A claim that is granted between the listings of who waits and of who holds is one claim.
func TestAClaimThatIsGrantedMeanwhileIsEndedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		p := n.take(1, nil)
		waits := n.queueOn(berth.WithOwner(context.Background(), "me"), n.gpu(1), nil)
		reads := 0
		op.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "MGET" {
				reads++
			}
			if c.Name == "MGET" && reads == 2 { // first it read who waits
				_ = p.Release(context.Background())
			}
			return link.Pass
		})
		ended, err := op.Operator().Release(context.Background(), berth.Target{Owner: "me"})
		require.NoError(t, err)
		require.Equal(t, 1, ended)
		require.Equal(t, 1, op.Count("semaphore_force_release"))
		<-waits.Done
		require.NoError(t, waits.Err)
		<-waits.Got.Done()
		require.ErrorIs(t, waits.Got.Err(), berth.ErrReleased)
	})
}
