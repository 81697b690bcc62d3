package rolling

import (
	"fmt"
	"hash/fnv"
	"testing"
	"testing/fstest"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/model"
	poolmodel "github.com/berth-go/berth/internal/model/pool"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/test/harness"
)

const histories = 6 // of each model

// Every second process is one of the previous release, and the model of the semaphore
// knows nothing of it.
func TestASemaphoreOfTwoReleasesKeepsTheLaws(t *testing.T) {
	require.NoError(t, amount.Histories(histories))
	older := newSwap(today.library, previous(t).library)
	testkit.In(t, name, "berth:sem:{rolled}:state", "berth:sem:{rolled}:line", func(t *testing.T, w *testkit.World) {
		runs, processes := 0, 0
		// Hidden in a TB, because rapid asks a T for what bubbles do not have.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			runs++
			processes = 0
			model.Run(rt, model.World{
				Redis: w.Redis, Namespace: "berth", Name: fmt.Sprint(name, runs), Lease: lease, Exact: true,
				Connect: func() (rueidis.Client, *link.Link) {
					l := link.New(nil)
					redis, err := w.Server.Client(link.RarePings, l.Wrap)
					require.NoError(t, err)
					if processes++; processes%2 == 0 {
						redis = older.client(redis)
					}
					return redis, l
				},
				Advance: w.Advance,
				Settle:  func(func() bool) { w.Advance(0) },
			})
		})
		require.Positive(t, older.total())
	})
}

// Each call of a pool's scripts is of one release or the other, as it comes.
func TestAPoolOfTwoReleasesKeepsTheLaws(t *testing.T) {
	t.Parallel()
	require.NoError(t, amount.Histories(histories))
	was := previous(t)
	redis := harness.Shared(t).Client(t)
	ns := harness.Namespace(t)
	space, err := keyspace.New(ns)
	require.NoError(t, err)
	clock := poolmodel.NewClock(t, redis, ns+":clock")
	library := clock.Scripts()
	kept := onClock(t, was, clock)
	require.NoError(t, scriptkit.NewRunner(redis, scriptkit.Options{CallTimeout: testkit.Patience}).Load(t.Context(), kept.Scripts()...))
	older := newSwap(library, kept)
	calls, asked, runs := 0, 0, 0
	older.keep = func(script string) bool {
		calls, asked = calls+1, asked+1
		hash := fnv.New32a()
		_, _ = fmt.Fprint(hash, script, calls)
		return hash.Sum32()&64 == 0
	}
	heard := poolmodel.Listen(t, redis, space)
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		calls = 0 // so that a history can be run again
		poolmodel.Run(rt, poolmodel.World{
			Redis: older.client(redis), Scripts: library, Space: space, Name: fmt.Sprint(name, runs),
			Heard: heard, Now: clock.Now, Advance: clock.Advance,
		})
	})
	require.Positive(t, older.total())
	require.Less(t, older.total(), asked, "some calls were today's")
}

// onClock is a kept release whose scripts go by a clock.
func onClock(t *testing.T, r release, clock *poolmodel.Clock) *scriptkit.Library {
	t.Helper()
	files := fstest.MapFS{}
	for _, script := range r.scripts {
		files[script.Name+".lua"] = &fstest.MapFile{Data: clock.Script([]byte(*script.File))}
	}
	changed, err := compose.Parse(files)
	require.NoError(t, err)
	return changed.Library()
}
