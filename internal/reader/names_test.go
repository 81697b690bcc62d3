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
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// thin is the text of a thin name that is held for a minute, or idle.
func thin(held bool) string {
	now := time.Now()
	text := fmt.Sprintf("%016d", now.UnixMicro())
	if held {
		text += fmt.Sprintf(" %013d node.claim - 1 r 60000 60000 0 0 0:0:0:", now.UnixMilli())
	}
	return text
}

func TestAPageOfNamesLooksForThemABoundedNumberOfTimes(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		process := w.Process() // takes no time to answer: the clock ends no page
		none := several{process.Redis, map[string]rueidis.Client{}}
		for n := range 450 { // servers without names, each looked at once
			none.nodes[fmt.Sprintf("10.0.0.%03d:1", n)] = process.Redis
		}
		require.Equal(t, 3, pages(func(cursor string) string {
			process.Reset()
			page := testkit.Must(w.reader.NamesPage(ctx, sems(none), cursor, 100)).In(t)
			require.LessOrEqual(t, process.Count("SCAN"), 200)
			require.Equal(t, page.Next != "", page.Partial, "it says why it ended")
			return page.Next
		}))
	})
}

func TestAPageOfNamesEndsAtAThousandEntries(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.crowd(400, 10)
		for n := range 40 {
			w.Do("COPY", w.State, w.space.State(keyspace.Sem, id("x", n)))
			w.Do("COPY", w.Line, w.space.Line(keyspace.Sem, id("x", n)))
		}
		page := testkit.Must(w.reader.NamesPage(ctx, sems(w.Redis), "", 100)).In(t)
		require.Len(t, page.Names, 41, "each with few of its holds")
		for _, n := range page.Names {
			require.Equal(t, 400, n.Holders)
			require.True(t, n.Partial, "not all its holds are read")
		}
	})
}

// What a server that is gone has in a cursor is asked of the others.
func TestTheServerOfACursorThatIsGone(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		w.crowd(5, 5)
		for n := range 5 {
			w.Do("SET", w.space.State(keyspace.Sem, id("x", n)), thin(true))
		}
		which := reader.Which{
			Walk: sems(moved{w.Redis, "10.0.0.1:1"}), Holds: true, Waits: true, Keep: func(*reader.Listed) bool { return true },
		}
		names := testkit.Must(w.reader.NamesPage(ctx, which.Walk, "", 2)).In(t)
		claims := testkit.Must(w.reader.ClaimsPage(ctx, which, "", 3)).In(t)
		require.Equal(t, []int{2, 3}, []int{len(names.Names), len(claims.Claims)})
		which.Redis = moved{w.Redis, "10.0.0.2:1"}
		all := 2
		for cursor := names.Next; cursor != ""; {
			page := testkit.Must(w.reader.NamesPage(ctx, which.Walk, cursor, 100)).In(t)
			all, cursor = all+len(page.Names), page.Next
		}
		require.Equal(t, 6, all, "what was found is read")
		claims = testkit.Must(w.reader.ClaimsPage(ctx, which, claims.Next, 12)).In(t)
		require.Len(t, claims.Claims, 12, "what was found is read")

		closed := testkit.Must(w.Server.Client()).In(t)
		closed.Close()
		which.Redis = several{w.Redis, map[string]rueidis.Client{"a": closed}}
		require.ErrorIs(t, testkit.Second(w.reader.ClaimsPage(ctx, which, "", 3)), rueidis.ErrClosing)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, testkit.Second(w.reader.ClaimsPage(ended, which, "", 3)), context.Canceled)
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

// several is a client of several servers.
type several struct {
	rueidis.Client
	nodes map[string]rueidis.Client
}

func (c several) Nodes() map[string]rueidis.Client { return c.nodes }

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
			only       string // "" for all
		}{{1000, 3650, ""}, {77, 3650, ""}, {100, 1, "w.2299"}} {
			seen, looked := map[string]bool{}, 0
			which := reader.Which{
				Walk:  reader.Walk{Redis: w.Redis, Kinds: []keyspace.Kind{keyspace.Sem, keyspace.Lock}},
				Holds: true, Waits: true, Keep: func(c *reader.Listed) bool {
					looked++
					return test.only == "" || c.Waiter != nil && c.Waiter.ID == test.only
				},
			}
			pages(func(cursor string) string {
				looked = 0
				page := testkit.Must(w.reader.ClaimsPage(ctx, which, cursor, test.most)).In(t)
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
				require.True(t, page.Next == "" || page.Partial || len(page.Claims) == test.most, "a page is full, or says why not")
				return page.Next
			})
			require.Len(t, seen, test.want)
		}
	})
}

// What one read may take at the most, and one attempt of it.
const (
	within  = 10 * time.Second
	attempt = 3 * time.Second
)

// silence is how servers do not answer.
var silence = map[string]func(p *testkit.Process){
	"it stands still": func(p *testkit.Process) { p.Stall() },
	"it is dead":      func(p *testkit.Process) { p.Die() },
}

