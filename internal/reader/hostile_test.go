package reader_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Whoever may write to the namespace adds members to a line. A member that is none of its band is damaged; the
// others are read as before.

// shorts are members that no script writes, and one that none would.
var shorts = []string{"", "h", "h:", "e", "e:", "x", "x:", "p", "c:", "-", "7-", "w", strings.Repeat("h", state.MaxMember+1)}

// bandsOf are scores of each band of a line.
func bandsOf(now int64) []int64 {
	at := []int64{0, state.LastLane, state.LastLane + 1}
	for _, band := range []int64{state.Holds, state.Rests, state.Expiries} {
		at = append(at, band, band+now+60_000, band+state.Forever-1)
	}
	return at
}

// readAll reads a name in every way.
func (w *world) readAll(memory *reader.Memory) (damaged []string) {
	w.T.Helper()
	ref := berth.Ref{Kind: w.kind, Name: name}
	testkit.Must(w.reader.Name(ctx, w.kind, name)).In(w.T)
	holds := testkit.Must(w.reader.HoldersPage(ctx, w.kind, name, "", reader.Most)).In(w.T)
	waits := testkit.Must(w.reader.WaitersPage(ctx, w.kind, name, "", reader.Most)).In(w.T)
	for _, f := range holds.Found {
		damaged = append(damaged, w.damaged(f.Entry.ID, f.Err)...)
	}
	for _, f := range waits.Found {
		damaged = append(damaged, w.damaged(f.Entry.ID, f.Err)...)
	}
	testkit.Must(w.reader.Claim(ctx, w.kind, name, "a.1")).In(w.T)
	testkit.Must(w.reader.ClaimsPage(ctx, reader.Which{
		Walk: reader.Walk{Redis: w.Redis, Kinds: []keyspace.Kind{w.kind}}, Holds: true, Waits: true, Keep: func(*reader.Listed) bool { return true },
	}, "", 100)).In(w.T)
	found := testkit.Must(w.reader.Snapshots(ctx, nil, 1, reader.SnapLine, []string{"a.1", "z.9"}, ref)).In(w.T)
	require.NoError(w.T, found[0].Err)
	again := testkit.Must(w.reader.Snapshot(ctx, memory, 1, []string{"a.1"}, ref)).In(w.T)
	require.NoError(w.T, again.Err)
	for _, id := range append(found[0].Damaged, again.Damaged...) {
		require.LessOrEqual(w.T, len(id), state.MaxMember)
	}
	return append(damaged, found[0].Damaged...)
}

// damaged are the entries of a listing that cannot be read.
func (w *world) damaged(id string, err error) []string {
	w.T.Helper()
	if err == nil {
		return nil
	}
	require.ErrorIs(w.T, err, state.ErrDamaged)
	require.LessOrEqual(w.T, len(err.Error()), 2*state.MaxMember)
	require.LessOrEqual(w.T, len(id), state.MaxMember)
	return []string{id}
}

func TestAMemberThatIsNoneOfItsBandIsDamaged(t *testing.T) {
	for kind := range kinds {
		inWorldOf(t, string(kind), kind, func(t *testing.T, w *world) {
			w.used()
			var memory reader.Memory
			require.Empty(t, w.readAll(&memory))
			for _, score := range bandsOf(time.Now().UnixMilli()) {
				for _, short := range shorts {
					w.Do("ZADD", w.Line, strconv.FormatInt(score, 10), short)
				}
				damaged := w.readAll(&memory)
				if read := score <= state.LastLane || score > state.Holds+time.Now().UnixMilli() && score < state.Rests; read {
					require.GreaterOrEqual(t, len(damaged), len(shorts)-1, "at %d", score)
				}
				w.Do(append([]string{"ZREM", w.Line}, shorts...)...)
			}
			require.Empty(t, w.readAll(&memory), "nothing else is damaged")
		})
	}
}

// used has the name held and waited for.
func (w *world) used() {
	w.T.Helper()
	own := map[keyspace.Kind][]string{keyspace.Sem: {state.Calm(1)}, keyspace.Lock: {""}, keyspace.Pool: {"", ""}}[w.kind]
	if w.kind == keyspace.Pool {
		w.pooled()
	}
	for _, claim := range []string{"a.1", "b.1", "c.1"} {
		w.ask(claim, own)
	}
}

