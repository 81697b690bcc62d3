package reader_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// every reads all pages, and returns the names.
func (w *world) every(walk reader.Walk, most int) (all []string, pages int) {
	w.T.Helper()
	for cursor := ""; ; {
		page, err := w.reader.NamesPage(context.Background(), walk, cursor, most)
		require.NoError(w.T, err)
		require.Empty(w.T, page.Problems)
		require.LessOrEqual(w.T, len(page.Names), most)
		for _, n := range page.Names {
			require.NoError(w.T, n.Err)
			all = append(all, string(n.Kind)+" "+n.Name)
		}
		pages++
		if cursor = page.Next; cursor == "" {
			slices.Sort(all)
			return all, pages
		}
		require.True(w.T, page.Partial || len(page.Names) == most, "a page ends where it is full, or says why")
	}
}

// thin is the text of a thin name that is held for a minute, or idle.
func thin(held bool) string {
	now := time.Now()
	text := fmt.Sprintf("%016d", now.UnixMicro())
	if held {
		text += fmt.Sprintf(" %013d node.claim 1 - r 60000 60000 0 0 0:0:0:", now.UnixMilli())
	}
	return text
}

func TestTheNamesOfAServerAreReadInPages(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.semaphore("a.1", 2)
		var used, all []string
		for n := range 300 {
			kind, name := []keyspace.Kind{keyspace.Sem, keyspace.Lock}[n%2], fmt.Sprintf("x%03d", n)
			w.Do("SET", w.space.State(kind, name), thin(n%3 == 0))
			w.Do("SET", w.space.Key(kind, name, "other"), "no name")
			all = append(all, string(kind)+" "+name)
			if n%3 == 0 {
				used = append(used, string(kind)+" "+name)
			}
		}
		used, all = append(used, "sem gpu"), append(all, "sem gpu")
		slices.Sort(used)
		slices.Sort(all)
		both := reader.Walk{Redis: w.Redis, Kinds: []keyspace.Kind{keyspace.Sem, keyspace.Lock}}
		for _, most := range []int{1, 7, 100, 1000} {
			got, pages := w.every(both, most)
			require.Equal(t, used, got)
			require.LessOrEqual(t, pages, len(used)/most+2)
		}
		idle := both
		idle.Idle = true
		got, _ := w.every(idle, 33)
		require.Equal(t, all, got)
		idle.Kinds, idle.Prefix = idle.Kinds[1:], "x00"
		got, _ = w.every(idle, 100)
		require.Equal(t, []string{"lock x001", "lock x003", "lock x005", "lock x007", "lock x009"}, got)
		idle.Prefix = "x*"
		got, _ = w.every(idle, 100)
		require.Empty(t, got, "a prefix is no pattern")

		var names []string
		for name, err := range w.reader.Every(context.Background(), w.Redis, keyspace.Sem) {
			require.NoError(t, err)
			names = append(names, "sem "+name)
		}
		slices.Sort(names)
		require.Equal(t, slices.DeleteFunc(all, func(n string) bool { return n[0] != 's' }), names)
	})
}

func TestAPageOfNamesLooksForThemABoundedNumberOfTimes(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		process := w.Process() // takes no time to answer: the clock ends no page
		none := several{process.Redis, map[string]rueidis.Client{}}
		for n := range 450 { // servers without names, each looked at once
			none.nodes[fmt.Sprintf("10.0.0.%03d:1", n)] = process.Redis
		}
		cursor, pages := "", 0
		for ; pages == 0 || cursor != ""; pages++ {
			process.Reset()
			page, err := w.reader.NamesPage(context.Background(), reader.Walk{Redis: none, Kinds: []keyspace.Kind{keyspace.Sem}}, cursor, 100)
			require.NoError(t, err)
			require.LessOrEqual(t, process.Count("SCAN"), 200)
			require.Equal(t, page.Next != "", page.Partial, "it says why it ended")
			cursor = page.Next
		}
		require.Equal(t, 3, pages)
	})
}

func TestAPageOfNamesEndsAtAThousandEntries(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.crowd(400, 10)
		for n := range 40 {
			w.Do("COPY", w.State, w.space.State(keyspace.Sem, id("x", n)))
			w.Do("COPY", w.Line, w.space.Line(keyspace.Sem, id("x", n)))
		}
		page, err := w.reader.NamesPage(context.Background(), reader.Walk{Redis: w.Redis, Kinds: []keyspace.Kind{keyspace.Sem}}, "", 100)
		require.NoError(t, err)
		read := 0
		for _, n := range page.Names {
			require.Equal(t, 400, n.Holders)
			require.True(t, n.Partial, "not all its holds are read")
			read++
		}
		require.Equal(t, 41, read, "each with few of its holds")
	})
}

func TestTheServerOfACursorThatIsGoneIsToldOf(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		for n := range 5 {
			w.Do("SET", w.space.State(keyspace.Sem, id("x", n)), thin(true))
		}
		walk := reader.Walk{Redis: moved{w.Redis, "10.0.0.1:1"}, Kinds: []keyspace.Kind{keyspace.Sem}}
		first, err := w.reader.NamesPage(context.Background(), walk, "", 2)
		require.NoError(t, err)
		require.Len(t, first.Names, 2)
		walk.Redis = moved{w.Redis, "10.0.0.2:1"}
		all := len(first.Names)
		for cursor := first.Next; cursor != ""; {
			page, err := w.reader.NamesPage(context.Background(), walk, cursor, 100)
			require.NoError(t, err)
			all += len(page.Names)
			cursor = page.Next
		}
		require.GreaterOrEqual(t, all, 5, "what was found is read, and the other server's names are, too")

		for _, cursor := range []string{"x", "e30", "eyJ2IjoyfQ"} {
			_, err := w.reader.NamesPage(context.Background(), walk, cursor, 2)
			require.ErrorIs(t, err, berth.ErrInvalidConfig, cursor)
		}
	})
}

// moved is a client whose one server has another address.
type moved struct {
	rueidis.Client
	address string
}

func (c moved) Nodes() map[string]rueidis.Client {
	return map[string]rueidis.Client{c.address: c.Client}
}

func TestAServerThatDoesNotAnswerIsLeftOut(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.Do("SET", w.space.State(keyspace.Sem, "x"), thin(true))
		closed, err := w.Server.Client()
		require.NoError(t, err)
		closed.Close()
		walk := reader.Walk{Redis: several{w.Redis, map[string]rueidis.Client{"a": closed, "b": w.Redis}}, Kinds: []keyspace.Kind{keyspace.Sem}}
		page, err := w.reader.NamesPage(context.Background(), walk, "", 10)
		require.NoError(t, err)
		if page.Next != "" {
			more, err := w.reader.NamesPage(context.Background(), walk, page.Next, 10)
			require.NoError(t, err)
			page.Names = append(page.Names, more.Names...)
			require.Empty(t, more.Next)
		}
		require.Len(t, page.Problems, 1)
		require.ErrorIs(t, page.Problems[0], rueidis.ErrClosing)
		require.True(t, page.Partial)
		require.Len(t, page.Names, 1)

		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = w.reader.NamesPage(ctx, walk, "", 10)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// several is a client of several servers.
type several struct {
	rueidis.Client
	nodes map[string]rueidis.Client
}

func (c several) Nodes() map[string]rueidis.Client { return c.nodes }
