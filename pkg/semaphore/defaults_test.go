package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// The call decides, then the semaphore.
func TestALimitIsSaidOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		s := w.with(semaphore.Config{Defaults: semaphore.AcquireOptions{
			Weight: 2, Priority: 3, Lease: time.Second, MaxHold: 6 * time.Second, MaxWait: 2 * time.Second,
			Meta: map[string]string{"from": "defaults"}, NoRenew: true,
		}}).gpu(100)
		held := func(opts *semaphore.AcquireOptions) berth.Holder {
			p, err := s.Acquire(ctx, opts)
			require.NoError(t, err)
			all := w.Holders()
			require.Len(t, all, 1)
			require.NoError(t, p.Release(ctx))
			return all[0]
		}

		h := held(nil)
		require.Equal(t, 2, h.Weight)
		require.Equal(t, time.Second, h.Lease)
		require.Equal(t, 6*time.Second, h.MaxHold)
		require.Equal(t, map[string]string{"from": "defaults"}, h.Meta)
		require.True(t, h.NoRenew)

		h = held(&semaphore.AcquireOptions{Weight: 1, MaxHold: 4 * time.Second, Meta: map[string]string{}})
		require.Equal(t, 1, h.Weight)
		require.Equal(t, 4*time.Second, h.MaxHold)
		require.Empty(t, h.Meta)
		require.Equal(t, time.Second, h.Lease)

		require.Zero(t, held(&semaphore.AcquireOptions{MaxHold: berth.Forever}).MaxHold, "a call can say none")

		h = held(&semaphore.AcquireOptions{NoDefaults: true})
		require.Equal(t, 1, h.Weight)
		require.Zero(t, h.MaxHold)
		require.False(t, h.NoRenew)
		require.Equal(t, lease, h.Lease)
	})
}

func TestTheDefaultWaitEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		s := w.with(semaphore.Config{Defaults: semaphore.AcquireOptions{MaxWait: time.Second}}).gpu(1)
		p, err := s.Acquire(ctx, nil)
		require.NoError(t, err)
		waited := func(opts *semaphore.AcquireOptions) time.Duration {
			start := time.Now()
			_, err := s.Acquire(ctx, opts)
			require.ErrorIs(t, err, berth.ErrBusy)
			return time.Since(start)
		}
		require.Equal(t, time.Second, waited(nil))
		require.Equal(t, 3*time.Second, waited(&semaphore.AcquireOptions{MaxWait: 3 * time.Second}))
		_, err = s.TryAcquire(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)

		time.AfterFunc(time.Minute, func() { _ = p.Release(ctx) })
		start := time.Now()
		next, err := s.Acquire(ctx, &semaphore.AcquireOptions{MaxWait: berth.Forever})
		require.NoError(t, err, "a call can say that it waits without end")
		require.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, next.Release(ctx))
	})
}

// A handle tells where it is held, since when, and for how long.
func TestAPermitTellsItsGrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		start := time.Now()
		p := n.take(1, &semaphore.AcquireOptions{Lease: 7 * time.Second})
		time.Sleep(time.Second)
		require.Equal(t, n.ID(), p.Node())
		require.Equal(t, 7*time.Second, p.Lease())
		require.Equal(t, start, p.Granted().Round(0))
		token, err := p.Detach(ctx)
		require.NoError(t, err)
		other := w.node()
		again, err := other.Resume(ctx, token)
		require.NoError(t, err)
		require.Equal(t, other.ID(), again.Node())
		require.Equal(t, time.Now(), again.Granted())
		require.NoError(t, again.Release(ctx))
		require.Equal(t, berth.Forever, other.take(1, &semaphore.AcquireOptions{Lease: berth.Forever}).Lease())
	})
}

