package integration

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/harness"
)

// zombie is after how long a silent node is dead in these tests.
const zombie = safe

// inSwarm is how nodes of these tests take part in a swarm.
func inSwarm() node.SwarmConfig {
	return node.SwarmConfig{ProbeEvery: zombie / 8, ZombieAfter: zombie, FlushEvery: zombie / 4}
}

// watching is how a node takes part that must not be found dead: no pause of the machine lasts as long.
func watching() node.SwarmConfig {
	return node.SwarmConfig{ProbeEvery: zombie / 8, ZombieAfter: time.Minute, FlushEvery: zombie / 4}
}

// swarmed is a node in a process of its own that holds the door for an hour
// without renewing it, one in this process, and whoever waits here.
type swarmed struct {
	*world
	child *child
	hold  answer
	here  *user
	wait  *holding
}

func (w *world) swarmed() *swarmed {
	w.Helper()
	s := &swarmed{world: w, here: w.use(node.Config{Swarm: watching()})}
	require.NoError(w, s.here.Swarm().Start(w.Within(patience)))
	s.child, s.hold = w.member()
	s.wait = w.holdQueue(s.here, terms{}, 1)
	return s
}

// of is what the swarm has of a node.
func (s *swarmed) of(id string) (found node.SwarmNode, ok bool) {
	s.Helper()
	for n, err := range s.here.Swarm().Info(s.Within(patience)) {
		require.NoError(s, err)
		if n.Node == id {
			return n, true
		}
	}
	return found, false
}

// over checks that a handle has ended: it may hear of the flush before it looks at
// its own clock.
func (s *swarmed) over(a answer) {
	s.Helper()
	require.NotEmpty(s, a.Is)
	require.Subset(s, []string{"lost", "not held", "released"}, a.Is)
}

// A node that is stopped is found dead; what it holds is given to others. When it
// runs again it finds its handles ended before anything else, and goes on under
// another id.
func TestAStoppedNodeOfASwarmIsFlushed(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"err", "renew"} {
		t.Run("wakes by "+call, func(t *testing.T) {
			s := shared(t).of(keyspace.Lock).swarmed()
			s.child.stop()
			start := time.Now()
			l := s.wait.Wait(s.world)
			took := time.Since(start)
			t.Logf("its lock was given on %v after it had stopped; a node is dead after %v", took.Round(time.Millisecond), zombie)
			// One probe before, one flush after, and the calls.
			require.LessOrEqual(t, took, zombie+zombie/4+2*time.Second)
			require.Greater(t, l.Fence(), s.hold.Fence)
			former, ok := s.of(s.hold.Node)
			require.True(t, ok)
			require.True(t, former.Condemned)
			granted := s.look(door).records[l.ID()].Granted
			require.GreaterOrEqual(t, granted.Sub(former.ProbedAt), zombie, "it was flushed while it still had its time")

			first := s.child.send(order{Do: call, Name: door})
			s.child.signal(syscall.SIGCONT)
			s.over(s.child.hear(first))
			s.over(s.child.ask(order{Do: "err", Name: door}))
			s.Await("it has another id", func() bool { return s.child.ask(order{Do: "node"}).Node != s.hold.Node })
			next := s.child.send(order{Do: "acquire", Name: door, Lease: time.Hour, NoRenew: true})
			s.Await("it stands in line", func() bool { return s.look(door).waiting() == 1 })
			require.NoError(t, l.Err(), "it has touched what another holds")
			s.release(l)
			again := s.child.hear(next)
			require.Empty(t, again.Err)
			require.NotEqual(t, s.hold.Node, again.Node)
			s.Await("it probes under it", func() bool {
				now, ok := s.of(again.Node)
				return ok && !now.Zombie && !now.Condemned
			})
			former, ok = s.of(s.hold.Node)
			require.True(t, ok && former.Condemned, "the former id is remembered")
			require.Empty(t, s.child.ask(order{Do: "release", Name: door}).Err)
		})
	}
}

// A node that cannot probe ends its handles before anybody may flush them.
func TestANodeThatCannotProbeIsOutBeforeItIsFlushed(t *testing.T) {
	w := shared(t).of(keyspace.Lock)
	proxy := harness.Proxy(t, w.server)
	cut := w.useOn(proxy.Client(t), node.Config{Swarm: inSwarm(), CallTimeout: zombie})
	here := w.use(node.Config{Swarm: watching()})
	ctx := w.Within(patience)
	require.NoError(t, cut.Swarm().Start(ctx))
	require.NoError(t, here.Swarm().Start(ctx))
	former, id := w.hold(cut, terms{Lease: time.Hour, NoRenew: true}), cut.ID()
	wait := w.holdQueue(here, terms{}, 1)
	proxy.BlackHole()
	l := wait.Wait(w)
	require.ErrorIs(t, former.Err(), berth.ErrLost, "two hold")
	require.NotEqual(t, id, cut.ID())
	w.release(l)
	proxy.Heal(t)
	w.release(w.hold(cut, terms{})) // under the new id
}
