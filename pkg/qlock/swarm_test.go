package qlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

const (
	// zombie is when a node that has confirmed a probe at 0, and none since, is dead
	// to others, and horizon when it ends what it holds: 2 ms and 1 % before.
	zombie, horizon = 15 * time.Second, zombie - 152*ms

	swarmState, swarmProbes = "berth:swarm:{nodes}:state", "berth:swarm:{nodes}:probes"
)

// hour is a lock that only a swarm ends when its node has died.
func hour() *qlock.LockOptions { return &qlock.LockOptions{Lease: time.Hour, NoRenew: true} }

// member is a process in the swarm that never flushes by itself.
func (w *world) member(change ...func(*node.Config)) *proc {
	w.T.Helper()
	cfg := node.Config{Swarm: node.SwarmConfig{FlushEvery: -1}}
	for _, f := range change {
		f(&cfg)
	}
	n := w.node(cfg)
	require.NoError(w.T, n.Swarm().Start(context.Background()))
	return n
}

// watched hands every event to f.
func watched(f func(observe.Event)) func(*node.Config) {
	return func(cfg *node.Config) { cfg.Observer = observe.Func(f) }
}

func (n *proc) flush() node.Flushed {
	n.w.T.Helper()
	done, err := n.Swarm().FlushNow(context.Background())
	require.NoError(n.w.T, err)
	return done
}

// members are the nodes of the swarm that have not been found dead.
func (w *world) members(asks *proc) []string {
	w.T.Helper()
	var ids []string
	for _, n := range testkit.Collect(w.T, asks.Swarm().Info(context.Background())) {
		if !n.Condemned {
			ids = append(ids, n.Node)
		}
	}
	return ids
}

// condemn has the node found dead although it is well, and replaced at once.
func (n *proc) condemn() {
	n.w.T.Helper()
	former := n.findDead()
	require.NoError(n.w.T, n.Swarm().ProbeNow(context.Background()))
	synctest.Wait()
	require.NotEqual(n.w.T, former, n.ID())
}

// findDead has the node found dead although it is well; it hears of it with its
// next probe.
func (n *proc) findDead() (id string) {
	n.w.T.Helper()
	id = n.ID()
	n.w.Do("ZADD", swarmProbes, "XX", fmt.Sprint(time.Now().UnixMilli()), "p:"+id) // as if its time were over
	r := n.w.CallOn([]string{swarmState, swarmProbes}, "swarm_condemn", id, "86400000")
	require.Equal(n.w.T, "condemned", r.Status())
	return id
}

func TestAReplacementIsToldOnceWithWhatItEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.member()
		former := a.ID()
		for i := range 3 {
			a.hold(fmt.Sprint("held ", i), hour())
		}
		detach(t, a.hold("detached", hour()))
		require.NoError(t, a.hold("released", hour()).Release(context.Background()))
		waits := a.queue(nil)
		require.NoError(t, waits.Granted(0).Release(context.Background()))
		a.Cut()
		w.Until(time.Minute)
		events := a.Told(observe.NodeReplaced)
		require.Len(t, events, 1)
		require.Equal(t, []any{a.ID(), former, 3}, []any{events[0].Node, events[0].Detail, events[0].Count})
		require.Equal(t, "node", events[0].Primitive)
		lost := a.Told(observe.Lost)
		require.Len(t, lost, 3)
		for _, e := range lost {
			require.Equal(t, former, e.Node)
			require.ErrorIs(t, e.Err, berth.ErrLost)
		}
	})
}

func TestACloseDuringAReplacementEndsBoth(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begins, closed := make(chan struct{}), make(chan error, 1)
		begin := sync.OnceFunc(func() { close(begins) })
		a := w.member(watched(func(e observe.Event) {
			if e.Kind == observe.Lost {
				begin()
			}
		}))
		b := w.member()
		l := a.hold("mine", hour())
		b.take(nil)
		waits := a.queue(nil)
		go func() {
			<-begins
			closed <- a.Close(context.Background())
		}()
		a.findDead()
		w.Until(2 * time.Second)
		require.NoError(t, <-closed)
		require.ErrorIs(t, l.Err(), berth.ErrLost)
		require.ErrorIs(t, waits.Refused(2*time.Second, berth.ReasonClosed), berth.ErrClosed)
		a.free("mine")
		require.Equal(t, []string{b.ID()}, w.members(b))
	})
}

