package allocator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// Open outlasts the hold, and heeds its context or not: the caller gets no handle of
// something that is over, and hears why, as it has not left itself.
func TestAHoldThatEndsWhileOpenRunsIsNotReturned(t *testing.T) {
	ctx := context.Background()
	fixed := &allocator.AllocateOptions{Lease: time.Second, NoRenew: true}
	for name, get := range map[string]func(w *world, d *proc) error{
		"Allocate":        func(_ *world, d *proc) error { _, err := d.Allocate(ctx, fixed); return err },
		"TryAllocate":     func(_ *world, d *proc) error { _, err := d.TryAllocate(ctx, fixed); return err },
		"AllocateHealthy": func(_ *world, d *proc) error { _, err := d.AllocateHealthy(ctx, fixed); return err },
		"Resume": func(w *world, d *proc) error {
			_, err := d.Resume(ctx, detach(w.T, w.node().takes("a", fixed)))
			return err
		},
	} {
		for what, heeds := range map[string]bool{" that is told to stop": true, " that goes on": false} {
			if !heeds && name != "Allocate" {
				continue // one goroutine opens for all of them
			}
			t.Run(name+what, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.add("a")
					closed := 0
					d := w.nodeOf(allocator.PoolConfig[string]{
						Open: func(ctx context.Context, key string) (string, error) {
							if heeds {
								<-ctx.Done()
								return "", ctx.Err()
							}
							<-time.After(2 * time.Second)
							return key, nil
						},
						Close: func(string) error { closed++; return nil },
					})
					err := get(w, d)
					require.ErrorIs(t, err, berth.ErrExpired)
					require.ErrorIs(t, err, berth.ErrNotAcquired)
					require.NotErrorIs(t, err, context.Canceled, "the caller has not left")
					w.Advance(2 * time.Second)
					require.Equal(t, allocator.Free, w.status("a").State, "it had no say")
					require.NoError(t, change(d.Remove(ctx, []string{"a"})))
					synctest.Wait()
					if !heeds {
						require.Equal(t, 1, closed, "nobody uses it")
					}
				})
			})
		}
	}
}

// The usual deferred Close: ctx has ended, and a hold cannot be given back.
func TestCloseUnderAnEndedContextClosesValuesAllTheSame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		shut := false
		cfg := allocator.PoolConfig[string]{
			Open: func(_ context.Context, key string) (string, error) { return key, nil },
			Close: func(string) error {
				<-time.After(100 * ms)
				shut = true
				return nil
			},
		}
		n := w.nodeWith(once, cfg)
		n.connect()
		n.takes("a", nil)
		n.Once("pool_release", link.LoseRequest)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.Error(t, n.node.Close(ctx))
		require.True(t, shut)
	})
}

// The first in line leaves by its release, which sweeps nothing: the next one hears of
// what only the first was told of, also where that moment has passed.
func TestTheNextInLineHearsOfADeadlineWhenTheFirstLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Duration
		want string
	}{
		"that is to come": {100 * ms, "4:next7:proxies3:300"},
		"that is now":     {400 * ms, "4:next7:proxies1:0"},
		"that has passed": {801 * ms, "4:next7:proxies1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				long := func(r *engine.Record) { r.Wait = time.Minute }
				require.NoError(t, w.pool.Rest(t.Context(), "a", 400*ms, "", nil))
				w.acquireScript("x", "x.1", long)
				w.acquireScript("y", "y.1", long)
				heard := w.listen("y")
				w.Until(c.at)
				w.releaseScript("x", "x.1")
				require.Equal(t, []string{c.want}, heard())
			})
		})
	}
}

// The first in line was told of a rest's end, and is granted something else.
func TestTheNextInLineHearsOfADeadlineWhenTheFirstIsGranted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.occupy("z")
		long := func(r *engine.Record) { r.Wait = time.Minute }
		w.acquireScript("x", "x.1", long)
		w.acquireScript("y", "y.1", long)
		first, next := w.listen("x"), w.listen("y")
		reply := w.Call("pool_release", "60000", "berth:wake:", proxies, "z", "z.1", "0", "50", "", millis(w.Field("fence")), "0")
		require.Equal(t, "released", reply.Status())
		require.Equal(t, []string{"4:next7:proxies2:50"}, first())
		require.Empty(t, next())
		w.add("b")
		require.Equal(t, byte('g'), w.PhaseOf("x.1"))
		require.Equal(t, []string{"4:next7:proxies2:50"}, next())
	})
}

// A state that is gone has left the rest behind: what a try finds there counts for
// nothing.
func TestATryOnAPoolWhoseStateIsGoneWritesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.acquireScript("dead", "dead.1")
		_, err := w.pool.Add(t.Context(), []string{"short"}, &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		w.Advance(lease)
		w.Do("DEL", stateKey)
		_, err = w.node().TryAllocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.Zero(t, w.Int("EXISTS", stateKey))
		w.add("a")
		require.Equal(t, 1, w.inspect().Resources)
	})
}

// What a claim wants is one text of its record, which scripts/pool/wants.lua reads: word
// by word it is what was asked for.
func TestTheRecordSaysWhatAClaimWants(t *testing.T) {
	for want, c := range map[string]struct {
		cfg  allocator.PoolConfig[string]
		opts allocator.AllocateOptions
	}{
		"o 0 - 0 0:":          {},
		"o 1500 - 0 0:":       {opts: allocator.AllocateOptions{Cooldown: 1500 * ms}},
		"o 0 - 0 0:x y\n\xff": {opts: allocator.AllocateOptions{Bind: "x y\n\xff"}},
		"o 0 2500 0 0:me":     {opts: allocator.AllocateOptions{Bind: "me", BindFor: 2500 * ms}},
		"s 0 0 0 0:me":        {cfg: allocator.PoolConfig[string]{Shared: true}, opts: allocator.AllocateOptions{Bind: "me", BindFor: berth.Forever}},
	} {
		t.Run(want, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.nodeOf(c.cfg)
				q := n.queue(&c.opts)
				waiting := w.Waiters()
				require.Len(t, waiting, 1)
				text, err := w.Do("HGET", stateKey, "c:"+waiting[0].ID).ToString()
				require.NoError(t, err)
				r, err := state.ParseRecord(text)
				require.NoError(t, err)
				require.Equal(t, want, r.Extra)
				// The scripts read it as well.
				w.add("a")
				q.GrantedBy(0)
				if c.opts.Bind != "" {
					b, err := n.Binding(t.Context(), c.opts.Bind)
					require.NoError(t, err)
					require.Equal(t, "a", b.Resource)
				}
			})
		})
	}
}
