package allocator_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// scene is two nodes that hold three resources of a pool and one of another, and two claims
// that wait for the first pool.
type scene struct {
	n, m                *proc
	mine, hers, another *allocator.Allocation[string] // n's for "x", m's for "x", m's
	elsewhere           *allocator.Allocation[string] // n's for "x", of the pool "other"
	first, second       *wait                         // n's for "x", m's
}

func (w *world) scene() scene {
	w.T.Helper()
	ctx, x := context.Background(), berth.WithOwner(context.Background(), "x")
	w.add("a", "b", "c")
	h := scene{n: w.node(), m: w.node()}
	take := func(ctx context.Context, p *allocator.Pool[string]) *allocator.Allocation[string] {
		a, err := p.TryAllocate(ctx, nil)
		require.NoError(w.T, err)
		return a
	}
	h.mine, h.hers, h.another = take(x, h.n.Pool), take(x, h.m.Pool), take(ctx, h.m.Pool)
	other := allocator.New(h.n.node, "other", allocator.PoolConfig[string]{})
	require.NoError(w.T, change(other.Add(ctx, []string{"a"}, nil)))
	h.elsewhere = take(x, other)
	h.first, h.second = h.n.queueOn(x, nil), h.m.queueOn(ctx, nil)
	return h
}

func TestAnOperatorEndsWhatTheTargetMeansAndTheLineGetsIt(t *testing.T) {
	type ends struct{ mine, hers, another, elsewhere, first bool } // the second is never meant
	for name, c := range map[string]struct {
		target func(h scene) berth.Target
		ends   ends
		got    int // how many of those who wait are granted
	}{
		"a hold": {
			func(h scene) berth.Target { return berth.Target{Name: proxies, Claim: h.hers.ID()} }, ends{hers: true}, 1,
		},
		"a hold of an owner on a node": {
			func(h scene) berth.Target {
				return berth.Target{Name: proxies, Claim: h.hers.ID(), Owner: "x", Node: h.m.node.ID()}
			}, ends{hers: true}, 1,
		},
		"a wait": {
			func(h scene) berth.Target {
				waiting := h.n.w.Waiters()
				return berth.Target{Name: proxies, Claim: waiting[0].ID}
			}, ends{first: true}, 0,
		},
		"an owner's": {
			func(scene) berth.Target { return berth.Target{Name: proxies, Owner: "x"} }, ends{mine: true, hers: true, first: true}, 1,
		},
		"an owner's of all pools": {
			func(scene) berth.Target { return berth.Target{Owner: "x"} },
			ends{mine: true, hers: true, elsewhere: true, first: true},
			1,
		},
		"the hold of a claim that is its own owner": {
			func(h scene) berth.Target { return berth.Target{Owner: h.another.ID()} }, ends{another: true}, 1,
		},
		"a node's": {
			func(h scene) berth.Target { return berth.Target{Name: proxies, Node: h.n.node.ID()} },
			ends{mine: true, first: true},
			1,
		},
		"a node's of all pools": {
			func(h scene) berth.Target { return berth.Target{Node: h.n.node.ID()} },
			ends{mine: true, elsewhere: true, first: true},
			1,
		},
		"an owner's on a node": {
			func(h scene) berth.Target { return berth.Target{Owner: "x", Node: h.m.node.ID()} }, ends{hers: true}, 1,
		},
		"what is held of a pool": {
			func(scene) berth.Target { return berth.Target{Name: proxies} }, ends{mine: true, hers: true, another: true}, 2,
		},
		"all that is held": {
			func(scene) berth.Target { return berth.Target{All: true} },
			ends{mine: true, hers: true, another: true, elsewhere: true},
			2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				h, op := w.scene(), w.node()
				target := c.target(h)
				ended, err := op.ops().Release(context.Background(), target)
				require.NoError(t, err)
				synctest.Wait()

				over := func(a *allocator.Allocation[string]) bool {
					err := a.Renew(context.Background())
					require.True(t, err == nil || errors.Is(err, berth.ErrReleased), "%v", err)
					return err != nil
				}
				seen := ends{over(h.mine), over(h.hers), over(h.another), over(h.elsewhere), errorIs(h.first, berth.ErrNotAcquired)}
				require.Equal(t, c.ends, seen)
				count, granted := 0, 0
				for _, is := range []bool{seen.mine, seen.hers, seen.another, seen.elsewhere, seen.first} {
					if is {
						count++
					}
				}
				for _, wait := range []*wait{h.first, h.second} {
					if !wait.Pending() && wait.Err == nil {
						granted++
					}
				}
				require.Equal(t, count, ended)
				require.Equal(t, c.got, granted)
				require.Len(t, op.Told(observe.ForceReleased), count)
				w.inspect()
			})
		})
	}
}

// errorIs says whether a call has returned such an error.
func errorIs(q *wait, target error) bool { return !q.Pending() && errors.Is(q.Err, target) }

func TestATargetThatMeetsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, op := context.Background(), w.ops()
		for _, target := range []berth.Target{
			{Name: proxies}, {Name: proxies, Claim: "x.1"}, {Name: proxies, Owner: "x"}, {Name: proxies, Node: "x"},
		} {
			ended, err := op.Release(ctx, target)
			require.ErrorIs(t, err, berth.ErrNotHeld, target)
			require.Zero(t, ended)
		}
		for _, target := range []berth.Target{{All: true}, {Owner: "x"}, {Node: "x"}} {
			ended, err := op.Release(ctx, target)
			require.NoError(t, err, target)
			require.Zero(t, ended)
		}
		require.Empty(t, w.Keys(), "nothing is written")
	})
}

// What an operator ends rests as after every other end, whatever the target.
func TestWhatAnOperatorEndsRestsByItsCooldown(t *testing.T) {
	const cooldown = 3 * time.Second
	for name, target := range map[string]func(a *allocator.Allocation[string]) berth.Target{
		"claim": func(a *allocator.Allocation[string]) berth.Target {
			return berth.Target{Name: proxies, Claim: a.ID()}
		},
		"owner": func(*allocator.Allocation[string]) berth.Target { return berth.Target{Owner: "x"} },
		"node":  func(a *allocator.Allocation[string]) berth.Target { return berth.Target{Node: a.Node()} },
		"name":  func(*allocator.Allocation[string]) berth.Target { return berth.Target{Name: proxies} },
		"all":   func(*allocator.Allocation[string]) berth.Target { return berth.Target{All: true} },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: cooldown})
				a, err := n.TryAllocate(berth.WithOwner(context.Background(), "x"), nil)
				require.NoError(t, err)
				w.Advance(time.Second)
				ended, err := w.ops().Release(context.Background(), target(a))
				require.NoError(t, err)
				require.Equal(t, 1, ended)
				w.requireRests("a", w.Now()+cooldown, "")
			})
		})
	}
}

func TestASweepOfNoNameSweepsAllPools(t *testing.T) {
	for name, c := range map[string]struct {
		names []string
		want  int
	}{
		"all": {nil, 2}, "one": {[]string{proxies}, 1}, "both": {[]string{proxies, "other"}, 2}, "one that is not there": {[]string{"never"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				n := w.node()
				w.add("a")
				n.take(nil)
				n.named("other", 1, 1)
				n.Die()
				w.Advance(2 * lease)
				swept, err := w.ops().Sweep(ctx, c.names...)
				require.NoError(t, err)
				require.Equal(t, c.want, swept)
				again, err := w.ops().Sweep(ctx)
				require.NoError(t, err)
				require.Equal(t, 2-c.want, again, "the others are left")
			})
		})
	}
}