func TestACloseTakesTheNodeOutOfTheSwarm(t *testing.T) {
	each(t, map[string]bool{"in time": false, "its context has ended": true}, func(t *testing.T, w *world, ended bool) {
		a, b := w.member(), w.member()
		node, l := a.ID(), a.take(hour())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if ended {
			cancel()
		}
		w.Until(3 * time.Second)
		require.NoError(t, a.Close(ctx))
		require.Equal(t, 3*time.Second, w.Now())
		require.Error(t, l.Err())
		require.Equal(t, []string{b.ID()}, w.members(b))
		require.Equal(t, node, a.ID())
		require.Empty(t, a.Told(observe.NodeReplaced))
		w.RequireIdle()
		require.NoError(t, a.Close(context.Background()), "again")
		require.Error(t, a.Swarm().ProbeNow(context.Background()))
	})
}

func TestACloseOfACutNodeReturns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.member()
		a.take(hour())
		a.Cut()
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		require.Error(t, a.Close(gone))
		require.LessOrEqual(t, w.Now(), 4*time.Second, "twice CleanupTimeout")
		b := w.member()
		began := w.Now()
		b.Cut()
		require.Error(t, b.Close(context.Background()))
		require.LessOrEqual(t, w.Now(), began+horizon)
	})
}

func TestASwarmThatIsAutomaticStartsWithItsNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		auto := node.Config{Swarm: node.SwarmConfig{Auto: true}}
		n := w.node(auto)
		synctest.Wait()
		require.True(t, n.Swarm().Status().Running)
		require.Equal(t, []string{n.ID()}, w.members(n))
		require.NoError(t, n.Swarm().Start(context.Background()), "it runs")
		n.Shut()
		require.False(t, n.Swarm().Status().Running)

		w.Do("DEL", swarmState, swarmProbes)
		w.Do("SET", swarmProbes, "no swarm")
		n = w.node(auto)
		w.Advance(5 * time.Second)
		require.False(t, n.Swarm().Status().Running)
		require.Error(t, n.Swarm().Status().Err)
		w.Do("DEL", swarmState, swarmProbes)
		w.Advance(2 * time.Second)
		require.True(t, n.Swarm().Status().Running)

		w.Do("SET", swarmProbes, "no swarm")
		n = w.node(auto)
		w.Advance(time.Second)
		began := w.Now()
		n.Shut() // while it still tries
		require.Equal(t, began, w.Now())
	})
}

func TestACloseDuringAStartEndsIt(t *testing.T) {
	each(t, map[string]link.Fate{
		"the probe is slow": link.Slow(2 * time.Second), "the probe has no reply": link.LoseReply,
	}, func(t *testing.T, w *world, fate link.Fate) {
		n := w.node()
		n.connect()
		began := w.Now()
		n.meets("swarm_probe", fate)
		started := make(chan error, 1)
		go func() { started <- n.Swarm().Start(ctx) }()
		synctest.Wait()
		require.Empty(t, started)
		n.Shut()
		require.ErrorIs(t, <-started, berth.ErrClosed)
		require.Less(t, w.Now()-began, 3*time.Second)
		require.ErrorIs(t, n.Swarm().ProbeNow(ctx), berth.ErrClosed)
		w.Advance(3 * time.Second)
		members, err := w.Do("ZRANGE", swarmProbes, "0", "-1").AsStrSlice()
		require.NoError(t, err)
		for _, member := range members {
			require.Regexp(t, "^t:", member, "it has left")
		}
		n.Reset()
		require.ErrorIs(t, n.Swarm().Start(ctx), berth.ErrClosed, "nor does it start again")
		require.False(t, n.Swarm().Status().Running)
		require.Zero(t, n.Count("swarm_probe"))
	})
}
