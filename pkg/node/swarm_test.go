package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	// zombie is when a node that has confirmed a probe at 0, and none since, is dead to others, and horizon when it ends what it
	// holds: 2 ms and 1 % before.
	zombie, horizon = 15 * time.Second, 15*time.Second - 152*ms
	// flushed is when a swarm has flushed what a node had that was dead at zombie: with the next flush, each 10 s and a tenth.
	flushed = zombie + 11*time.Second + time.Second
)

// member starts the process's part in the swarm.
func (p *proc) member() *proc {
	p.w.T.Helper()
	require.NoError(p.w.T, p.n.Swarm().Start(ctx))
	return p
}

// What a dead node holds without end has no other end than a flush. So whoever flushes goes through all kinds, those too that it has
// made nothing of.
func TestANodeOfLocksFlushesWhatADeadNodeHasOfAllKinds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, c := w.process(node.Config{}, door).member(), w.process(node.Config{})
		a.take(door, terms{Lease: berth.Forever})
		b := w.bare(node.Config{}).member()
		qlock.New(b.n, qlock.Config{})
		waits := c.queue(door, terms{})
		a.Die()
		w.Until(zombie)
		requirePending(t, waits)
		w.Until(flushed)
		for _, kind := range kinds {
			require.False(t, waits[kind].Pending(), kind)
			require.NoError(t, waits[kind].Err, kind)
		}
	})
}

// A node that the swarm may have found dead believes in nothing that others can get: neither in what renews nor in what is held for a
// fixed time, whatever kind it is of. What is detached is nobody's, and outlasts it.
func TestAReplacedNodeLosesWhatOthersCanGet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.process(node.Config{}).member(), w.process(node.Config{}).member()
		former := a.n.ID()
		a.fill(door, "renewed")
		fixed := a.take(door, terms{Lease: time.Hour, NoRenew: true})
		renewed := a.take("renewed", terms{})
		detached := must(a.sem("detached").Acquire(ctx, &semaphore.AcquireOptions{Lease: time.Hour}))(t)
		token := must(detached.Detach(ctx))(t)
		waits := b.queue(door, terms{})
		a.Cut()
		w.Until(horizon - 5*time.Second)
		for _, kind := range kinds {
			require.NoError(t, fixed[kind].Err(), kind)
		}
		w.Until(horizon)
		require.NotEqual(t, former, a.n.ID())
		for _, kind := range kinds {
			require.ErrorIs(t, fixed[kind].Err(), berth.ErrLost, kind)
			require.Error(t, renewed[kind].Err(), kind) // by its lease
			require.True(t, waits[kind].Pending(), "before others get it: %s", kind)
		}
		w.Until(flushed)
		for _, kind := range kinds {
			require.False(t, waits[kind].Pending(), kind)
			require.NoError(t, waits[kind].Err, kind)
		}
		a.Mend()
		w.Advance(time.Second)
		require.Equal(t, a.n.ID(), must(a.sem("detached").Resume(ctx, token))(t).Node())
		for kind, h := range a.take("renewed", terms{}) {
			require.Equal(t, a.n.ID(), h.Node(), kind)
		}
	})
}

// An operator's call, and a flush, need a kind that nothing may have been made of yet. What they are given of it has no way to ask for
// anything: the first that is made of the kind must not be left with that.
func TestAnOperatorsCallBeforeTheFirstOfAKind(t *testing.T) {
	inEach(t, map[string]func(p *proc) error{
		"a pause of all names": func(p *proc) error {
			return testkit.Second(p.n.Operator().PauseAll(ctx, time.Second, ""))
		},
		"the end of one": func(p *proc) error { return testkit.Second(p.n.Operator().UnpauseAll(ctx)) },
		"a drain": func(p *proc) error {
			return testkit.Second(p.n.Operator().Drain(ctx, berth.DrainTarget{Label: "other"}, &berth.DrainOptions{Force: true, ForceAfter: time.Second}))
		},
		"a flush": func(p *proc) error {
			done, err := p.n.Swarm().FlushNow(ctx)
			if done.Nodes == 0 {
				return errors.Join(err, errors.New("nobody was dead"))
			}
			return err
		},
	}, func(t *testing.T, w *world, call func(p *proc) error) {
		other, p := w.process(node.Config{Label: "other"}, door).member(), w.bare(node.Config{})
		held := other.take(door, terms{Lease: berth.Forever})
		other.queue(door, terms{}) // so that operators have something to do of each kind
		other.Die()
		w.Until(zombie)
		require.NoError(t, call(p))
		require.Error(t, held["permit"].Err())
		p.faces()
		p.fill("own")
		for _, h := range p.take("own", terms{}) {
			require.NoError(t, h.Release(ctx))
		}
	})
}

