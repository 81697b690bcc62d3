package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// ofKeys are the kinds by the words that the tests have for them.
var ofKeys = map[string]keyspace.Kind{"lock": keyspace.Lock, "permit": keyspace.Sem, "allocation": keyspace.Pool}

// A lock and a semaphore may be called the same, and have nothing to do with each other. So who names one says of which kind it is.
func TestANameIsReleasedOfItsKindAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, ops := w.process(node.Config{}, door), w.bare(node.Config{}).n.Operator()
		held := a.take(door, terms{})
		for _, target := range []berth.Target{{Name: door}, {Name: door, Claim: held["lock"].ID()}, {Kind: "locks", Name: door}, {Kind: keyspace.Lock}, {}} {
			require.ErrorIs(t, testkit.Second(ops.Release(ctx, target)), berth.ErrInvalidConfig, "%+v", target)
			require.ErrorIs(t, testkit.Second(ops.Want(ctx, target)), berth.ErrInvalidConfig, "%+v", target)
		}
		for i, kind := range kinds {
			require.Equal(t, 1, must(ops.Release(ctx, berth.Target{Kind: ofKeys[kind], Name: door}))(t))
			w.Advance(5 * time.Second) // a node that has never waited hears with its next heartbeat
			require.ErrorIs(t, held[kind].Err(), berth.ErrReleased, kind)
			for _, other := range kinds[i+1:] {
				require.NoError(t, held[other].Err(), other)
			}
			_, err := ops.Release(ctx, berth.Target{Kind: ofKeys[kind], Name: door})
			require.ErrorIs(t, err, berth.ErrNotHeld)
		}
	})
}

// Without a kind a node, an owner and all mean what they have of all kinds; with one, of that alone.
func TestATargetWithoutAKindIsOfAllKinds(t *testing.T) {
	inEach(t, map[string]func(p *proc) berth.Target{
		"a node":   func(p *proc) berth.Target { return berth.Target{Node: p.n.ID()} },
		"an owner": func(*proc) berth.Target { return berth.Target{Owner: "o"} },
		"all":      func(*proc) berth.Target { return berth.Target{All: true} },
	}, func(t *testing.T, w *world, target func(p *proc) berth.Target) {
		a, b := w.process(node.Config{}, door), w.bare(node.Config{})
		take := func() map[string]berth.Hold {
			held := make(map[string]berth.Hold)
			for _, kind := range kinds {
				held[kind] = must(a.ask(berth.WithOwner(ctx, "o"), kind, door, terms{}))(t)
			}
			return held
		}
		held := take()
		of := target(a)
		require.Equal(t, len(kinds), must(b.n.Operator().Want(ctx, of))(t))
		of.Kind = keyspace.Sem
		require.Equal(t, 1, must(b.n.Operator().Release(ctx, of))(t))
		w.Advance(5 * time.Second) // a node that has never waited hears with its next heartbeat
		require.ErrorIs(t, held["permit"].Err(), berth.ErrReleased)
		require.NoError(t, held["lock"].Err())
		require.NoError(t, held["allocation"].Err())
		of.Kind = ""
		require.Equal(t, 2, must(b.n.Operator().Release(ctx, of))(t))
		take()
	})
}

// One pause and one sweep are of one name of one kind; a sweep without names is of a kind, or of all.
func TestOneNameIsPausedAndSweptOfItsKind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, ops := w.process(node.Config{}, door, "other"), w.bare(node.Config{}).n.Operator()
		for i, kind := range kinds {
			require.NoError(t, ops.Pause(ctx, ofKeys[kind], door, time.Hour, "move"))
			a.requirePaused(kinds[:i+1]...)
		}
		for i, kind := range kinds {
			require.NoError(t, ops.Unpause(ctx, ofKeys[kind], door))
			a.requirePaused(kinds[i+1:]...)
		}
		a.take(door, terms{Lease: time.Second, NoRenew: true})
		a.take("other", terms{Lease: time.Second, NoRenew: true}) // thin names, of which nothing is left
		a.Die()
		w.Advance(2 * time.Second)
		for _, bad := range []error{
			ops.Pause(ctx, "", door, time.Hour, ""), ops.Unpause(ctx, keyspace.Once, door),
			testkit.Second(ops.Sweep(ctx, keyspace.Notice)),
		} {
			require.ErrorIs(t, bad, berth.ErrInvalidConfig)
		}
		require.Equal(t, 1, must(ops.Sweep(ctx, keyspace.Sem, door))(t))
		require.Equal(t, 1, must(ops.Sweep(ctx, keyspace.Lock))(t))
		require.Equal(t, 1, must(ops.Sweep(ctx, "", door))(t), "an allocation")
		require.Equal(t, 1, must(ops.Sweep(ctx, ""))(t), "the other one")
	})
}

// A program that looks at its node when it starts hears of what it has made of it with options that cannot be, whichever kind that is.
func TestCheckSaysWhatIsWrongWithWhatWasMade(t *testing.T) {
	for field, mistake := range map[string]func(n *node.Node){
		"Defaults.Lease": func(n *node.Node) { qlock.New(n, qlock.Config{Defaults: qlock.LockOptions{Lease: 1}}) },
		"capacity":       func(n *node.Node) { semaphore.New(n, door, 0, semaphore.Config{}) },
		"Expiry":         func(n *node.Node) { allocator.New(n, door, allocator.Config[string]{Expiry: time.Hour}) },
		"Every":          func(n *node.Node) { once.New(n, door, once.Config{}) },
	} {
		t.Run(field, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.process(node.Config{})
				must(p.n.Check(ctx))(t)
				semaphore.New(p.n, "", 1, semaphore.Config{}) // as a stranger may have it: not to be told for good
				must(p.n.Check(ctx))(t)
				mistake(p.n)
				semaphore.New(p.n, door, -1, semaphore.Config{}) // a second one
				p.Fresh()
				_, err := p.n.Check(ctx)
				var bad *berth.ConfigError
				require.ErrorAs(t, err, &bad)
				require.Equal(t, field, bad.Field)
				require.Empty(t, p.Scripts())
				h := must(p.try("lock", door))(t) // what is right goes on
				require.NoError(t, h.Release(ctx))
			})
		})
	}
}

// Who says something of all kinds to a server that does not answer hears so when he would of one kind.
func TestACallForAllKindsWaitsForADeadServerOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(node.Config{})
		p.Cut()
		for _, call := range []func() error{
			func() error { return testkit.Second(p.n.Operator().Release(ctx, berth.Target{All: true})) },
			func() error { return testkit.Second(p.n.Operator().Want(ctx, berth.Target{Owner: "o"})) },
			func() error { return testkit.Second(p.n.Operator().Sweep(ctx, "")) },
		} {
			began := w.Now()
			require.ErrorIs(t, call(), berth.ErrUnavailable)
			require.Less(t, w.Now()-began, 15*time.Second)
		}
	})
}

// A user who may run no script is found out also where nothing was made of the node yet.
func TestACheckOfABareNodeRunsAScript(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.bare(node.Config{})
		must(p.n.Check(ctx))(t)
		require.Equal(t, map[string]int{"lock_sweep": 1}, p.Scripts())
	})
}
