package qlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// forget has the server lose the record of the swarm, and no lock: they lie elsewhere.
func (w *world) forget() {
	w.T.Helper()
	w.Do("DEL", swarmState, swarmProbes)
}

// endless is a lock without end.
func endless() *qlock.LockOptions { return &qlock.LockOptions{Lease: berth.Forever} }

// swarmOf is the ZombieAfter that the holds of a lock say of their nodes, the outermost
// first.
func (n *proc) swarmOf(name string) []time.Duration {
	n.w.T.Helper()
	info, err := n.look(context.Background(), name)
	require.NoError(n.w.T, err)
	limits := []time.Duration{}
	for _, h := range info.entries {
		limits = append(limits, h.ZombieAfter)
	}
	return limits
}

func TestALockWithoutEndOfADeadNodeEndsThoughTheSwarmHasForgottenIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member(func(cfg *node.Config) { cfg.Swarm.FlushEvery = 5 * time.Second })
		never := w.node(node.Config{Lease: time.Minute})
		l := a.take(endless())
		kept := never.hold("kept", endless())
		token := detach(t, a.hold("detached", endless()))
		next := b.queue(nil)
		w.Until(11 * time.Second) // it has flushed
		w.forget()
		a.Cut()
		never.Cut()
		w.Until(11*time.Second + zombie)
		require.ErrorIs(t, l.Err(), berth.ErrLost)
		require.True(t, next.Pending(), "its limit counts from when it was missed")
		next.Returned(time.Minute)
		require.NoError(t, next.Err)
		require.GreaterOrEqual(t, next.At, 12*time.Second+zombie, "it was missed after the next probe")
		require.Greater(t, next.Got.Fence(), l.Fence())
		c := w.member()
		require.Zero(t, c.flush(), "all names are read by one that begins")
		w.Advance(zombie)
		require.Zero(t, c.flush())
		require.NoError(t, kept.Err())
		entries, err := b.look(context.Background(), "kept")
		require.NoError(t, err)
		require.Equal(t, kept.ID(), entries.entries[0].ID, "its node was never in the swarm")
		require.NoError(t, b.resume(token).Release(context.Background()))
		never.Mend()
	})
}

func TestALockWithoutEndOfALiveNodeOutlastsAForgetfulSwarm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		short := func(cfg *node.Config) { cfg.Swarm.FlushEvery = 5 * time.Second }
		slow := func(cfg *node.Config) {
			cfg.Swarm.ProbeEvery, cfg.Swarm.ZombieAfter, cfg.Swarm.FlushEvery = 29*time.Second, time.Minute, -1
		}
		a, b := w.member(slow), w.member(short)
		l, node := a.take(endless()), a.ID()
		next := b.queue(nil)
		for range 6 {
			w.Advance(10 * time.Second)
			w.forget()
		}
		w.Advance(2 * time.Minute)
		require.NoError(t, l.Err())
		require.Equal(t, node, a.ID())
		require.True(t, next.Pending())
		require.NoError(t, l.Release(context.Background()))
		next.Granted(w.Now())
	})
}

// Whatever brings a hold without end to a node says whether that is in a swarm.
func TestAHoldWithoutEndSaysThatItsNodeIsInASwarm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.member(), w.node()
		beat := func() { w.Advance(lease/3 + ms) }
		yes, no := []time.Duration{zombie}, []time.Duration{0}
		l := a.take(endless())
		beat()
		require.Equal(t, yes, b.swarmOf(door))
		token := detach(t, l)
		l = b.resume(token)
		require.Equal(t, no, b.swarmOf(door), "its node is in none")
		beat()
		require.Equal(t, no, b.swarmOf(door))
		token = detach(t, l)
		l = a.resume(token)
		require.Equal(t, yes, b.swarmOf(door), "at once")

		require.NoError(t, b.Swarm().Start(ctx))
		other := b.hold("other", endless())
		beat()
		require.Equal(t, yes, a.swarmOf("other"))
		require.NoError(t, b.Swarm().Stop(ctx))
		require.Equal(t, no, a.swarmOf("other"), "before it is out")
		beat()
		require.Equal(t, no, a.swarmOf("other"))
		require.NoError(t, b.Swarm().Start(ctx))
		beat()
		require.Equal(t, yes, a.swarmOf("other"), "what was there before as well")
		require.NoError(t, other.Err())

		for name, opts := range map[string]*qlock.LockOptions{
			"fixed": hour(), "renews": nil, "bounded": {Lease: berth.Forever, MaxHold: time.Hour},
		} {
			a.hold(name, opts)
			beat()
			require.Equal(t, no, b.swarmOf(name), name)
		}
		a.hold("fixed for ever", &qlock.LockOptions{Lease: berth.Forever, NoRenew: true})
		beat()
		require.Equal(t, yes, b.swarmOf("fixed for ever"))
		require.NoError(t, l.Err())
	})
}

func TestEachEntryOfAHoldWithoutEndSaysItOfItsOwnNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.member()
		outer := a.takeFor("me", endless())
		w.Advance(lease)
		inner := b.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		w.Advance(lease)
		require.Equal(t, []time.Duration{0, zombie}, a.swarmOf(door))
		b.Cut()
		w.forget()
		c := w.member()
		require.Zero(t, c.flush())
		w.Advance(zombie)
		require.Equal(t, node.Flushed{Nodes: 1, Holds: 1}, c.flush())
		require.Error(t, inner.Err())
		require.NoError(t, outer.Err())
		require.Equal(t, []time.Duration{0}, a.swarmOf(door))
	})
}

// Nobody may take a node that has left for one that is lost.
func TestWhoHasLeftIsNotMissed(t *testing.T) {
	for name, fate := range map[string]link.Fate{"at once": link.Pass, "a call is lost": link.LoseRequest, "an answer is lost": link.LoseReply} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.member(), w.member()
				var held []*qlock.Lock
				for _, name := range []string{"one", "two", "three"} {
					held = append(held, a.hold(name, endless()))
				}
				w.Advance(lease)
				a.Once("lock_renew", fate)
				require.NoError(t, a.Swarm().Stop(context.Background()))
				a.Cut() // from then on
				synctest.Wait()
				w.forget()
				for range 3 {
					require.Zero(t, b.flush())
					w.Advance(zombie)
				}
				require.Equal(t, []string{b.ID()}, w.members(b))
				for _, l := range held {
					require.NoError(t, l.Err())
				}
				a.Mend()
			})
		})
	}
}

// It gave back what it could, and has left: nothing that stayed is its any more.
func TestALockThatACloseCouldNotReleaseIsMissed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.member(), w.member()
		a.take(endless())
		w.Advance(lease)
		a.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "lock_release" {
				return link.LoseRequest
			}
			return link.Pass
		})
		require.Error(t, a.Close(context.Background()))
		require.Equal(t, []string{b.ID()}, w.members(b))
		require.Zero(t, b.flush())
		w.Advance(zombie)
		require.Equal(t, node.Flushed{Nodes: 1, Holds: 1}, b.flush())
		b.free(door)
	})
}
