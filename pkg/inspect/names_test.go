package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	stored "github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// names are those of all pages, in their order.
func (w *world) names(f inspect.NameFilter, most int) (all []string) {
	w.T.Helper()
	for cursor := ""; ; {
		page := testkit.Must(w.look.Names(ctx, f, cursor, most)).In(w.T)
		require.Empty(w.T, page.Problems)
		require.LessOrEqual(w.T, len(page.Items), most)
		require.True(w.T, page.Next == "" || page.Partial || len(page.Items) == most, "it is full, or says why not")
		require.False(w.T, page.At.IsZero())
		require.False(w.T, page.Replica)
		for _, n := range page.Items {
			all = append(all, string(n.Kind)+" "+n.Name)
		}
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

func TestNamesAreReadInPages(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha := w.process("alpha")
		var held []string
		for n := range 130 {
			name := fmt.Sprintf("x%03d", n)
			alpha.lock(name, "", nil)
			held = append(held, "lock "+name)
		}
		alpha.permit("", "gpu", 2, nil)
		alpha.filled("a", "b")
		w.Do("SET", "berth:lock:{idle}:state", fmt.Sprintf("%016d", time.Now().UnixMicro()))
		held = append(held, "pool proxies", "sem gpu")
		for _, most := range []int{1, 7, 100} {
			require.ElementsMatch(w.T, held, w.names(inspect.NameFilter{}, most), "each once")
		}
		require.Equal(w.T, []string{"sem gpu"}, w.names(inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Sem}}, 10))
		require.Equal(w.T, []string{"lock x007"}, w.names(inspect.NameFilter{Prefix: "x007"}, 10))
		require.ElementsMatch(w.T, append(held, "lock idle"), w.names(inspect.NameFilter{Idle: true}, 33))
		require.Equal(w.T, []string{"lock idle"}, w.names(inspect.NameFilter{Prefix: "i", Idle: true}, 10))
		require.Empty(w.T, w.names(inspect.NameFilter{Prefix: "x*", Idle: true}, 10), "a prefix is no pattern")
		require.Empty(w.T, w.names(inspect.NameFilter{Waiting: true}, 10))

		for _, f := range []inspect.NameFilter{{}, {Waiting: true}} {
			for _, cursor := range []string{"x", "e30", "eyJ2IjoyfQ"} {
				require.ErrorIs(w.T, testkit.Second(w.look.Names(ctx, f, cursor, 0)), berth.ErrInvalidConfig, cursor)
			}
			require.ErrorIs(w.T, testkit.Second(w.look.Names(ctx, f, "", -1)), berth.ErrInvalidConfig)
			f.Kinds = []keyspace.Kind{keyspace.Swarm}
			require.ErrorIs(w.T, testkit.Second(w.look.Names(ctx, f, "", 0)), berth.ErrInvalidConfig)
			ended, cancel := context.WithCancel(ctx)
			cancel()
			_, err := w.look.Names(ended, inspect.NameFilter{Waiting: f.Waiting}, "", 0)
			require.ErrorIs(w.T, err, context.Canceled)
		}
	})
}

func TestTheMostContendedNamesComeFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		for n, name := range []string{"a", "b", "c", "d"} {
			alpha.lock(name, "", nil)
			for range (n + 1) % 4 {
				beta.awaitLock(name, "", nil)
				w.Advance(ms)
			}
		}
		alpha.permit("", "b", 1, nil)
		beta.awaitPermit("", "b", 1, nil)
		beta.awaitPermit("", "b", 1, nil)
		w.Advance(time.Second) // the registry has heard of them
		want := []string{"lock c", "lock b", "sem b", "lock a"}
		for _, most := range []int{1, 3, 10} {
			require.Equal(w.T, want, w.names(inspect.NameFilter{Waiting: true}, most), "%d a page", most)
		}
		page := testkit.Must(w.look.Names(ctx, inspect.NameFilter{Waiting: true, Prefix: "c"}, "", 0)).In(w.T)
		require.False(w.T, page.Partial)
		require.Len(w.T, page.Items, 1)
		require.Equal(w.T, 3, page.Items[0].Waiting)
		require.Equal(w.T, "beta", page.Items[0].First[0].Label)
		require.Equal(w.T, []string{"sem b"}, w.names(inspect.NameFilter{Waiting: true, Kinds: []keyspace.Kind{keyspace.Sem}}, 10))

		w.Do("HSET", "berth:lock:{a}:state", "v", "9 words of a release to come")
		for _, waiting := range []bool{true, false} {
			page = testkit.Must(w.look.Names(ctx, inspect.NameFilter{Waiting: waiting}, "", 0)).In(w.T)
			i := slices.IndexFunc(page.Items, func(n berth.Name) bool { return n.Err != nil })
			require.Equal(w.T, "a", page.Items[i].Name)
			require.ErrorIs(w.T, page.Items[i].Err, berth.ErrIncompatible)
			require.Greater(w.T, len(page.Items), 3, "the others are there")
		}
	})
}