// untilItFails reads pages until one is the last, or an error.
func untilItFails(read func(cursor string) (string, int, []error, error)) (found int, problems []error, err error) {
	pages(func(cursor string) string {
		next, n, told, failed := read(cursor)
		if found, problems, err = found+n, append(problems, told...), failed; failed != nil {
			return ""
		}
		return next
	})
	return found, problems, err
}

// listings are all that go through the servers. Each returns its errors, and those that are told beside what was found.
var listings = map[string]func(r *reader.Reader, walk reader.Walk) (found int, problems []error, err error){
	"names": func(r *reader.Reader, walk reader.Walk) (int, []error, error) {
		return untilItFails(func(cursor string) (string, int, []error, error) {
			page, err := r.NamesPage(ctx, walk, cursor, 10)
			return page.Next, len(page.Names), page.Problems, err
		})
	},
	"claims": func(r *reader.Reader, walk reader.Walk) (int, []error, error) {
		which := reader.Which{Walk: walk, Holds: true, Waits: true, Keep: func(*reader.Listed) bool { return true }}
		return untilItFails(func(cursor string) (string, int, []error, error) {
			page, err := r.ClaimsPage(ctx, which, cursor, 10)
			return page.Next, len(page.Claims), page.Problems, err
		})
	},
	"each": func(r *reader.Reader, walk reader.Walk) (found int, problems []error, err error) {
		for _, failed := range r.Every(ctx, walk.Redis, walk.Kinds[0]) {
			if failed == nil {
				found++
			} else {
				problems = append(problems, failed)
			}
		}
		if found == 0 && len(problems) > 0 {
			err, problems = reader.Joined(problems...), problems[:len(problems)-1]
		}
		return found, problems, err
	},
}

// servers are clients of servers of which some answer.
func (w *world) servers(silent func(p *testkit.Process), answers ...bool) (*reader.Reader, reader.Walk) {
	nodes := map[string]rueidis.Client{}
	for i, does := range answers {
		p := w.Process()
		require.NoError(w.T, p.Redis.Do(ctx, p.Redis.B().Ping().Build()).Error())
		if !does {
			silent(p)
		}
		nodes[fmt.Sprintf("10.0.0.%d:6379", i)] = p.Redis
	}
	run := scriptkit.NewRunner(w.Redis, scriptkit.Options{})
	return reader.New(run, w.space, false), sems(several{w.Redis, nodes})
}

// Servers that do not answer are told of once each, and those that do are read: in the midst of dead ones, and behind all
// of them. Where none does, that is an error.
func TestAListingOfServersThatDoNotAnswer(t *testing.T) {
	for name, list := range listings {
		for how, silent := range silence {
			for _, answers := range [][]bool{
				{false}, {false, false, false}, {false, true, false}, {false, false, false, true}, {true, false, false},
			} {
				inWorldOf(t, fmt.Sprint(name, ", ", how, answers), keyspace.Sem, func(t *testing.T, w *world) {
					w.Do("SET", w.space.State(keyspace.Sem, "x"), thin(true))
					r, walk := w.servers(silent, answers...)
					began := time.Now()
					found, problems, err := list(r, walk)
					require.LessOrEqual(t, time.Since(began), within+attempt*time.Duration(min(1, len(answers)-1)), "all others together")
					if slices.Contains(answers, true) {
						require.NoError(t, err)
						require.Equal(t, 1, found)
						require.Len(t, problems, len(answers)-1)
					} else {
						require.ErrorIs(t, err, berth.ErrUnavailable)
						require.Zero(t, found)
					}
				})
			}
		}
	}
}

// A server that falls silent in the midst of a walk is an error where it is the only one.
func TestAServerThatFallsSilentBetweenPages(t *testing.T) {
	for _, others := range []int{0, 2} {
		inWorldOf(t, fmt.Sprint(others, " others"), keyspace.Sem, func(t *testing.T, w *world) {
			for i := range 3 {
				w.Do("SET", w.space.State(keyspace.Sem, fmt.Sprint("x", i)), thin(true))
			}
			p := w.Process()
			nodes := map[string]rueidis.Client{"10.0.1.0:6379": p.Redis}
			for i := range others {
				nodes[fmt.Sprintf("10.0.%d.0:6379", 2*i)] = w.Redis // one before it, and one behind
			}
			walk := sems(several{w.Redis, nodes})
			found, problems, failed := untilItFails(func(cursor string) (string, int, []error, error) {
				page, err := w.reader.NamesPage(ctx, walk, cursor, 1)
				p.Stall()
				return page.Next, len(page.Names), page.Problems, err
			})
			require.Positive(t, found)
			if others > 0 {
				require.NoError(t, failed)
				require.Len(t, problems, 1)
			} else {
				require.ErrorIs(t, failed, berth.ErrUnavailable)
			}
		})
	}
}

func TestTheEndOfAListingSaysWhyNothingWasRead(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		r, walk := w.servers(silence["it stands still"], false)
		ctx, cancel := context.WithTimeout(ctx, attempt+time.Second)
		defer cancel()
		_, err := r.NamesPage(ctx, walk, "", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, berth.ErrUnavailable)
	})
}
