package reader_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
)

// In each millisecond the reader tells what the model does, as after each step of the histories of internal/model.
func TestWhatHasPassedHasPassed(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		weighs := func(n int) func(*state.Record) { return func(r *state.Record) { r.Weight = n } }
		require.Equal(t, "granted", w.semaphore("a.1", 5, weighs(3), lasts(20*ms, 20*ms)))
		require.Equal(t, "granted", w.semaphore("b.1", 5, lasts(30*ms, 30*ms)))
		require.Equal(t, "queued", w.semaphore("c.1", 5, weighs(2), lasts(35*ms, 20*ms)))
		for range 40 {
			w.Advance(ms)
			model.Reads(t, w.Redis, w.space, w.kind, name)
		}
		require.False(t, testkit.Must(w.reader.About(ctx, w.Redis)).In(t).Replica)
	})
}

func TestOfALockItsOwnersEntriesAreReadTheOutermostFirst(t *testing.T) {
	inWorld(t, keyspace.Lock, func(t *testing.T, w *world) {
		owned := func(r *state.Record) { r.Owner, r.Wait, r.Lease = "me", 30*ms, time.Minute }
		require.Equal(t, "granted", w.ask("b.1", []string{"fail queued 0 me"}, owned))
		w.write("renew", "node-b.1", "b.1", "beat")
		require.Equal(t, "reentered", w.ask("c.1", []string{"work queued 0 me"}, owned))
		require.Equal(t, "reentered", w.ask("d.1", []string{"extend queued 0 me"}, owned))
		w.write("renew", "node-d.1", "d.1", "beat")
		require.Equal(t, "queued", w.ask("e.1", []string{""}))
		n, entries, err := w.reader.Entries(ctx, name)
		require.NoError(t, err)
		require.Len(t, entries, 3)
		require.Equal(t, []string{"b.1", "d.1", "c.1"}, []string{entries[0].Entry.ID, entries[1].Entry.ID, entries[2].Entry.ID},
			"one that has not called yet comes last")
		require.Equal(t, []any{"me", 2, 1, 3, 1}, []any{n.Lock.Owner, n.Lock.Reentries, n.Held, n.Holders, n.Waiting})
	})
}

// pooled fills a pool with the resources a to d: a cooldown of 10 ms, of b 25 ms, and d leaves by itself.
func (w *world) pooled() {
	w.T.Helper()
	require.Equal(w.T, "added", w.write("add", "0", "1", "0", "1", "%S %S+ 10 %S+ %S+ %S+ %S+", "a", "b", "c"))
	require.Equal(w.T, "added", w.write("add", "45", "1", "0", "1", "", "d"))
	w.operates("set", "b", "25 . .", "of b")
}

// operates runs an operator's call.
func (w *world) operates(verb string, args ...string) {
	w.T.Helper()
	seen := testkit.Must(w.reader.Revision(ctx, w.kind, name)).In(w.T)
	w.made++
	args = append(args, strconv.FormatInt(seen, 10), id("op", w.made))
	if verb == "rest" {
		args = append(args, "1") // exactly
	}
	status := w.write(verb, args...)
	require.NotContains(w.T, []string{"stale", "absent", "incompatible"}, status)
}

// removes takes a resource out of the pool.
func (w *world) removes(key string) {
	w.T.Helper()
	require.Equal(w.T, "removed", w.write("remove", strconv.FormatInt(state.Forever, 10), "op.r", key))
}

