package inspect_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-go/berth/internal/testkit"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

// counted is a Reader whose commands are counted, and seen by the world.
func (w *world) counted() (look *inspect.Reader, sent func() []string) {
	w.T.Helper()
	reads := w.Process()
	var (
		mu       sync.Mutex
		commands []string
	)
	reads.OnCommand(func(c link.Command) link.Fate {
		if w.sees != nil {
			w.sees(c)
		}
		mu.Lock()
		defer mu.Unlock()
		if c.Name == "CLIENT" { // a new connection, that has said HELLO
			commands = slices.DeleteFunc(commands, func(name string) bool { return name == "HELLO" })
		} else {
			commands = append(commands, c.Name)
		}
		return link.Pass
	})
	look = testkit.Must(inspect.New(reads.Redis, inspect.Config{})).In(w.T)
	return look, func() []string {
		mu.Lock()
		defer mu.Unlock()
		all := commands
		commands = nil
		return all
	}
}

func (w *world) view(look *inspect.Reader, kind keyspace.Kind, name, claim string) func() inspect.Look {
	w.T.Helper()
	v := testkit.Must(look.View(kind, name)).In(w.T)
	return func() inspect.Look {
		w.T.Helper()
		return testkit.Must(v.Read(ctx, claim)).In(w.T)
	}
}

// agrees has a View that has read before tell what one tells that has not.
func (w *world) agrees(view func() inspect.Look, kind keyspace.Kind, name, claim string) inspect.Look {
	w.T.Helper()
	fresh := w.view(w.look, kind, name, claim)()
	require.False(w.T, fresh.At.IsZero())
	for range 2 { // the second one knows what the first one has found
		require.Equal(w.T, fresh, view())
	}
	e := testkit.Must(w.look.Explain(ctx, kind, name, claim)).In(w.T)
	n, err := w.look.Name(ctx, kind, name)
	require.Equal(w.T, fresh.Err, err)
	if fresh.WaitsLeft > 0 {
		require.True(w.T, fresh.Partial, "priorities may be missing")
		fresh.Partial, fresh.First = n.Partial, n.First
	}
	if err == nil {
		if why := inspect.Code(fresh.Trouble.Why); why == inspect.OneAbsent || why == inspect.OneDamaged {
			n.Trouble = fresh.Trouble // Name reads no resources
		}
		require.Equal(w.T, n, fresh.Name)
	}
	asked := fresh.Explanation
	if claim != "" {
		asked = fresh.Asked[claim].Explanation
	}
	e.Trouble = berth.Trouble{} // that of the name, which the Look has once
	require.Equal(w.T, e, asked)
	return fresh
}

var named = map[keyspace.Kind]string{keyspace.Lock: "nightly", keyspace.Sem: "gpu", keyspace.Pool: "proxies"}

// budgets are how many commands a View sends at most of each kind, beside what it asks in turn.
var budgets = map[keyspace.Kind]int{keyspace.Lock: 5, keyspace.Sem: 5, keyspace.Pool: 7}

func TestAViewFindsWhatAnotherOneWouldWhereNothingIsAsItWas(t *testing.T) {
	inWorld(t, func(w *world) {
		look, _ := w.counted()
		of := w.view(look, keyspace.Sem, "gpu", "")
		is := func(capacity, holders, waiting int) {
			w.T.Helper()
			l := w.agrees(of, keyspace.Sem, "gpu", "")
			require.Equal(w.T, []int{capacity, holders, waiting}, []int{l.Capacity, l.Holders, l.Waiting})
			require.Len(w.T, l.Holds, min(holders, 100))
			require.Len(w.T, l.Waits, min(waiting, 100))
			require.Equal(w.T, max(holders-100, 0), l.HoldsLeft)
			require.Equal(w.T, max(waiting-100, 0), l.WaitsLeft)
		}
		is(0, 0, 0)
		alpha, beta := w.process("alpha"), w.process("beta")
		s := semaphore.New(alpha.Node, "gpu", 1, semaphore.Config{})
		permit := testkit.Must(s.Acquire(ctx, nil)).In(w.T)
		is(1, 1, 0) // thin
		beta.awaitPermit("", "gpu", 1, nil)
		is(1, 1, 1) // fat
		require.NoError(w.T, permit.Release(ctx))
		synctest.Wait()
		is(1, 1, 0)
		beta.Shut()
		w.Advance(10 * time.Minute)
		is(0, 0, 0)
		permit = testkit.Must(s.Acquire(ctx, nil)).In(w.T)
		is(1, 1, 0)
		w.Do("FLUSHALL")
		is(0, 0, 0)
		require.Error(w.T, permit.Release(ctx))

		gamma := w.process("gamma")
		var permits []*semaphore.Permit
		s = semaphore.New(gamma.Node, "gpu", 250, semaphore.Config{})
		for _, holders := range []int{1, 101, 200, 201, 250} {
			for len(permits) < holders {
				permit := testkit.Must(s.Acquire(ctx, nil)).In(w.T)
				permits = append(permits, permit)
			}
			is(250, holders, 0)
		}
		waiting := 0
		for _, waits := range []int{1, 100, 101, 250, 251, 260} {
			for ; waiting < waits; waiting++ {
				gamma.awaitPermit("", "gpu", 250, &semaphore.AcquireOptions{Priority: waiting % 3})
			}
			is(250, 250, waits)
		}
	})
}