func TestAShortMemberOfASwarmIsDamaged(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		probes := "berth:swarm:{nodes}:probes"
		w.CallOn([]string{"berth:swarm:{nodes}:state", probes}, "swarm_probe", "old", "1", "l", "1", "86400000")
		w.Advance(2 * ms)
		for _, score := range []int64{5, state.Condemned + time.Now().UnixMilli()} {
			for _, short := range shorts {
				w.Do("ZADD", probes, strconv.FormatInt(score, 10), short)
			}
			dead := testkit.Must(w.reader.Dead(ctx, 86400000, 0, 100)).In(t)
			require.Contains(t, dead.Overdue, "old", "the others are found")
			require.ErrorIs(t, errors.Join(dead.Damaged...), state.ErrDamaged)
			for _, short := range shorts {
				w.Do("ZREM", probes, short)
			}
		}
		w.Do("HSET", "berth:swarm:{nodes}:state", "n", "1", "n:", "1 2 3 x")
		found, _, err := w.reader.NodesPage(ctx, "0")
		require.NoError(t, err)
		require.Len(t, found, 1)
		w.Do("HSET", "berth:swarm:{nodes}:state", "n:far", "1 9223372036854775807 3 x")
		w.Do("ZADD", probes, strconv.FormatInt(state.Condemned+time.Now().UnixMilli(), 10), "c:far")
		nodes, _, err := w.reader.Probed(ctx, "far")
		require.NoError(t, err)
		require.Less(t, nodes["far"].Ends.Year(), 9999, "JSON has no later one")
	})
}

// counted has the reader be one whose commands are counted that a test means.
func (w *world) counted(means func(c link.Command) bool) (looks *testkit.Process, asked *int) {
	looks, asked = w.Process(), new(int)
	looks.OnCommand(func(c link.Command) link.Fate {
		if means(c) {
			*asked++
		}
		return link.Pass
	})
	w.reader = reader.New(scriptkit.NewRunner(looks.Redis, scriptkit.Options{}), w.space, false)
	return looks, asked
}

func TestATextThatIsLongerThanMayBeIsReadOnceInAMinute(t *testing.T) {
	for kind := range kinds {
		inWorldOf(t, string(kind), kind, func(t *testing.T, w *world) {
			w.used()
			_, asked := w.counted(func(c link.Command) bool { return c.Name == "HMGET" && slices.Contains(c.Args, "c:a.1") })
			record := testkit.Must(w.Do("HGET", w.State, "c:a.1").ToString()).In(t)
			w.Do("HSET", w.State, "c:a.1", record+strings.Repeat("x", state.MaxStored))
			look := func() (damaged []string) {
				found := testkit.Must(w.reader.Snapshots(ctx, nil, 1, reader.SnapLine, nil, berth.Ref{Kind: kind, Name: name})).In(t)
				require.NoError(t, found[0].Err)
				return found[0].Damaged
			}
			for range 5 {
				require.Equal(t, []string{"a.1"}, look())
			}
			require.Equal(t, 1, *asked)
			w.Do("HSET", w.State, "c:a.1", record)
			w.Advance(30 * time.Second)
			w.write("renew", "node-a.1", "a.1", "beat")
			w.Advance(31 * time.Second)
			require.Empty(t, look())
			require.Equal(t, 2, *asked)
		})
	}
}

func TestAThinTextThatIsLongerThanMayBeIsReadOnceInAMinute(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		looks, asked := w.counted(func(c link.Command) bool { return c.Name == "MGET" })
		w.Do("SET", w.State, strings.Repeat("x", state.MaxStored+1))
		for range 5 {
			require.ErrorIs(t, testkit.Second(w.reader.Name(ctx, keyspace.Sem, name)), state.ErrDamaged)
		}
		for range 3 { // nor by who looks for names
			page := testkit.Must(w.reader.NamesPage(ctx, sems(looks.Redis), "", 100)).In(t)
			require.Len(t, page.Names, 1)
		}
		require.Equal(t, 1, *asked)
		w.Do("DEL", w.State)
		w.Advance(time.Minute)
		w.row()
		require.Equal(t, 2, *asked)
	})
}