func TestANameThatNobodyCanReadIsAnError(t *testing.T) {
	for _, kind := range []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool} {
		inWorldOf(t, string(kind), kind, func(t *testing.T, w *world) {
			require.ErrorIs(t, testkit.Second(w.reader.Name(ctx, kind, "{")), berth.ErrInvalidConfig)
			for text, want := range map[string]error{"f4 new": berth.ErrIncompatible, "mine": state.ErrDamaged} {
				w.Do("SET", w.State, text)
				w.refused(want)
				w.refusedOfPool(state.ErrDamaged)
			}
			w.Do("DEL", w.State)
			w.Do("RPUSH", w.State, "x")
			w.refused(state.ErrDamaged)
			require.ErrorContains(t, testkit.Second(w.reader.Name(ctx, kind, name)), `"`+w.State+`" holds a list`)
			for _, field := range []string{"v", "fmt"} {
				w.Do("DEL", w.State)
				w.Do("HSET", w.State, field, "1")
				w.refused(berth.ErrIncompatible)
				w.refusedOfPool(berth.ErrIncompatible)
			}
			w.Do("HSET", w.State, "v", "3 ?")
			w.refused(state.ErrDamaged)
			require.ErrorContains(t, testkit.Second(w.reader.Name(ctx, kind, name)), `"`+w.State+`" holds a hash`)

			w.Do("DEL", w.State)
			w.used()
			w.Do("DEL", w.Line)
			n := w.row()
			require.Equal(t, []int{0, 0}, []int{n.Holders, n.Waiting}, "a line that is lost had nobody")
			require.True(t, n.Held == 0 || kind == keyspace.Pool, "the items of which say more")
			w.Do("SET", w.Line, "mine")
			_, err := w.reader.Name(ctx, kind, name)
			require.ErrorContains(t, err, `"`+w.Line+`" holds a string`)
			require.ErrorIs(t, err, state.ErrDamaged)
		})
	}
}

// refused fails unless every way to read the name says why not.
func (w *world) refused(want error) {
	w.T.Helper()
	n, err := w.reader.Name(ctx, w.kind, name)
	require.ErrorIs(w.T, err, want)
	require.Equal(w.T, w.kind, n.Kind)
	require.ErrorIs(w.T, testkit.Second(w.reader.HoldersPage(ctx, w.kind, name, "", 1)), want)
	require.ErrorIs(w.T, testkit.Second(w.reader.WaitersPage(ctx, w.kind, name, "", 1)), want)
	require.ErrorIs(w.T, testkit.Second(w.reader.Claim(ctx, w.kind, name, "a.1")), want)
	require.ErrorIs(w.T, testkit.Second(w.reader.Revision(ctx, w.kind, name)), want)
}

// refusedOfPool is the same for the ways that are of pools alone.
func (w *world) refusedOfPool(want error) {
	w.T.Helper()
	if w.kind != keyspace.Pool {
		return
	}
	_, _, resources := w.reader.ResourcesPage(ctx, name, "0")
	_, _, bindings := w.reader.BindingsPage(ctx, name, "0")
	for _, err := range []error{
		resources, bindings, testkit.Second(w.reader.Resources(ctx, name, "a")),
		testkit.Second(w.reader.Binding(ctx, name, "n")),
		testkit.Second(w.reader.HoldersOf(ctx, name, []string{"a"})), testkit.Second(w.reader.Settings(ctx, name)),
	} {
		require.ErrorIs(w.T, err, want)
	}
}

func TestTheNodesOfASwarmAreCounted(t *testing.T) {
	inWorld(t, keyspace.Lock, func(t *testing.T, w *world) {
		none := testkit.Must(w.reader.Census(ctx, time.Hour)).In(t)
		require.Zero(t, none, "there is no swarm")

		now := time.Now().UnixMilli()
		for member, score := range map[string]int64{
			"p:a": now + 1, "p:b": now + 5000, "p:dead": now, "p:longer": 1,
			"c:x": state.Condemned + now, "c:y": state.Condemned + now - 3_599_999, "c:forgotten": state.Condemned + now - 3_600_000,
		} {
			w.Do("ZADD", w.space.Key(keyspace.Swarm, "nodes", keyspace.ProbesPart), strconv.FormatInt(score, 10), member)
		}
		state := w.space.Key(keyspace.Swarm, "nodes", keyspace.StatePart)
		w.Do("HSET", state, "fmt", "2")
		some := testkit.Must(w.reader.Census(ctx, time.Hour)).In(t)
		require.Equal(t, reader.Census{Alive: 2, Zombie: 2, Condemned: 2}, some)

		w.Do("HSET", state, "fmt", "99")
		require.ErrorContains(t, testkit.Second(w.reader.Census(ctx, time.Hour)), "format 99")
	})
}
