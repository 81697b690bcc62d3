package reader_test

import (
	"context"
	"fmt"
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

// listings are all that go through the servers. Each returns its errors, and those that are told beside what was found.
var listings = map[string]func(r *reader.Reader, walk reader.Walk) (found int, problems []error, err error){
	"names": func(r *reader.Reader, walk reader.Walk) (found int, problems []error, err error) {
		for cursor, more := "", true; more && err == nil; more = cursor != "" {
			var page reader.Names
			page, err = r.NamesPage(context.Background(), walk, cursor, 10)
			cursor, found, problems = page.Next, found+len(page.Names), append(problems, page.Problems...)
		}
		return found, problems, err
	},
	"claims": func(r *reader.Reader, walk reader.Walk) (found int, problems []error, err error) {
		which := reader.Which{Walk: walk, Holds: true, Waits: true, Keep: func(*reader.Listed) bool { return true }}
		for cursor, more := "", true; more && err == nil; more = cursor != "" {
			var page reader.Claims
			page, err = r.ClaimsPage(context.Background(), which, cursor, 10)
			cursor, found, problems = page.Next, found+len(page.Claims), append(problems, page.Problems...)
		}
		return found, problems, err
	},
	"each": func(r *reader.Reader, walk reader.Walk) (found int, problems []error, err error) {
		for _, failed := range r.Every(context.Background(), walk.Redis, walk.Kinds[0]) {
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
		require.NoError(w.T, p.Redis.Do(context.Background(), p.Redis.B().Ping().Build()).Error())
		if !does {
			silent(p)
		}
		nodes[fmt.Sprintf("10.0.0.%d:6379", i)] = p.Redis
	}
	run := scriptkit.NewRunner(w.Redis, scriptkit.Options{})
	return reader.New(run, w.space, false), reader.Walk{Redis: several{w.Redis, nodes}, Kinds: []keyspace.Kind{keyspace.Sem}}
}

func TestAListingThatNoServerAnswersIsAnError(t *testing.T) {
	for name, list := range listings {
		for how, silent := range silence {
			for _, n := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s, %s, %d", name, how, n), func(t *testing.T) {
					inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
						w.Do("SET", w.space.State(keyspace.Sem, "x"), thin(true))
						r, walk := w.servers(silent, make([]bool, n)...)
						began := time.Now()
						found, _, err := list(r, walk)
						require.ErrorIs(t, err, berth.ErrUnavailable)
						require.Zero(t, found)
						limit := within
						if n > 1 {
							limit += attempt // all others together
						}
						require.LessOrEqual(t, time.Since(began), limit)
					})
				})
			}
		}
	}
}

// Servers that do not answer are told of once each, and those that do are read: in the midst of dead ones, and behind all
// of them.
func TestAListingOfServersOfWhichSomeAnswer(t *testing.T) {
	for name, list := range listings {
		for _, answers := range [][]bool{{false, true, false}, {false, false, false, true}, {true, false, false}} {
			t.Run(fmt.Sprint(name, answers), func(t *testing.T) {
				inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
					w.Do("SET", w.space.State(keyspace.Sem, "x"), thin(true))
					r, walk := w.servers(silence["it stands still"], answers...)
					began := time.Now()
					found, problems, err := list(r, walk)
					require.NoError(t, err)
					require.Equal(t, 1, found)
					require.Len(t, problems, len(answers)-1)
					require.LessOrEqual(t, time.Since(began), within+attempt)
				})
			})
		}
	}
}

// A server that falls silent in the midst of a walk is an error where it is the only one.
func TestAServerThatFallsSilentBetweenPages(t *testing.T) {
	for _, others := range []int{0, 2} {
		t.Run(fmt.Sprint(others, " others"), func(t *testing.T) {
			inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
				for i := range 3 {
					w.Do("SET", w.space.State(keyspace.Sem, fmt.Sprint("x", i)), thin(true))
				}
				p := w.Process()
				nodes := map[string]rueidis.Client{"10.0.1.0:6379": p.Redis}
				for i := range others {
					nodes[fmt.Sprintf("10.0.%d.0:6379", 2*i)] = w.Redis // one before it, and one behind
				}
				walk := reader.Walk{Redis: several{w.Redis, nodes}, Kinds: []keyspace.Kind{keyspace.Sem}}
				first, err := w.reader.NamesPage(context.Background(), walk, "", 1)
				require.NoError(t, err)
				require.NotEmpty(t, first.Next)
				p.Stall()
				var failed error
				problems := 0
				for cursor, more := first.Next, true; more; more = cursor != "" {
					page, err := w.reader.NamesPage(context.Background(), walk, cursor, 1)
					failed, cursor, problems = err, page.Next, problems+len(page.Problems)
				}
				if others > 0 {
					require.NoError(t, failed)
					require.Equal(t, 1, problems)
				} else {
					require.ErrorIs(t, failed, berth.ErrUnavailable)
				}
			})
		})
	}
}

func TestTheEndOfAListingSaysWhyNothingWasRead(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		r, walk := w.servers(silence["it stands still"], false)
		ctx, cancel := context.WithTimeout(context.Background(), attempt+time.Second)
		defer cancel()
		_, err := r.NamesPage(ctx, walk, "", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, berth.ErrUnavailable)
	})
}