// What is sent is counted with HELLO and TIME, in each of 30 seconds but the first, in which nothing is known.
func TestAViewSendsFewCommandsASecond(t *testing.T) {
	for what, c := range map[string]struct {
		kind keyspace.Kind
		most int
		make func(w *world)
	}{
		"a name that is not there": {keyspace.Sem, 5, func(*world) {}},
		"a thin semaphore":         {keyspace.Sem, 3, func(w *world) { w.process("alpha").permit("", "gpu", 1, nil) }},
		"a thin lock":              {keyspace.Lock, 3, func(w *world) { w.process("alpha").lock("nightly", "", nil) }},
		"a semaphore": {keyspace.Sem, 6, func(w *world) {
			alpha := w.process("alpha")
			for range 20 {
				alpha.permit("", "gpu", 20, nil)
			}
			for n := range 20 {
				alpha.awaitPermit("", "gpu", 20, &semaphore.AcquireOptions{Priority: n % 5})
			}
		}},
		"a semaphore that never stands still": {keyspace.Sem, 6, func(w *world) {
			alpha, capacity := w.process("alpha"), 10
			alpha.permit("", "gpu", 10, &semaphore.AcquireOptions{Weight: 10})
			w.process("beta").awaitPermit("", "gpu", 10, &semaphore.AcquireOptions{Weight: 10})
			w.sees = func(c link.Command) {
				if c.Name == "ZMSCORE" { // of the second trip
					capacity = 21 - capacity
					require.NoError(w.T, semaphore.NewOperator(alpha.Node).Resize(ctx, "gpu", capacity, nil))
				}
			}
		}},
		"a lock": {keyspace.Lock, 6, func(w *world) {
			alpha := w.process("alpha")
			alpha.lock("nightly", "me", nil)
			alpha.awaitLock("nightly", "you", nil)
		}},
		"a pool": {keyspace.Pool, 8, func(w *world) {
			alpha, beta := w.process("alpha"), w.process("beta")
			pool := alpha.filled("a", "b", "c")
			require.NoError(w.T, pool.Rest(ctx, "c", time.Hour, "", nil))
			alpha.take(pool, &allocator.AllocateOptions{Bind: "customer"})
			alpha.take(pool, nil)
			same := beta.pool(allocator.Config[string]{})
			beta.await(same, &allocator.AllocateOptions{Bind: "customer"})
			beta.await(same, nil)
		}},
	} {
		inWorldOf(t, what, func(w *world) {
			c.make(w)
			look, sent := w.counted()
			of := w.view(look, c.kind, named[c.kind], "")
			of()
			for n := range 30 {
				w.Advance(time.Second)
				sent()
				l := of()
				require.Equal(w.T, w.sees != nil, l.Moving)
				if l.Moving {
					require.Equal(w.T, []int{10, 1}, []int{l.Held, l.Waiting})
				}
				got := sent()
				require.LessOrEqual(w.T, len(got), c.most, "%d: %v", n, got)
			}
		})
	}
}

func TestAViewOfALargePoolTellsWhatAFirstReadingTells(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha := w.process("alpha")
		look, sent := w.counted()
		of := w.view(look, keyspace.Pool, "proxies", "")
		pool := alpha.pool(allocator.Config[string]{})
		var keys []string
		for n := range 700 {
			keys = append(keys, fmt.Sprintf("r%03d", n))
		}
		add := func(from, to int, opts *allocator.AddOptions) {
			for ; from < to; from += 100 {
				testkit.Must(pool.Add(ctx, keys[from:from+100], opts)).In(w.T)
			}
		}
		add(0, 500, nil)
		add(500, 700, &allocator.AddOptions{Expiry: time.Hour})
		for n := range 210 {
			require.NoError(w.T, pool.Rest(ctx, keys[n], time.Duration(20+n)*time.Second, "busy", nil))
			alpha.take(pool, &allocator.AllocateOptions{Resource: keys[210+n]})
		}
		for n := range 110 {
			alpha.await(pool, &allocator.AllocateOptions{Resource: keys[210+n]})
		}
		for range 2 {
			l := w.agrees(of, keyspace.Pool, "proxies", "")
			require.Equal(w.T, []int{700, 210, 110}, []int{l.Capacity, l.Holders, l.Waiting})
			require.Equal(w.T, []int{110, 10}, []int{l.HoldsLeft, l.WaitsLeft})
			of()
			sent()
			of()
			got := sent()
			require.LessOrEqual(w.T, len(got), 13, got)
			w.Advance(10 * time.Second) // some rests end
		}
	})
}

func TestAReadingIsOfNoMoreClaimsThanItsCostIsBoundedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		look, sent := w.counted()
		v := testkit.Must(look.View(keyspace.Sem, "gpu")).In(w.T)
		claims := make([]string, 101)
		for i := range claims {
			claims[i] = fmt.Sprint("c", i)
		}
		sent()
		_, err := v.Read(ctx, claims...)
		require.ErrorIs(w.T, err, berth.ErrInvalidConfig)
		require.ErrorContains(w.T, err, "101")
		require.Empty(w.T, sent())
		read, err := v.Read(ctx, append(claims[:100], "", "")...)
		require.NoError(w.T, err)
		require.Len(w.T, read.Asked, 100)
	})
}
