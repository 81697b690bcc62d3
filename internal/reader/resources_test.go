package reader_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-go/berth/internal/testkit"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// resource is one that is read alone.
func (w *world) resource(key string) reader.Resource {
	w.T.Helper()
	found := testkit.Must(w.reader.Resources(ctx, name, key)).In(w.T)
	require.Len(w.T, found, 1)
	return found[0]
}

func TestAResourceThatMovesIsReadAgain(t *testing.T) {
	for what, move := range map[string]func(w *world){
		"a rest":            func(w *world) { w.operates("rest", "a", "1000", "") },
		"a grant":           func(w *world) { w.ask("a.1", []string{"", ""}) },
		"a removal":         func(w *world) { w.removes("a") },
		"settings":          func(w *world) { w.operates("set", "a", "25 . .", "of a") },
		"something foreign": func(w *world) { w.Do("HSET", w.Others[0], "ia", "?") },
	} {
		inWorldOf(t, what, keyspace.Pool, func(t *testing.T, w *world) {
			w.pooled()
			w.reader.Between(func() {
				w.reader.Between(nil)
				move(w)
			})
			got := w.resource("a")
			require.Equal(t, w.resource("a"), got)
		})
	}
}

func TestAResourceThatNeverStandsStillIsLeasedWhileSomebodyHasIt(t *testing.T) {
	inWorld(t, keyspace.Pool, func(t *testing.T, w *world) {
		require.Equal(t, "added", w.write("add", "0", "1", "0", "1", "", "a"))
		w.ask("a.0", []string{"", ""})
		n := 0
		w.reader.Between(func() {
			w.release(id("a", n))
			n++
			w.ask(id("a", n), []string{"", ""})
		})
		got := w.resource("a")
		require.Equal(t, reader.Leased, got.Word)
		require.Empty(t, got.Holders)
		require.Equal(t, 3, n)
	})
}

func TestOfSharedResourcesNoTripReadsMoreThanAThousandEntries(t *testing.T) {
	inWorld(t, keyspace.Pool, func(t *testing.T, w *world) {
		var keys []string
		for i := range 8 {
			keys = append(keys, fmt.Sprint("r", i))
		}
		w.write("add", append([]string{"0", "100", "0", "1", ""}, keys...)...)
		for i := range 800 {
			w.ask(id("a", i), []string{"", ""})
		}
		trips := 0
		w.reader.Between(func() { trips++ })
		found := testkit.Must(w.reader.Resources(ctx, name, keys...)).In(t)
		require.Equal(t, 2, trips)
		held := 0
		for i, r := range found {
			require.Equal(t, keys[i], r.Key)
			held += len(r.Holders)
		}
		require.Equal(t, 800, held)
	})
}

func TestOfABindingWhoseResourceHasGoneNothingIsTold(t *testing.T) {
	inWorld(t, keyspace.Pool, func(t *testing.T, w *world) {
		w.pooled()
		require.Equal(t, "bound", w.write("bind", "n", "a", "1000"))
		require.Equal(t, "bound", w.write("bind", "m", "b", "0"))
		read := func() []berth.Binding {
			found, next, err := w.reader.BindingsPage(ctx, name, "0")
			require.NoError(t, err)
			require.Equal(t, "0", next)
			return found
		}
		require.ElementsMatch(t, []berth.Binding{
			{Name: "n", Resource: "a", Left: time.Second}, {Name: "m", Resource: "b", Left: berth.Forever},
		}, read())
		w.reader.Between(func() { w.removes("a") })
		require.Equal(t, []berth.Binding{{Name: "m", Resource: "b", Left: berth.Forever}}, read())
		w.reader.Between(nil)
		one := testkit.Must(w.reader.Binding(ctx, name, "n")).In(t)
		require.Equal(t, berth.Binding{Name: "n"}, one)
	})
}
