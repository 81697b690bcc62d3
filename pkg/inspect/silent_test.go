package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	stored "github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// A listing of a server that does not answer says so, after as long as one read may take: an empty one would say that nothing
// is held.
func TestAListingOfASilentServerIsAnError(t *testing.T) {
	listings := map[string]func(r *inspect.Reader) error{
		"names": func(r *inspect.Reader) error {
			_, err := r.Names(context.Background(), inspect.NameFilter{}, "", 0)
			return err
		},
		"names that are waited for": func(r *inspect.Reader) error {
			_, err := r.Names(context.Background(), inspect.NameFilter{Waiting: true}, "", 0)
			return err
		},
		"claims": func(r *inspect.Reader) error {
			_, err := r.Claims(context.Background(), inspect.ClaimFilter{}, "", 0)
			return err
		},
		"circles": func(r *inspect.Reader) error {
			_, err := r.Circles(context.Background(), inspect.CircleOptions{Within: time.Minute})
			return err
		},
		"circles, within less": func(r *inspect.Reader) error {
			_, err := r.Circles(context.Background(), inspect.CircleOptions{})
			return err
		},
		"circles, within less than an attempt": func(r *inspect.Reader) error {
			_, err := r.Circles(context.Background(), inspect.CircleOptions{Within: time.Second})
			return err
		},
		"an overview": func(r *inspect.Reader) error {
			o, err := r.Overview(inspect.NameFilter{})
			require.NoError(t, err)
			_, err = o.Read(context.Background())
			return err
		},
	}
	for name, list := range listings {
		for how, silent := range map[string]func(p *testkit.Process){
			"stopped": func(p *testkit.Process) { p.Stall() },
			"dead":    func(p *testkit.Process) { p.Die() },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.process("alpha").lock("nightly", "", nil)
					p := w.Process()
					look, err := inspect.New(p.Redis, inspect.Config{})
					require.NoError(w.T, err)
					require.NoError(w.T, list(look))
					silent(p)
					began := time.Now()
					err = list(look)
					require.ErrorIs(w.T, err, berth.ErrUnavailable)
					require.NotErrorIs(w.T, err, context.DeadlineExceeded, "the caller has set no limit")
					require.LessOrEqual(w.T, time.Since(began), 10*time.Second)
				})
			})
		}
	}
}

// A server that falls silent behind the first answer is waited for once, not once for each batch of names.
func TestAServerThatFallsSilentInTheMidst(t *testing.T) {
	inWorld(t, func(w *world) {
		for n := range 300 { // three batches
			member := stored.Member(string(keyspace.Lock), fmt.Sprintf("n%03d", n))
			w.Do("ZADD", fmt.Sprintf("berth:waits:{%d}:names", stored.Shard(member)), "99999999999999", member)
		}
		p := w.Process()
		look, err := inspect.New(p.Redis, inspect.Config{})
		require.NoError(w.T, err)
		p.OnCommand(func(c link.Command) link.Fate {
			if len(c.Args) > 0 && strings.Contains(c.Args[0], "{n") {
				p.Stall()
			}
			return link.Pass
		})
		began := time.Now()
		_, err = look.Names(context.Background(), inspect.NameFilter{Waiting: true}, "", 0)
		require.ErrorIs(w.T, err, berth.ErrUnavailable)
		require.LessOrEqual(w.T, time.Since(began), 10*time.Second)
	})
}
