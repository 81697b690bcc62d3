package inspect_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	stored "github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// endless has a process of the swarm hold the lock nightly without an end, and die.
func (w *world) endless() *process {
	w.T.Helper()
	alpha := w.swarmed("alpha")
	alpha.lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever})
	alpha.Die()
	w.Advance(time.Minute)
	return alpha
}

// left has alpha hold the lock nightly without an end, and leave it to whoever resumes it.
func (w *world) left() {
	w.T.Helper()
	testkit.Must(w.process("alpha").lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever}).Detach(ctx)).In(w.T)
}

// rests has so many resources of a pool rest without an end.
func (w *world) rests(pool *allocator.Pool[string], n int) {
	w.T.Helper()
	for i := range n {
		require.NoError(w.T, pool.Rest(ctx, strconv.Itoa(i), berth.Forever, "banned", nil))
	}
}

func (w *world) pauses(kind keyspace.Kind) {
	w.T.Helper()
	require.NoError(w.T, w.process("operator").Operator().Pause(ctx, kind, named[kind], time.Hour, ""))
}

func resources(n int) (all []string) {
	for i := range n {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

var troubles = map[string]struct {
	kind  keyspace.Kind
	make  func(w *world)
	level berth.Level
	why   inspect.Code
	looks berth.Level // of what reads the resources, too; "" for the same
}{
	"newer":   {keyspace.Lock, func(w *world) { w.Do("HSET", w.State, "v", "4 and new words") }, berth.LevelStuck, inspect.Incompatible, ""},
	"foreign": {keyspace.Lock, func(w *world) { w.Do("SET", w.State, "mine") }, berth.LevelStuck, inspect.Foreign, ""},
	"its counts are damaged": {keyspace.Lock, func(w *world) {
		w.Do("HSET", w.State, "v", "3 ?")
	}, berth.LevelStuck, inspect.Foreign, ""},
	"a damaged hold": {keyspace.Lock, func(w *world) {
		alpha := w.process("alpha")
		id := alpha.lock("nightly", "", nil).ID()
		w.process("beta").awaitLock("nightly", "", nil)
		w.Do("HSET", w.State, "c:"+id, "h rubbish")
	}, berth.LevelStuck, inspect.Damaged, ""},
	"a dead node holds without an end, and it is paused": {keyspace.Lock, func(w *world) {
		w.endless()
		w.pauses(keyspace.Lock)
	}, berth.LevelStuck, inspect.DeadHold, ""},
	"a node that a flush has found dead": {keyspace.Lock, func(w *world) {
		node, swarm := w.endless().ID(), "berth:swarm:{nodes}:"
		w.Do("ZREM", swarm+"probes", "p:"+node)
		w.Do("ZADD", swarm+"probes", strconv.FormatInt(10_000_000_000_000+time.Now().UnixMilli(), 10), "c:"+node)
	}, berth.LevelStuck, inspect.DeadHold, ""},
	"a living node holds without an end": {keyspace.Lock, func(w *world) {
		w.swarmed("alpha").lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever})
		w.Advance(time.Minute)
	}, berth.LevelBusy, "", ""},
	"left behind, and waited for": {keyspace.Lock, func(w *world) {
		w.left()
		w.process("beta").awaitLock("nightly", "", nil)
	}, berth.LevelStuck, inspect.LeftBehind, ""},
	"left behind, and a dead claim waits": {keyspace.Lock, func(w *world) {
		w.left()
		beta := w.process("beta")
		beta.awaitLock("nightly", "", nil)
		beta.Die()
		w.Advance(testkit.Lease)
	}, berth.LevelMeant, inspect.LeftBehind, ""},
	"left behind": {keyspace.Lock, func(w *world) { w.left() }, berth.LevelMeant, inspect.LeftBehind, ""},
	"left behind, with an end": {keyspace.Lock, func(w *world) {
		testkit.Must(w.process("alpha").lock("nightly", "", nil).Detach(ctx)).In(w.T)
	}, berth.LevelBusy, "", ""},
	"the first in line asks for too much": {keyspace.Sem, func(w *world) {
		w.process("alpha").permit("", "gpu", 3, &semaphore.AcquireOptions{Weight: 2})
		beta := w.process("beta")
		beta.awaitPermit("", "gpu", 3, &semaphore.AcquireOptions{Weight: 3})
		beta.Deafen(true)
		w.pauses(keyspace.Sem)
		require.NoError(w.T, semaphore.NewOperator(w.process("delta").Node).Resize(ctx, "gpu", 2, nil))
	}, berth.LevelStuck, inspect.TooHeavy, ""},
	"nothing comes back to the pool": {keyspace.Pool, func(w *world) {
		w.rests(w.process("alpha").filled(resources(60)...), 60)
	}, berth.LevelStuck, inspect.NothingBack, ""},
	"one of many rests ends": {keyspace.Pool, func(w *world) {
		pool := w.process("alpha").filled(resources(60)...)
		w.rests(pool, 59)
		require.NoError(w.T, pool.Rest(ctx, "59", time.Hour, "", nil))
	}, berth.LevelMeant, inspect.Resting, ""},
	"the pool is empty, and waited for: a source may fill it": {keyspace.Pool, func(w *world) { w.awaits(nil) }, berth.LevelBusy, "", ""},
	"the pool is empty": {keyspace.Pool, func(w *world) {
		testkit.Must(w.process("alpha").filled("a").Remove(ctx, []string{"a"})).In(w.T)
	}, berth.LevelFree, "", ""},
	"its one resource is not there": {keyspace.Pool, func(w *world) {
		taken(w, &allocator.AllocateOptions{Resource: "a"}, "a", "b")
		w.Do("HDEL", "berth:pool:{proxies}:items", "ia")
	}, berth.LevelBusy, inspect.OneAbsent, berth.LevelStuck},
	"its one resource is damaged": {keyspace.Pool, func(w *world) {
		taken(w, &allocator.AllocateOptions{Resource: "a"}, "a")
		w.Do("HSET", "berth:pool:{proxies}:items", "ia", "rubbish")
	}, berth.LevelBusy, inspect.OneDamaged, berth.LevelStuck},
	"overdue, and paused": {keyspace.Lock, func(w *world) {
		w.contends(nil, 0).Die()
		w.pauses(keyspace.Lock)
		w.Advance(5 * time.Second)
	}, berth.LevelOverdue, inspect.Silent, ""},
	"one of many is overdue": {keyspace.Sem, func(w *world) {
		for range 3 {
			w.process("alpha").permit("", "gpu", 4, nil)
		}
		beta := w.process("beta")
		beta.permit("", "gpu", 4, nil)
		w.Advance(time.Second)
		beta.Die()
		w.Advance(4 * time.Second)
	}, berth.LevelOverdue, inspect.Silent, ""},
	"paused": {keyspace.Sem, func(w *world) {
		w.process("alpha").permit("", "gpu", 1, nil)
		w.pauses(keyspace.Sem)
	}, berth.LevelMeant, inspect.Paused, ""},
	"wanted": {keyspace.Lock, func(w *world) {
		w.contends(nil, time.Second)
		testkit.Must(w.process("operator").Operator().Want(ctx, berth.Target{Kind: keyspace.Lock, Name: "nightly"})).In(w.T)
		w.Advance(ms)
	}, berth.LevelMeant, inspect.Asked, ""},
	"busy":   {keyspace.Lock, func(w *world) { w.contends(nil, time.Minute) }, berth.LevelBusy, "", ""},
	"free":   {keyspace.Pool, func(w *world) { w.process("alpha").filled("a") }, berth.LevelFree, "", ""},
	"nobody": {keyspace.Sem, func(*world) {}, berth.LevelFree, "", ""},
}

