package inspect_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

// nodes are all nodes by their labels, and the labels in order.
func (w *world) nodes() (all map[string]inspect.Node, order []string) {
	w.T.Helper()
	page := testkit.Must(w.look.Nodes().Read(ctx, 0)).In(w.T)
	require.Empty(w.T, page.Problems)
	require.False(w.T, page.Partial)
	all = map[string]inspect.Node{}
	for _, n := range page.Items {
		all[n.Label], order = n, append(order, n.Label)
	}
	require.Len(w.T, all, len(page.Items))
	return all, order
}

// TestNodesAreToldByTheirClaimsAndTheSwarm has one that renews, one that holds and waits of all kinds, one that dies, one of which nothing tells,
// and two of a swarm.
func TestNodesAreToldByTheirClaimsAndTheSwarm(t *testing.T) {
	inWorld(t, func(w *world) {
		limit := node.SwarmConfig{ProbeEvery: time.Second, ZombieAfter: 3 * time.Second, FlushEvery: -1}
		swarmed := func(label string) *process {
			p := w.made(node.Config{Label: label, Swarm: limit})
			require.NoError(w.T, p.Swarm().Start(ctx))
			return p
		}
		alpha, busy, dies := w.process("alpha"), w.process("busy"), w.process("dies")
		idle, zombie := swarmed("idle"), swarmed("zombie")
		alpha.lock("nightly", "", nil)
		alpha.permit("", "gpu", 1, nil)
		w.process("fixed").lock("fixed", "", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
		zombie.lock("reports", "", &qlock.LockOptions{Lease: berth.Forever})
		pool := busy.filled("a", "b", "c")
		busy.take(pool, nil)
		busy.take(pool, nil)
		busy.awaitLock("nightly", "", nil)
		busy.awaitPermit("", "gpu", 1, nil)
		dies.lock("dies", "", nil)
		w.Advance(testkit.Lease / 2)
		zombie.Die()
		dies.Die()
		w.Advance(testkit.Lease * 4 / 5)

		all, _ := w.nodes()
		require.Equal(w.T, inspect.NodeAlive, all["alpha"].State)
		require.Equal(w.T, []inspect.Claimed{{Kind: keyspace.Lock, Name: "nightly", Claims: 1}, {Kind: keyspace.Sem, Name: "gpu", Claims: 1}}, all["alpha"].Holds)
		require.Empty(w.T, all["alpha"].Waits)
		require.Less(w.T, time.Since(all["alpha"].Heard.At), testkit.Lease/2)
		require.Equal(w.T, []inspect.Claimed{{Kind: keyspace.Pool, Name: "proxies", Claims: 2}}, all["busy"].Holds)
		require.Equal(w.T, []inspect.Claimed{{Kind: keyspace.Lock, Name: "nightly", Claims: 1}, {Kind: keyspace.Sem, Name: "gpu", Claims: 1}}, all["busy"].Waits)
		require.Equal(w.T, inspect.NodeAlive, all["busy"].State)
		require.Equal(w.T, inspect.NodeOverdue, all["dies"].State)
		require.Equal(w.T, inspect.NodeUnknown, all["fixed"].State)
		require.True(w.T, all["fixed"].Heard.At.IsZero())
		require.Equal(w.T, inspect.NodeAlive, all["idle"].State)
		require.Equal(w.T, idle.ID(), all["idle"].ID)
		require.Equal(w.T, 3*time.Second, all["idle"].ZombieAfter)
		w.Advance(3 * time.Second)
		all, order := w.nodes()
		require.Equal(w.T, inspect.NodeZombie, all["zombie"].State)
		require.Equal(w.T, "zombie", order[0], "the dead that hold something come first")
		require.Equal(w.T, "fixed", order[len(order)-1])

		testkit.Must(alpha.Swarm().FlushNow(ctx)).In(w.T)
		all, order = w.nodes()
		require.Equal(w.T, inspect.NodeCondemned, all["zombie"].State)
		require.Equal(w.T, "zombie", order[len(order)-1], "nothing is left of it")
	})
}

func TestANodeIsToldOfADrainByItsIDAndByItsLabel(t *testing.T) {
	inWorld(t, func(w *world) {
		space := testkit.Must(keyspace.New("berth")).In(w.T)
		alpha, beta := w.process("host-1/a"), w.process("host-2/b")
		alpha.lock("nightly", "", nil)
		beta.lock("digest", "", nil)
		for _, to := range []berth.DrainTarget{{Label: "host-1/*"}, {Node: alpha.ID()}} {
			field := map[bool]string{true: notice.Node + to.Node, false: notice.Label + to.Label}[to.Node != ""]
			w.Do("HSET", space.Notice(), field, fmt.Sprintf("%d 0 0 drain tired", time.Now().UnixMilli()))
			all, _ := w.nodes()
			require.NotNil(w.T, all["host-1/a"].Drain)
			require.Equal(w.T, to, all["host-1/a"].Drain.DrainTarget)
			require.Equal(w.T, "tired", all["host-1/a"].Drain.Reason)
			require.Nil(w.T, all["host-2/b"].Drain)
			one := testkit.Must(w.look.NodeOf(ctx, alpha.ID(), testkit.Must(w.look.Claims(ctx, inspect.ClaimFilter{Node: alpha.ID()}, "", 0)).In(w.T))).In(w.T)
			require.Equal(w.T, all["host-1/a"], one)
			w.Do("DEL", space.Notice())
		}
		require.Empty(w.T, testkit.Must(w.look.NodeOf(ctx, "nobody", inspect.Page[inspect.Claim]{})).In(w.T).State)
	})
}

func TestANodeThatBeganAfterADrainOfItsLabelDoesNotDrain(t *testing.T) {
	inWorld(t, func(w *world) {
		space := testkit.Must(keyspace.New("berth")).In(w.T)
		old := w.process("host-1/old")
		old.lock("nightly", "", nil)
		w.Do("HSET", space.Notice(), notice.Label+"host-1/*", fmt.Sprintf("%d 0 0 drain", time.Now().UnixMilli()))
		w.Advance(notice.Heard + time.Millisecond)
		w.process("host-1/new").lock("digest", "", nil)
		old.lock("reports", "", nil) // as an owner may who enters again
		all, _ := w.nodes()
		require.NotNil(w.T, all["host-1/old"].Drain)
		require.Nil(w.T, all["host-1/new"].Drain)
	})
}

// TestARunThatEndedBeforeItsLockWasReadHasNotDied has the run end, and another one begin, between both readings.
func TestARunThatEndedBeforeItsLockWasReadHasNotDied(t *testing.T) {
	for _, again := range []bool{false, true} {
		inWorldOf(t, fmt.Sprint(again), func(w *world) {
			job := once.New(w.process("alpha").Node, "digest", once.Config{Every: time.Hour, Attempts: 2, Lease: testkit.Lease})
			begin := func() *once.Run {
				run, _, err := job.Begin(ctx)
				require.NoError(w.T, err)
				return run
			}
			run := begin()
			reads := w.Process()
			look := testkit.Must(inspect.New(reads.Redis, inspect.Config{})).In(w.T)
			asked := false
			reads.OnCommand(func(c link.Command) (f link.Fate) {
				if c.Name == "MGET" && !asked { // the lock's
					asked = true
					_ = run.End(ctx, context.Canceled)
					if again {
						run = begin()
					}
				}
				return f
			})
			n := testkit.Must(look.Runs(ctx, "digest")).In(w.T)
			_ = run.End(ctx, nil)
			require.True(w.T, asked)
			require.Equal(w.T, again, n.Runs.GoesOn)
			require.Equal(w.T, again, n.Runs.Outcome == string(once.Begun))
		})
	}
}