// findDead has a node found dead although it is well; it hears of it with its next probe.
func (p *proc) findDead(by *proc) {
	p.w.T.Helper()
	p.w.Do("ZADD", "berth:swarm:{nodes}:probes", "XX", fmt.Sprint(time.Now().UnixMilli()), "p:"+p.n.ID()) // as if its time were over
	require.Equal(p.w.T, 1, must(by.n.Swarm().FlushNow(ctx))(p.w.T).Nodes)
}

// What is made of a node is made of each node that the process becomes, also where that happens in the same moment: a node that comes
// just then must not be left without it.
func TestFacesAreMadeWhileTheSwarmReplacesTheNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		quiet := node.Config{Swarm: node.SwarmConfig{FlushEvery: -1}}
		by := w.process(quiet).member()
		for round := range 6 {
			p := w.bare(quiet).member()
			pool := fmt.Sprint("pool", round)
			by.fill(pool)
			told := make(chan struct{}) // closed when the answer is on its way that has the node replaced
			var once sync.Once
			p.OnCommand(func(c link.Command) link.Fate {
				if c.Name != "swarm_probe" {
					return link.Pass
				}
				return link.OnceRun(func() link.Fate {
					once.Do(func() { close(told) })
					return link.Pass
				})
			})
			ids := map[string]bool{p.n.ID(): true}
			var all sync.WaitGroup
			all.Go(func() {
				for range 5 {
					p.findDead(by)
					_ = p.n.Swarm().ProbeNow(ctx) // its error says that the node was dead
					ids[p.n.ID()] = true
					if _, err := p.n.Swarm().FlushNow(ctx); err != nil { // which needs all kinds, made or not
						t.Error(err)
					}
				}
			})
			// Of each kind the first is made a bit sooner or later than in other rounds.
			makes := func(kind int, do func() error) {
				all.Go(func() {
					<-told
					if later := time.Duration((round+kind)%3) * 300 * time.Microsecond; later > 0 {
						<-time.After(later)
					}
					if err := do(); err != nil {
						t.Error(err)
					}
				})
			}
			for i := range 6 {
				makes(0, func() error {
					locks := qlock.New(p.n, qlock.Config{})
					return uses(func() (berth.Hold, error) { return hold(locks.Lock(ctx, fmt.Sprint(door, i), nil)) })
				})
				makes(1, func() error {
					s := semaphore.New(p.n, door, 2, semaphore.Config{})
					return uses(func() (berth.Hold, error) { return hold(s.Acquire(ctx, nil)) })
				})
			}
			makes(2, func() error { // a node has a pool once
				return uses(func() (berth.Hold, error) { return hold(p.of(pool).Allocate(ctx, nil)) })
			})
			all.Wait()
			require.Len(t, ids, 6, "it was replaced each time")
			p.locks = qlock.New(p.n, qlock.Config{})
			for kind, h := range p.take(pool, terms{}) {
				require.Equal(t, p.n.ID(), h.Node(), kind)
			}
			p.Shut()
		}
	})
}

// uses takes something a few times, and gives it back, which a replaced node may have lost meanwhile.
func uses(take func() (berth.Hold, error)) error {
	for range 4 {
		h, err := take()
		if err != nil {
			return err
		}
		switch err := h.Release(ctx); {
		case err == nil, errors.Is(err, berth.ErrLost), errors.Is(err, berth.ErrNotHeld), errors.Is(err, berth.ErrReleased):
		default:
			return err
		}
	}
	return nil
}

// A Shared pool keeps nothing of what it hands out: there is nothing that others could be given.
func TestAReplacedNodeKeepsWhatASharedPoolHasHandedOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.process(node.Config{}).member()
		must(a.with("shared", allocator.Config[string]{Shared: true}).Add(ctx, []string{"r"}, nil))(t)
		var handles []*allocator.Allocation[string]
		for range 3 {
			handles = append(handles, must(a.of("shared").Allocate(ctx, nil))(t))
		}
		wanted := handles[0].Wanted()
		for range 2 { // the second time the node that they are of has been replaced long ago
			former := a.n.ID()
			a.Cut()
			w.Advance(time.Minute)
			require.NotEqual(t, former, a.n.ID())
			a.Mend()
			w.Advance(time.Minute)
		}
		for _, h := range handles {
			require.NoError(t, h.Err())
			require.NoError(t, h.Context().Err())
		}
		require.NoError(t, handles[2].Release(ctx))
		require.ErrorIs(t, handles[2].Err(), berth.ErrReleased)
		select {
		case <-wanted:
			t.Fatal("nobody wants it")
		default:
		}
		w.Notice("n:"+a.n.ID(), 0, "drain")
		w.Advance(6 * time.Second)
		<-wanted
		<-a.of("shared").Wanted(handles[0].Context())
		require.NoError(t, handles[0].Err())
		require.NoError(t, a.n.Close(ctx))
		require.ErrorIs(t, handles[0].Err(), berth.ErrClosed)
		require.ErrorIs(t, context.Cause(handles[1].Context()), berth.ErrClosed)
	})
}
