package reader_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// move is what others do between two trips.
type move struct {
	kind   keyspace.Kind
	before func(w *world)
	moves  func(w *world)
}

func mine(r *state.Record) { r.Owner = "me" }

// permits has claims ask for a permit each.
func permits(capacity int, claims ...string) func(w *world) {
	return func(w *world) {
		for _, claim := range claims {
			w.semaphore(claim, capacity)
		}
	}
}

// entries has claims of one owner ask for the lock.
func entries(claims ...string) func(w *world) {
	return func(w *world) {
		for _, claim := range claims {
			w.ask(claim, []string{"work queued 0 me"}, mine)
		}
	}
}

var moves = map[string]move{
	"a grant":         {keyspace.Sem, permits(2, "a.1"), permits(2, "b.1")},
	"a release":       {keyspace.Sem, permits(2, "a.1", "b.1"), func(w *world) { w.release("a.1") }},
	"one for another": {keyspace.Sem, permits(2, "a.1"), func(w *world) { w.release("a.1"); w.semaphore("b.1", 2) }},
	"a place":         {keyspace.Sem, permits(1, "a.1", "b.1"), permits(1, "c.1")},
	"a cancel":        {keyspace.Sem, permits(1, "a.1", "b.1", "c.1"), func(w *world) { w.release("b.1") }},
	"a resize":        {keyspace.Sem, permits(2, "a.1"), func(w *world) { w.operates("resize", "3", "0", "0") }},
	"a re-entry":      {keyspace.Lock, entries("a.1", "b.1"), entries("c.1")},
	"an inner release": {keyspace.Lock, entries("a.1", "b.1"), func(w *world) {
		w.release("b.1")
		w.ask("d.1", []string{"work queued 0 me"}, mine)
	}},
	"a swap": {keyspace.Pool, func(w *world) { w.pooled(); w.ask("a.1", []string{"", ""}) }, func(w *world) {
		w.write("swap", "node-a.1", "a.1", number(w.row().Fence), "0", "", "0")
	}},
	"a rest":    {keyspace.Pool, (*world).pooled, func(w *world) { w.operates("rest", "a", "1000", "") }},
	"a removal": {keyspace.Pool, (*world).pooled, func(w *world) { w.removes("a") }},
	"the end of a rest": {
		keyspace.Pool, func(w *world) { w.pooled(); w.operates("rest", "a", "1", ""); w.Advance(2 * ms) },
		func(w *world) { w.write("sweep", "n", "0") },
	},
	"a flush": {keyspace.Sem, permits(2, "a.1"), func(w *world) { w.Do("DEL", w.State, w.Line) }},
	"a slim name": {
		keyspace.Lock, func(w *world) { w.ask("a.1", []string{""}); w.ask("b.1", []string{""}) },
		func(w *world) { w.Do("DEL", w.State, w.Line); w.Do("SET", w.State, "1795470968951844") },
	},
}

func TestARowIsOfOneMomentOrSaysThatTheNameMoves(t *testing.T) {
	for what, m := range moves {
		for trip := 1; trip <= 2; trip++ {
			inWorldOf(t, what, m.kind, func(t *testing.T, w *world) {
				m.before(w)
				trips := 0
				w.reader.Between(func() {
					if trips++; trips == trip {
						w.reader.Between(nil)
						m.moves(w)
					}
				})
				got := w.row()
				w.reader.Between(nil)
				require.GreaterOrEqual(t, trips, trip)
				require.False(t, got.Moving, "it was read again")
				want := w.row()
				want.At = got.At
				require.Equal(t, want, got)
			})
		}
	}
}

func TestANameThatNeverStandsStillIsToldAsMoving(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.semaphore("a.0", 2)
		n := 0
		w.reader.Between(func() {
			w.release(id("a", n))
			n++
			w.semaphore(id("a", n), 2)
		})
		require.True(t, w.row().Moving)
		page := testkit.Must(w.reader.HoldersPage(ctx, w.kind, name, "", 10)).In(t)
		require.True(t, page.Moving)
		rows := testkit.Must(w.reader.Rows(ctx, nil, 10, nil, berth.Ref{Kind: w.kind, Name: name})).In(t)
		require.True(t, rows[0].Moving)
	})
}

func TestHeartbeatsMoveNobody(t *testing.T) {
	for kind, before := range map[keyspace.Kind]func(w *world){
		keyspace.Lock: func(w *world) {
			entries("a.1", "b.1")(w)
			w.ask("c.1", []string{""})
		},
		keyspace.Pool: func(w *world) {
			w.pooled()
			w.ask("a.1", []string{"", ""}, lasts(time.Second, time.Second))
		},
	} {
		inWorldOf(t, string(kind), kind, func(t *testing.T, w *world) {
			before(w)
			w.reader.Between(func() {
				w.Advance(ms)
				w.write("renew", "node-a.1", "a.1", "beat")
				w.write("renew", "node-c.1", "c.1", "beat")
			})
			require.False(t, w.row().Moving)
		})
	}
}

// Its score, of a grant, and its record, of a longer hold, are read in two trips.
func TestAHoldThatIsConfirmedMeanwhileHasItsLongerLease(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.semaphore("a.1", 2, lasts(10*time.Second, time.Hour))
		trips := 0
		w.reader.Between(func() {
			if trips++; trips == 2 {
				w.write("renew", "node-a.1", "a.1", "beat")
			}
		})
		page := testkit.Must(w.reader.HoldersPage(ctx, w.kind, name, "", 10)).In(t)
		require.False(t, page.Moving)
		require.Equal(t, time.Hour, page.Found[0].Entry.Left)
	})
}

func TestAClockThatIsAnotherOnesIsNoticed(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.semaphore("a.1", 2)
		w.reader.Between(func() { w.Advance(time.Second + ms) })
		require.True(t, w.row().Moving)
		w.reader.Between(func() { w.Advance(time.Second / 2) })
		require.False(t, w.row().Moving)
	})
}

// Its place, in a lane, and its record are read in two trips. It waits all the time.
func TestAClaimThatTakesAnyResourceMeanwhileIsNotDamaged(t *testing.T) {
	inWorld(t, keyspace.Pool, func(t *testing.T, w *world) {
		bound := func(patience int) func(*state.Record) {
			return func(r *state.Record) { r.Extra = fmt.Sprintf("o 0 0 %d 0:customer", patience) }
		}
		require.Equal(t, "added", w.write("add", "0", "1", "0", "1", "", "a"))
		require.Equal(t, "granted", w.ask("a.1", []string{"", ""}, bound(0)))
		const many = 20
		for n := range many {
			w.ask(id("w", n), []string{"", ""}, bound(500*(n+1)))
		}
		w.reader.Between(func() {
			w.Advance(500 * ms)
			w.write("sweep", "n", "0")
		})
		page := testkit.Must(w.reader.WaitersPage(ctx, w.kind, name, "", 100)).In(t)
		require.True(t, page.Moving)
		require.Len(t, page.Found, many)
		for _, f := range page.Found {
			require.NoError(t, f.Err, f.Entry.ID)
		}
		found := testkit.Must(w.reader.Snapshots(ctx, nil, 1, 100, nil, berth.Ref{Kind: w.kind, Name: name})).In(t)
		require.Empty(t, found[0].Damaged)
		for _, wait := range found[0].Lanes {
			require.Equal(t, 254, wait.Lane, wait.ID)
		}
	})
}