// TestTheNamesOfWhichRunsAreKeptAreReadWhereTheyAreAskedFor has texts of scripts/once/run.lua: of periods of 100 ms.
func TestTheNamesOfWhichRunsAreKeptAreReadWhereTheyAreAskedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha := w.process("alpha")
		alpha.lock("done", "", nil)
		fence := alpha.lock("goes on", "", nil).Fence()
		keep := func(name string, fields ...string) {
			w.Do(append([]string{"HSET", "berth:once:{" + name + "}:state"}, fields...)...)
		}
		run := func(start int, outcome string) string {
			return fmt.Sprintf("%d %d 7 1 %d %d 0 0 %s node 1:a", start, start+100, start+1, start+20, outcome)
		}
		keep("done", "fmt", "1", "run", run(500, "done"), "success", run(500, "done"), "due", "700")
		keep("fails", "fmt", "1", "run", run(900, "failed"), "success", run(500, "done"), "due", "700")
		keep("runs", "fmt", "1", "run", run(900, "begun"), "due", "1100")
		keep("goes on", "fmt", "1", "run", strings.Replace(run(900, "begun"), " 7 ", fmt.Sprintf(" %d ", fence), 1), "due", "1100")
		keep("never", "fmt", "1", "run", run(900, "failed"), "due", "x")
		keep("newer", "fmt", "2")
		keep("empty", "fmt", "1")
		keep("damaged", "fmt", "1", "run", "x")
		w.Do("SET", "berth:once:{foreign}:state", "x")
		require.Equal(w.T, []string{"lock done", "lock goes on"}, w.names(inspect.NameFilter{}, 10))
		require.Equal(w.T, []string{"lock done"}, w.names(inspect.NameFilter{Prefix: "d", Kinds: []keyspace.Kind{keyspace.Lock}}, 10))

		got := map[string]*berth.RunsInfo{}
		var bad []string
		for cursor := ""; ; {
			page := testkit.Must(w.look.Names(ctx, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool, keyspace.Once}}, cursor, 3)).In(w.T)
			for _, n := range page.Items {
				if n.Kind == keyspace.Once {
					require.Nil(w.T, n.Pause)
					require.Zero(w.T, n.Capacity)
					if got[n.Name] = n.Runs; n.Err != nil {
						bad = append(bad, n.Name+": "+n.Err.Error())
					}
				}
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		at := time.UnixMilli
		require.Equal(w.T, map[string]*berth.RunsInfo{
			"done":    {Success: at(520), Due: at(700), Every: 100 * ms, Outcome: "done", Begun: at(501), Ended: at(520), Label: "a", Fence: 7},
			"fails":   {Success: at(520), Due: at(700), Every: 100 * ms, Outcome: "failed", Begun: at(901), Ended: at(920), Label: "a", Fence: 7},
			"runs":    {Due: at(1100), Every: 100 * ms, Outcome: "begun", Begun: at(901), Ended: at(920), Label: "a", Fence: 7},
			"goes on": {Due: at(1100), Every: 100 * ms, Outcome: "begun", Begun: at(901), Ended: at(920), Label: "a", Fence: fence, GoesOn: true},
			"never":   {Every: 100 * ms, Outcome: "failed", Begun: at(901), Ended: at(920), Label: "a", Fence: 7},
			"newer":   nil, "damaged": nil, "foreign": nil,
		}, got)
		slices.Sort(bad)
		require.Len(w.T, bad, 3)
		require.Contains(w.T, bad[0], "damaged: berth: what is kept of a run")
		require.Contains(w.T, bad[1], "foreign: ")
		require.Contains(w.T, bad[2], "has the form 2")
	})
}

