package reader_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Of a name with more claims than a page may look at the pages go on where the last one ended, whether that was for the
// entries or because it was full.
func TestTheClaimsOfACrowdAreReadInPages(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.crowd(1200, 2300)
		for n := range 150 {
			w.Do("SET", w.space.State(keyspace.Lock, fmt.Sprintf("x%d", n)), thin(true))
		}
		w.Advance(time.Millisecond)
		for _, test := range []struct {
			most, want int
			keep       func(*reader.Listed) bool
		}{
			{1000, 3650, func(*reader.Listed) bool { return true }},
			{77, 3650, func(*reader.Listed) bool { return true }},
			{100, 1, func(c *reader.Listed) bool { return c.Waiter != nil && c.Waiter.ID == "w.2299" }},
		} {
			which := reader.Which{
				Walk:  reader.Walk{Redis: w.Redis, Kinds: []keyspace.Kind{keyspace.Sem, keyspace.Lock}},
				Holds: true, Waits: true, Keep: test.keep,
			}
			seen, looked := map[string]bool{}, 0
			which.Keep = func(c *reader.Listed) bool {
				looked++
				return test.keep(c)
			}
			for cursor := ""; ; {
				looked = 0
				page, err := w.reader.ClaimsPage(context.Background(), which, cursor, test.most)
				require.NoError(t, err)
				require.Empty(t, page.Problems)
				require.LessOrEqual(t, len(page.Claims), test.most)
				require.LessOrEqual(t, looked, reader.Most+200, "a page is bounded")
				for _, c := range page.Claims {
					claim := c.Name + " "
					if c.Holder != nil {
						claim += c.Holder.ID
					} else {
						claim += c.Waiter.ID
					}
					require.False(t, seen[claim], "each once")
					seen[claim] = true
				}
				if cursor = page.Next; cursor == "" {
					break
				}
				require.True(t, page.Partial || len(page.Claims) == test.most, "a page ends where it is full, or says why")
			}
			require.Len(t, seen, test.want)
		}
	})
}

// What a server that is gone has in a cursor is asked of the others.
func TestClaimsOfAServerThatIsGone(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.crowd(5, 5)
		walk := reader.Walk{Redis: moved{w.Redis, "10.0.0.1:1"}, Kinds: []keyspace.Kind{keyspace.Sem}}
		which := reader.Which{Walk: walk, Holds: true, Waits: true, Keep: func(*reader.Listed) bool { return true }}
		first, err := w.reader.ClaimsPage(context.Background(), which, "", 3)
		require.NoError(t, err)
		require.Len(t, first.Claims, 3)
		which.Redis = moved{w.Redis, "10.0.0.2:1"}
		rest, err := w.reader.ClaimsPage(context.Background(), which, first.Next, 7)
		require.NoError(t, err)
		require.Len(t, rest.Claims, 7, "what was found is read")

		closed, err := w.Server.Client()
		require.NoError(t, err)
		closed.Close()
		which.Redis = several{w.Redis, map[string]rueidis.Client{"a": closed}}
		_, err = w.reader.ClaimsPage(context.Background(), which, "", 3)
		require.ErrorIs(t, err, rueidis.ErrClosing)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = w.reader.ClaimsPage(ended, which, "", 3)
		require.ErrorIs(t, err, context.Canceled)
	})
}
