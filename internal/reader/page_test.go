package reader_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-go/berth/internal/testkit"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

func number(n int64) string { return strconv.FormatInt(n, 10) }

// crowd writes a fat semaphore with so many holds and waiting claims, as scripts would.
func (w *world) crowd(holds, waits int) {
	w.T.Helper()
	now := time.Now().UnixMilli()
	record := func(phase byte, claim string, ticket int64) string {
		r := state.Record{Weight: 1, Wait: time.Hour, Lease: time.Hour, Phase: phase, Node: "node-" + claim, Ticket: ticket, Fence: now, Heard: time.UnixMilli(now), Granted: time.UnixMilli(now)}
		return state.Text(&r)
	}
	fields := []string{"HSET", w.State, "v", fmt.Sprintf("3 %016d %013d %013d %013d %013d %d %d %d 0 0 0 0 0 0",
		now*1000, now+7200_000, now+3600_000, now, now, state.Base+holds, 1_000_000+waits, state.Base+holds)}
	line := []string{"ZADD", w.Line, "9007199254740991", "-"}
	for n := range holds {
		claim := id("h", n)
		fields, line = append(fields, "c:"+claim, record('h', claim, now)), append(line, number(state.Holds+now+3600_000+int64(n/10)), "h:"+claim)
	}
	for n := range waits {
		claim := id("w", n)
		fields, line = append(fields, "c:"+claim, record('w', claim, now+int64(n))), append(line, "254", fmt.Sprintf("%013d-%s", now+int64(n), claim))
	}
	w.Do(fields...)
	w.Do(line...)
}

// Holders renew, and so go to the end; waiters leave, often where a page ends. Those that stay are all there.
func TestPagesMissNobodyWhoStays(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		const holds, waits = 600, 1500
		w.crowd(holds, waits)
		now := time.Now().UnixMilli()
		gone, beats := map[string]bool{}, 0
		leave := func(n int) {
			claim := id("w", n)
			w.Do("ZREM", w.Line, fmt.Sprintf("%013d-%s", now+int64(n), claim))
			gone[claim] = true
		}
		seen, order := map[string]bool{}, []string{}
		w.reader.Between(func() {
			// The first of the line, and the first on the page that is being read.
			beats++
			leave(beats)
			if n := len(order); n > 0 {
				var at int
				testkit.Must(fmt.Sscanf(order[n-1], "w.%d", &at)).In(t)
				leave(at)
				if beats%3 == 0 {
					for k := range 40 {
						leave(max(at-k, 0))
					}
				}
			}
		})
		pages(func(cursor string) string {
			page := testkit.Must(w.reader.WaitersPage(ctx, w.kind, name, cursor, 100)).In(t)
			for _, f := range page.Found {
				require.NoError(t, f.Err)
				require.False(t, seen[f.Entry.ID], "%s is there twice", f.Entry.ID)
				seen[f.Entry.ID] = true
				order = append(order, f.Entry.ID)
			}
			return page.Next
		})
		for n := range waits {
			require.True(t, seen[id("w", n)] || gone[id("w", n)], "w.%d stays, and is missed", n)
		}

		renewed := 0
		w.reader.Between(func() {
			for range 5 { // to the end of all holds
				claim := id("h", renewed%holds)
				renewed += 7
				w.Do("ZADD", w.Line, number(state.Holds+now+3600_000+1000+int64(renewed)), "h:"+claim)
			}
		})
		all := map[string]bool{}
		n := pages(func(cursor string) string {
			page := testkit.Must(w.reader.HoldersPage(ctx, w.kind, name, cursor, 100)).In(t)
			for _, f := range page.Found {
				all[f.Entry.ID] = true
			}
			return page.Next
		})
		require.Len(t, all, holds, "a hold is missed")
		require.Less(t, n, 100)
	})
}

func TestAPageGoesOnWhereTheOneBeforeItsLastClaimStood(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		const many = 300 // in one lane, so that a search has to find the place
		w.crowd(0, many)
		now := time.Now().UnixMilli()
		place := func(n int) string { return fmt.Sprintf("%013d-%s", now+int64(n), id("w", n)) }
		for _, at := range []int{0, 1, 15, 16, 17, 150, many - 2, many - 1} {
			for _, gone := range []bool{false, true} {
				if gone {
					w.Do("ZREM", w.Line, place(at))
				}
				for _, most := range []int{1, 2, 50} {
					page := testkit.Must(w.reader.WaitersPage(ctx, w.kind, name, "254 "+place(at), most)).In(t)
					var got []string
					for _, f := range page.Found {
						got = append(got, f.Entry.ID)
					}
					var want []string
					for n := at + 1; n < many && len(want) < most; n++ {
						want = append(want, id("w", n))
					}
					require.Equal(t, want, got, "behind %d, %d of them, it is gone: %t", at, most, gone)
					require.Equal(t, at+len(want) < many-1, page.Next != "", "whether others follow")
				}
				if gone {
					w.Do("ZADD", w.Line, "254", place(at))
				}
			}
		}
		page := testkit.Must(w.reader.WaitersPage(ctx, w.kind, name, "254 "+place(99), 10)).In(t)
		require.Equal(t, 100, page.Found[0].Entry.Ahead)
	})
}

func TestACursorThatIsNoneIsRefused(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		for _, cursor := range []string{"x", "1", "-1 a", "99999999999999999999 a", " a"} {
			_, err := w.reader.WaitersPage(ctx, w.kind, name, cursor, 1)
			require.ErrorIs(t, err, berth.ErrInvalidConfig, cursor)
			require.ErrorContains(t, err, "cursor")
		}
		_, err := w.reader.HoldersPage(ctx, w.kind, name, "1 a", 1)
		require.NoError(t, err, "a name that is not there any more")
	})
}

// refs are names, as "kind name".
func refs(all ...string) (refs []berth.Ref) {
	for _, text := range all {
		kind, name, _ := strings.Cut(text, " ")
		refs = append(refs, berth.Ref{Kind: keyspace.Kind(kind), Name: name})
	}
	return refs
}

func TestRowsOfManyNamesAreReadTogether(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.semaphore("a.1", 2)
		w.Do("SET", w.space.State(keyspace.Lock, "thin"), "1795470968951844")
		w.Do("SET", w.space.State(keyspace.Lock, "mine"), "mine")
		trips := 1
		w.reader.Between(func() { trips++ })
		rows := testkit.Must(w.reader.Rows(ctx, w.Redis, 9, nil, refs("sem gpu", "lock thin", "lock mine", "pool none")...)).In(t)
		require.Equal(t, 3, trips)
		require.Equal(t, []int{1, 0, 0, 0}, []int{rows[0].Held, rows[1].Held, rows[2].Held, rows[3].Held})
		require.Equal(t, []int{2, 1, 0, 0}, []int{rows[0].Capacity, rows[1].Capacity, rows[2].Capacity, rows[3].Capacity})
		require.ErrorIs(t, rows[2].Err, state.ErrDamaged)
		require.NoError(t, rows[3].Err)
	})
}