// claims are those of all pages, with the kind, the name and what they do, sorted.
func (w *world) claims(f inspect.ClaimFilter, most int) (all []string) {
	w.T.Helper()
	ids := map[string]bool{}
	for cursor := ""; ; {
		page := testkit.Must(w.look.Claims(ctx, f, cursor, most)).In(w.T)
		require.Empty(w.T, page.Problems)
		require.LessOrEqual(w.T, len(page.Items), most)
		require.False(w.T, page.Moving)
		require.False(w.T, page.Partial)
		for _, c := range page.Items {
			require.False(w.T, ids[c.ID()], "each once")
			ids[c.ID()] = true
			what := "holds"
			if c.Wait != nil {
				what = "waits"
			}
			require.Equal(w.T, time.Now().UnixMilli()-c.For().Milliseconds(), c.Since().UnixMilli())
			all = append(all, fmt.Sprintf("%s %s %s", c.Kind, c.Name, what))
		}
		if cursor = page.Next; cursor == "" {
			slices.Sort(all)
			return all
		}
	}
}

func TestClaimsAreReadInPages(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("host-a/worker"), w.process("host-b/worker")
		meta := map[string]string{"job": "7", "step": "fetch"}
		alpha.permit("order-1", "gpu", 3, &semaphore.AcquireOptions{Weight: 2})
		alpha.permit("", "gpu", 3, &semaphore.AcquireOptions{Meta: meta})
		for range 3 {
			beta.awaitPermit("", "gpu", 3, nil)
			w.Advance(ms)
		}
		l := alpha.lock("nightly", "order-1", nil)
		for range 3 {
			alpha.lock("nightly", "order-1", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		}
		beta.awaitLock("nightly", "order-2", &qlock.LockOptions{Meta: meta})
		beta.lock("thin", "", nil)
		alpha.filled("a")
		pool := beta.pool(allocator.Config[string]{})
		beta.take(pool, nil)
		beta.await(pool, nil)
		w.Do("SET", "berth:lock:{idle}:state", fmt.Sprintf("%016d", time.Now().UnixMicro()))
		w.Advance(ms)

		times := func(n int, what string) []string { return slices.Repeat([]string{what}, n) }
		all := slices.Concat(times(4, "lock nightly holds"), times(1, "lock nightly waits"), times(1, "lock thin holds"),
			times(1, "pool proxies holds"), times(1, "pool proxies waits"), times(2, "sem gpu holds"), times(3, "sem gpu waits"))
		for _, most := range []int{1, 2, 3, 5, 100} {
			require.Equal(w.T, all, w.claims(inspect.ClaimFilter{}, most), "%d a page", most)
		}
		waits := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c[len(c)-5:] != "waits" })
		for name, test := range map[string]struct {
			f    inspect.ClaimFilter
			want []string
		}{
			"kinds":      {inspect.ClaimFilter{Kinds: []keyspace.Kind{keyspace.Pool}}, []string{"pool proxies holds", "pool proxies waits"}},
			"node":       {inspect.ClaimFilter{Node: alpha.ID()}, append(times(4, "lock nightly holds"), times(2, "sem gpu holds")...)},
			"owner":      {inspect.ClaimFilter{Owner: "order-1"}, append(times(4, "lock nightly holds"), "sem gpu holds")},
			"label":      {inspect.ClaimFilter{Label: "host-a/worker"}, append(times(4, "lock nightly holds"), times(2, "sem gpu holds")...)},
			"labels":     {inspect.ClaimFilter{Label: "host-*"}, all},
			"meta":       {inspect.ClaimFilter{Meta: map[string]string{"job": "7"}}, []string{"lock nightly waits", "sem gpu holds"}},
			"other meta": {inspect.ClaimFilter{Meta: map[string]string{"job": "7", "step": ""}}, nil},
			"waits":      {inspect.ClaimFilter{Waiting: true}, waits},
			"both":       {inspect.ClaimFilter{Waiting: true, Holding: true}, all},
			"several":    {inspect.ClaimFilter{Holding: true, Label: "host-b*", Kinds: []keyspace.Kind{keyspace.Lock}}, []string{"lock thin holds"}},
		} {
			for _, most := range []int{1, 100} {
				require.Equal(w.T, test.want, w.claims(test.f, most), name)
			}
		}
		_, err := w.look.Claims(ctx, inspect.ClaimFilter{Kinds: []keyspace.Kind{"x"}}, "", 0)
		require.ErrorIs(w.T, err, berth.ErrInvalidConfig)
		for _, cursor := range []string{"x", "e30", "eyJ2IjoxLCJpbiI6IngifQ"} {
			_, err = w.look.Claims(ctx, inspect.ClaimFilter{}, cursor, 0)
			require.ErrorIs(w.T, err, berth.ErrInvalidConfig, cursor)
		}

		w.Do("HSET", "berth:lock:{nightly}:state", "c:"+l.ID(), "h rubbish")
		w.Do("SET", "berth:lock:{thin}:state", "rubbish")
		page := testkit.Must(w.look.Claims(ctx, inspect.ClaimFilter{}, "", 0)).In(w.T)
		require.True(w.T, page.Partial)
		require.Len(w.T, page.Problems, 2)
		require.Len(w.T, page.Items, len(all)-2, "the others are there")
	})
}

