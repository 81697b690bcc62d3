package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Three replicas for three minutes, in virtual time: each tick is done once.
func TestEachTickIsDoneOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		var mu sync.Mutex
		done, fences := map[time.Time]int{}, map[int64]bool{}
		do := func(_ context.Context, tick time.Time, fence int64) error {
			mu.Lock()
			defer mu.Unlock()
			done[tick]++
			require.False(t, fences[fence])
			fences[fence] = true
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		var replicas sync.WaitGroup
		for range 3 {
			redis, err := server.Client()
			require.NoError(t, err)
			defer redis.Close()
			replicas.Go(func() {
				if err := run(ctx, redis, do); err != nil {
					t.Error(err)
				}
			})
		}
		<-time.After(3*every + every/2)
		stop()
		replicas.Wait()
		require.Len(t, done, 3)
		for tick, times := range done {
			require.Equal(t, 1, times, tick)
		}
	})
}

func TestAFailedTickMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	locks, err := qlock.New(berthtest.Redis(t), qlock.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, locks.Close(context.Background())) })
	tick := time.Now().Truncate(every)
	noPaper := errors.New("no paper")
	done := 0
	for _, step := range []struct{ fails, want error }{
		{noPaper, noPaper}, // given back
		{nil, nil},         // done by another replica, and kept
		{noPaper, nil},     // not tried
	} {
		err := once(t.Context(), locks, tick, func(context.Context, time.Time, int64) error {
			done++
			return step.fails
		})
		require.ErrorIs(t, err, step.want)
	}
	require.Equal(t, 2, done)
}
