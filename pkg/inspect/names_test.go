package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// names are those of all pages, in their order.
func (w *world) names(f inspect.NameFilter, most int) (all []string) {
	w.T.Helper()
	for cursor := ""; ; {
		page, err := w.look.Names(context.Background(), f, cursor, most)
		require.NoError(w.T, err)
		require.Empty(w.T, page.Problems)
		require.LessOrEqual(w.T, len(page.Items), most)
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
		for n := range 30 {
			name := fmt.Sprintf("x%02d", n)
			alpha.lock(name, "", nil)
			held = append(held, "lock "+name)
		}
		alpha.permit("gpu", 2, nil)
		alpha.filled("a", "b")
		w.Do("SET", "berth:lock:{idle}:state", fmt.Sprintf("%016d", time.Now().UnixMicro()))
		held = append(held, "pool proxies", "sem gpu")
		for _, most := range []int{1, 7, 100} {
			got := w.names(inspect.NameFilter{}, most)
			slices.Sort(got)
			require.Equal(w.T, held, got, "each once")
		}
		require.Equal(w.T, []string{"sem gpu"}, w.names(inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Sem}}, 10))
		require.Equal(w.T, []string{"lock x07"}, w.names(inspect.NameFilter{Prefix: "x07"}, 10))
		require.Equal(w.T, []string{"lock idle"}, w.names(inspect.NameFilter{Prefix: "i", Idle: true}, 10))
		require.Empty(w.T, w.names(inspect.NameFilter{Waiting: true}, 10))

		for _, f := range []inspect.NameFilter{{}, {Waiting: true}} {
			for _, cursor := range []string{"x", "e30", "eyJ2IjoyfQ"} {
				_, err := w.look.Names(context.Background(), f, cursor, 0)
				require.ErrorIs(w.T, err, berth.ErrInvalidConfig, cursor)
			}
			_, err := w.look.Names(context.Background(), f, "", -1)
			require.ErrorIs(w.T, err, berth.ErrInvalidConfig)
			f.Kinds = []keyspace.Kind{keyspace.Swarm}
			_, err = w.look.Names(context.Background(), f, "", 0)
			require.ErrorIs(w.T, err, berth.ErrInvalidConfig)
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_, err = w.look.Names(ended, inspect.NameFilter{Waiting: f.Waiting}, "", 0)
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
		alpha.permit("b", 1, nil)
		beta.awaitPermit("b", 1, nil)
		beta.awaitPermit("b", 1, nil)
		w.Advance(time.Second) // the registry has heard of them
		want := []string{"lock c", "lock b", "sem b", "lock a"}
		for _, most := range []int{1, 3, 10} {
			require.Equal(w.T, want, w.names(inspect.NameFilter{Waiting: true}, most), "%d a page", most)
		}
		page, err := w.look.Names(context.Background(), inspect.NameFilter{Waiting: true, Prefix: "c"}, "", 0)
		require.NoError(w.T, err)
		require.False(w.T, page.Partial)
		require.Len(w.T, page.Items, 1)
		n := page.Items[0]
		require.Equal(w.T, 3, n.Waiting)
		require.Len(w.T, n.First, 1)
		require.Equal(w.T, "beta", n.First[0].Label)
		require.InDelta(w.T, 1, n.Share(), 1e-9)
		require.Equal(w.T, []string{"sem b"}, w.names(inspect.NameFilter{Waiting: true, Kinds: []keyspace.Kind{keyspace.Sem}}, 10))

		w.Do("HSET", "berth:lock:{a}:state", "v", "9 words of a release to come")
		for _, waiting := range []bool{true, false} {
			page, err = w.look.Names(context.Background(), inspect.NameFilter{Waiting: waiting}, "", 0)
			require.NoError(w.T, err)
			i := slices.IndexFunc(page.Items, func(n inspect.Name) bool { return n.Err != nil })
			require.Equal(w.T, "a", page.Items[i].Name)
			require.ErrorIs(w.T, page.Items[i].Err, berth.ErrIncompatible)
			require.Greater(w.T, len(page.Items), 3, "the others are there")
		}
	})
}

// TestTheNamesOfWhichRunsAreKeptAreReadWhereTheyAreAskedFor has texts of scripts/once/run.lua: of periods of 100 ms.
func TestTheNamesOfWhichRunsAreKeptAreReadWhereTheyAreAskedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		w.process("alpha").lock("done", "", nil)
		keep := func(name string, fields ...string) {
			w.Do(append([]string{"HSET", "berth:once:{" + name + "}:state"}, fields...)...)
		}
		run := func(start int, outcome string) string {
			return fmt.Sprintf("%d %d 7 1 %d %d 0 0 %s node 1:a", start, start+100, start+1, start+20, outcome)
		}
		keep("done", "fmt", "1", "run", run(500, "done"), "success", run(500, "done"))
		keep("fails", "fmt", "1", "run", run(900, "failed"), "success", run(500, "done"))
		keep("runs", "fmt", "1", "run", run(900, "begun"))
		keep("never", "fmt", "1", "run", run(900, "failed"))
		keep("newer", "fmt", "2")
		keep("empty", "fmt", "1")
		keep("damaged", "fmt", "1", "run", "x")
		w.Do("SET", "berth:once:{foreign}:state", "x")
		require.Equal(w.T, []string{"lock done"}, w.names(inspect.NameFilter{}, 10))
		require.Equal(w.T, []string{"lock done"}, w.names(inspect.NameFilter{Prefix: "d", Kinds: []keyspace.Kind{keyspace.Lock}}, 10))

		got := map[string]*inspect.Runs{}
		var bad []string
		for cursor := ""; ; {
			page, err := w.look.Names(context.Background(), inspect.NameFilter{Once: true}, cursor, 3)
			require.NoError(w.T, err)
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
		require.Equal(w.T, map[string]*inspect.Runs{
			"done":  {Success: at(520), Due: at(700), Every: 100 * ms},
			"fails": {Success: at(520), Due: at(700), Every: 100 * ms, Failed: true},
			"runs":  {Due: at(1100), Every: 100 * ms},
			"never": {Due: at(1000), Every: 100 * ms, Failed: true},
			"newer": nil, "damaged": nil, "foreign": nil,
		}, got)
		slices.Sort(bad)
		require.Len(w.T, bad, 3)
		require.Contains(w.T, bad[0], "damaged: berth: what is kept of a run")
		require.Contains(w.T, bad[1], "foreign: ")
		require.Contains(w.T, bad[2], "has the form 2")
	})
}
