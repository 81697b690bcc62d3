package model_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/model/pool"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
)

// lends are the functions that are the plain case of a pool.
var lends = []string{"quick_lend", "quick_return", "quick_lengthen"}

func TestThePlainCaseOfAPoolDoesWhatTheGeneralWayDoes(t *testing.T) {
	require.NoError(t, model.Checks(8))
	t.Parallel()
	both, err := parsed()
	require.NoError(t, err)
	space, err := keyspace.New(keyspace.DefaultNamespace)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // as many digits as of now
		server, err := embedded.Start()
		require.NoError(t, err)
		t.Cleanup(server.Close)
		redis, err := server.Client(testkit.RarePings)
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		w, heard, runs := &testkit.World{T: t, Server: server, Redis: redis, Began: time.Now()}, pool.Listen(t, redis, space), 0
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			runs++
			pool.Run(rt, pool.World{
				Redis: redis, Scripts: both.whole, General: both.general, Space: space, Name: fmt.Sprint("proxies", runs),
				Heard: heard, Now: time.Now, Advance: func(d time.Duration, _ ...string) { w.Advance(d) },
			})
		})
		taken, err := redis.Do(context.Background(), redis.B().Mget().Key(lends...).Build()).AsStrSlice()
		require.NoError(t, err)
		t.Log(lends, taken)
		require.NotEmpty(t, taken[0])
		require.NotEmpty(t, taken[1]) // the third one is seldom; TestWhatIsPlainOfAPool shows that it is taken
	})
}