// What an operator ends, and what stays.
func TestAnOperatorEndsWhatTheTargetMeans(t *testing.T) {
	for name, c := range map[string]struct {
		target func(a, b *proc) berth.Target
		ended  int
		holds  []string // "<node> <owner>" of those who hold afterwards
		waits  []string
	}{
		"a name, and who waits gets it": {
			func(*proc, *proc) berth.Target { return berth.Target{Kind: keyspace.Sem, Name: gpu} }, 2, []string{"b one"}, []string{},
		},
		"a node": {
			func(a, _ *proc) berth.Target { return berth.Target{Node: a.ID()} }, 1, []string{"b one", "b two"}, []string{},
		},
		"an owner, holds and waits": {
			func(*proc, *proc) berth.Target { return berth.Target{Owner: "one"} }, 2, []string{"b two"}, []string{},
		},
		"an owner on a node": {
			func(_, b *proc) berth.Target { return berth.Target{Owner: "one", Node: b.ID()} }, 1, []string{"a one", "b two"}, []string{},
		},
		"another name": {
			func(*proc, *proc) berth.Target { return berth.Target{Kind: keyspace.Sem, Name: "other", Owner: "one"} }, 0,
			[]string{"a one", "b two"},
			[]string{"b one"},
		},
		"everything": {
			func(*proc, *proc) berth.Target { return berth.Target{All: true} }, 2, []string{"b one"}, []string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				a, b, operator := w.node(), w.node(), w.node()
				names := map[string]string{a.ID(): "a ", b.ID(): "b "}
				for owner, n := range map[string]*proc{"one": a, "two": b} {
					_, err := n.gpu(2).Acquire(berth.WithOwner(ctx, owner), nil)
					require.NoError(t, err)
				}
				waiting, cancel := context.WithCancel(berth.WithOwner(ctx, "one"))
				defer cancel()
				returned := make(chan struct{})
				go func() {
					defer close(returned)
					_, _ = b.gpu(2).Acquire(waiting, nil)
				}()
				time.Sleep(time.Second)

				ops := operator.Operator()
				ended, err := ops.Release(ctx, c.target(a, b))
				if c.ended == 0 {
					require.ErrorIs(t, err, berth.ErrNotHeld)
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, c.ended, ended)
				holds, waits := []string{}, []string{}
				for _, h := range w.Holders() {
					holds = append(holds, names[h.Node]+h.Owner)
				}
				for _, h := range w.Waiters() {
					waits = append(waits, names[h.Node]+h.Owner)
				}
				require.ElementsMatch(t, c.holds, holds)
				require.ElementsMatch(t, c.waits, waits)
				cancel()
				<-returned
			})
		})
	}
}

func TestAnOperatorSweepsWhatHasExpired(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, other := w.node(), w.node()
		n.take(2, nil)
		n.Die()
		time.Sleep(lease + time.Second)
		ops := other.Operator()
		look, err := w.Look()
		require.NoError(t, err)
		require.Equal(t, 1, look.Expired)
		swept, err := ops.Sweep(ctx, keyspace.Sem)
		require.NoError(t, err)
		require.Equal(t, 1, swept)
		swept, err = ops.Sweep(ctx, keyspace.Sem, gpu, "none")
		require.NoError(t, err)
		require.Zero(t, swept)
	})
}

func TestTheMapsOfTheDefaultsAreTheSemaphoresOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		defaults := semaphore.AcquireOptions{Meta: map[string]string{"job": "1"}, Attrs: map[string]any{"job": "1"}}
		n := w.with(semaphore.Config{Defaults: defaults})
		s := n.gpu(1)
		defaults.Meta["job"], defaults.Attrs["job"] = "2", "2"
		p, err := s.Acquire(context.Background(), nil)
		require.NoError(t, err)
		for _, h := range w.Holders() {
			require.Equal(t, map[string]string{"job": "1"}, h.Meta)
		}
		require.NoError(t, p.Release(context.Background()))
		require.Equal(t, map[string]any{"job": "1"}, n.Told(observe.Granted)[0].Attrs)
	})
}