func TestHowBadTheStateOfANameIs(t *testing.T) {
	t.Parallel()
	for what, c := range troubles {
		inWorldOf(t, what, func(w *world) {
			if c.kind == keyspace.Lock {
				w.State = "berth:lock:{nightly}:state"
			}
			c.make(w)
			is := func(says string, got berth.Trouble, level berth.Level, why inspect.Code) {
				require.Equal(w.T, []string{string(level), string(why)}, []string{string(got.Level), got.Why}, says)
			}
			level, why := c.level, c.why
			if c.looks != "" {
				why = ""
			}
			n, err := w.look.Name(ctx, c.kind, named[c.kind])
			require.Equal(w.T, n.Err, err)
			if err == nil {
				is("one", n.Trouble, level, why)
			}
			page := testkit.Must(w.look.Names(ctx, inspect.NameFilter{}, "", 0)).In(w.T)
			require.Empty(w.T, page.Problems)
			stuck := 0
			for _, n := range page.Items {
				if is("a listing", n.Trouble, level, why); level == berth.LevelStuck {
					stuck++
				}
			}
			require.Equal(w.T, stuck, page.Stuck)
			if c.looks != "" {
				level, why = c.looks, c.why
			}
			look := w.view(w.look, c.kind, named[c.kind], "")()
			is("a view", look.Trouble, level, why)
		})
	}
}

func TestTheDeadAreNotCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.crowds("gpu", "a.1")
		for n := range 3 {
			r := stored.Record{Weight: 1, Wait: time.Second, Lease: time.Hour, Phase: 'w', Node: "node"}
			w.Acquires("semaphore", r.Node, fmt.Sprintf("b.%d", n), &r, "1", "stored", stored.Calm(1))
		}
		counts := func(n berth.Name) []int { return []int{n.Waiting, n.Dead, n.Live()} }
		read := func() (one, look berth.Name) {
			return testkit.Must(w.look.Name(ctx, keyspace.Sem, "gpu")).In(w.T), w.view(w.look, keyspace.Sem, "gpu", "")().Name
		}
		one, look := read()
		require.Equal(w.T, []int{3, 0, 3}, counts(one))
		require.Equal(w.T, []int{3, 0, 3}, counts(look))
		w.Advance(time.Second)
		one, look = read()
		require.Equal(w.T, []int{3, 1, 2}, counts(one), "it has read the first one of each priority")
		require.Equal(w.T, []int{3, 3, 0}, counts(look))
		require.Equal(w.T, -2, berth.Name{Waiting: 1, Dead: 3}.Live()-2, "never below 0")
	})
}
