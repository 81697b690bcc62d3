package model_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/model/pool"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/pkg/keyspace"
)

// poolPlains are the functions that are the plain case of a pool.
var poolPlains = []string{"fast_pool_acquire", "fast_pool_release", "fast_pool_renew"}

func TestThePlainCaseOfAPoolDoesWhatTheGeneralWayDoes(t *testing.T) {
	require.NoError(t, amount.Histories(2))
	both, err := parsed()
	require.NoError(t, err)
	space, err := keyspace.New(keyspace.DefaultNamespace)
	require.NoError(t, err)
	testkit.In(t, "", "", "", func(t *testing.T, w *testkit.World) {
		heard, runs := pool.Listen(t, w.Redis, space), 0
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			runs++
			pool.Run(rt, pool.World{
				Redis: w.Redis, Scripts: both.whole, General: both.general, Space: space, Name: fmt.Sprint("proxies", runs),
				Heard: heard, Now: time.Now, Advance: func(d time.Duration, _ ...string) { w.Advance(d) },
			})
		})
		taken, err := w.Do(append([]string{"MGET"}, poolPlains...)...).AsStrSlice()
		require.NoError(t, err)
		t.Log(poolPlains, taken)
		require.NotContains(t, taken, "", "each of them is taken")
	})
}