// told is all that the reader tells of a name.
func (w *world) told(kind keyspace.Kind, name string) (berth.Name, []berth.Holder, []berth.Waiter) {
	w.T.Helper()
	n := testkit.Must(w.look.Name(ctx, kind, name)).In(w.T)
	require.Equal(w.T, []any{kind, name}, []any{n.Kind, n.Name})
	holders := testkit.Must(w.look.Holders(ctx, kind, name, "", 0)).In(w.T)
	waiters := testkit.Must(w.look.Waiters(ctx, kind, name, "", 0)).In(w.T)
	require.Empty(w.T, append(holders.Problems, waiters.Problems...))
	require.Empty(w.T, holders.Next+waiters.Next)
	return n, holders.Items, waiters.Items
}

var meta = map[string]string{"job": "42"}

// asked is a kind, and how to ask for all that the kind knows. Whoever waits has a priority of 4.
var asked = map[string]struct {
	kind keyspace.Kind
	name string
	hold func(p *process) (berth.Hold, error)
	wait func(p *process)
	want berth.Name
	held berth.Holder
}{
	"a semaphore": {
		keyspace.Sem, "gpu",
		func(p *process) (berth.Hold, error) {
			s := semaphore.New(p.Node, "gpu", 3, semaphore.Config{})
			return s.Acquire(of("me"), &semaphore.AcquireOptions{Weight: 2, Lease: 5 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: meta})
		},
		func(p *process) {
			p.awaitPermit("you", "gpu", 3, &semaphore.AcquireOptions{Weight: 2, Priority: 4, Meta: meta})
		},
		berth.Name{Capacity: 3, Held: 2},
		berth.Holder{Weight: 2},
	},
	"a lock": {
		keyspace.Lock, "nightly",
		func(p *process) (berth.Hold, error) {
			return p.lock("nightly", "me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: meta}), nil
		},
		func(p *process) { p.awaitLock("nightly", "you", &qlock.LockOptions{Priority: 4, Meta: meta}) },
		berth.Name{Capacity: 1, Held: 1, Lock: &berth.LockInfo{Owner: "me", Left: 3500 * ms}},
		berth.Holder{Weight: 1},
	},
	"a pool": {
		keyspace.Pool, "proxies",
		func(p *process) (berth.Hold, error) {
			return p.filled("\xff a|").Allocate(of("me"), &allocator.AllocateOptions{Lease: 5 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: meta})
		},
		func(p *process) {
			testkit.Queue(of("you"), p.w.World, func(ctx context.Context) (*allocator.Allocation[string], error) {
				return p.pool(allocator.Config[string]{}).Allocate(ctx, &allocator.AllocateOptions{Priority: 4, Meta: meta})
			})
		},
		berth.Name{Capacity: 1, Held: 1, Pool: &berth.PoolInfo{}},
		berth.Holder{Weight: 1, Resource: "\xff a|"},
	},
}

func TestHoldsAndWaitsAreToldInFull(t *testing.T) {
	for what, c := range asked {
		inWorldOf(t, what, func(w *world) {
			n, _, _ := w.told(c.kind, c.name)
			require.Equal(w.T, berth.Name{Kind: c.kind, Name: c.name, At: n.At, Trouble: berth.Trouble{Level: berth.LevelFree}}, n, "nobody has used it")
			require.Zero(w.T, n.Share())
			require.Empty(w.T, w.Keys(), "and a question does not make it known")

			p, q := w.process("worker 7"), w.process("worker 8")
			w.Advance(time.Second)
			at := time.UnixMilli(time.Now().UnixMilli())
			h := testkit.Must(c.hold(p)).In(w.T)
			w.Advance(ms)
			c.wait(q)
			w.Advance(1499 * ms)
			holder, waiter := c.held, berth.Waiter{Weight: c.held.Weight}
			n, holders, waiters := w.told(c.kind, c.name)
			holder.ID, holder.Node, holder.Label, holder.Owner, holder.Fence = h.ID(), h.Node(), "worker 7", "me", h.Fence()
			holder.Lease, holder.Left, holder.NoRenew, holder.MaxHold = 5*time.Second, 3500*ms, true, time.Minute
			holder.Granted, holder.Held, holder.Meta = at, 1500*ms, meta
			require.Equal(w.T, []berth.Holder{holder}, holders)
			waiter.ID, waiter.Node = w.waiting(c.kind, c.name, "worker 8"), q.ID()
			waiter.Label, waiter.Owner, waiter.Priority, waiter.Meta = "worker 8", "you", 4, meta
			waiter.Since, waiter.Waited, waiter.Alive = at.Add(ms), 1499*ms, testkit.Lease-1499*ms
			require.Equal(w.T, []berth.Waiter{waiter}, waiters)
			want := c.want
			want.Kind, want.Name, want.Holders, want.Waiting, want.Fence = c.kind, c.name, 1, 1, h.Fence()
			want.Revision, want.At, want.Trouble.Level = n.Revision, n.At, berth.LevelBusy
			want.Oldest, want.Longest, want.First = 1500*ms, n.Longest, waiters
			require.Equal(w.T, holder.ID, n.Longest.ID)
			require.Equal(w.T, 1500*ms, n.Longest.Held)
			if want.Lock != nil {
				want.Lock.Claim, want.Lock.Label = h.ID(), "worker 7"
			}
			require.Equal(w.T, want, n)
			require.InDelta(w.T, float64(want.Held)/float64(want.Capacity), n.Share(), 1e-9)

			testkit.Must(h.Detach(ctx)).In(w.T)
			_, holders, _ = w.told(c.kind, c.name)
			holder.Detached = true
			require.Equal(w.T, []berth.Holder{holder}, holders)
			q.Die()
			w.Advance(testkit.Lease)
			n, holders, waiters = w.told(c.kind, c.name)
			require.Empty(w.T, holders, "what has expired is not held, swept or not")
			require.Empty(w.T, waiters)
			require.Equal(w.T, []int{0, 0}, []int{n.Held, n.Holders})
		})
	}
}

// A listing of a server that does not answer says so, as those of the reader, after as long as one read may take: an empty
// one would say that nothing is held.
func TestAListingOfASilentServerIsAnError(t *testing.T) {
	cycles := func(within time.Duration) func(r *inspect.Reader) error {
		return func(r *inspect.Reader) error {
			return testkit.Second(r.Cycles(ctx, &inspect.CycleOptions{Within: within}))
		}
	}
	listings := map[string]func(r *inspect.Reader) error{
		"names that are waited for": func(r *inspect.Reader) error {
			return testkit.Second(r.Names(ctx, inspect.NameFilter{Waiting: true}, "", 0))
		},
		"cycles": cycles(time.Minute), "cycles, within less": cycles(0),
		"cycles, within less than an attempt": cycles(time.Second),
		"an overview": func(r *inspect.Reader) error {
			return testkit.Second(testkit.Must(r.Overview(inspect.NameFilter{})).In(t).Read(ctx))
		},
	}
	for name, list := range listings {
		inWorldOf(t, name, func(w *world) {
			w.process("alpha").lock("nightly", "", nil)
			p := w.Process()
			look := testkit.Must(inspect.New(p.Redis, inspect.Config{})).In(w.T)
			require.NoError(w.T, list(look))
			p.Stall()
			began := time.Now()
			err := list(look)
			require.ErrorIs(w.T, err, berth.ErrUnavailable)
			require.NotErrorIs(w.T, err, context.DeadlineExceeded, "the caller has set no limit")
			require.LessOrEqual(w.T, time.Since(began), 10*time.Second)
		})
	}
}

// A server that falls silent behind the first answer is waited for once, not once for each batch of names.
func TestAServerThatFallsSilentInTheMidst(t *testing.T) {
	inWorld(t, func(w *world) {
		for n := range 300 { // three batches
			member := stored.Member(string(keyspace.Lock), fmt.Sprintf("n%03d", n))
			w.Do("ZADD", fmt.Sprintf("berth:waits:{%d}:names", stored.Shard(member)), "99999999999999", member)
		}
		p := w.Process()
		look := testkit.Must(inspect.New(p.Redis, inspect.Config{})).In(w.T)
		p.OnCommand(func(c link.Command) link.Fate {
			if len(c.Args) > 0 && strings.Contains(c.Args[0], "{n") {
				p.Stall()
			}
			return link.Pass
		})
		began := time.Now()
		require.ErrorIs(w.T, testkit.Second(look.Names(ctx, inspect.NameFilter{Waiting: true}, "", 0)), berth.ErrUnavailable)
		require.LessOrEqual(w.T, time.Since(began), 10*time.Second)
	})
}
