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

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/once"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Three replicas for three minutes, in virtual time: each minute is done once, also the one whose first
// attempt fails.
func TestEachMinuteIsDoneOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		var mu sync.Mutex
		tries, done := 0, map[time.Time]int64{}
		job := func(_ context.Context, run *once.Run) error {
			mu.Lock()
			defer mu.Unlock()
			if tries++; tries == 2 {
				return errors.New("no paper")
			}
			require.Zero(t, done[run.Period().Start])
			done[run.Period().Start] = run.Fence()
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		var replicas sync.WaitGroup
		for range 3 {
			redis, err := server.Client()
			require.NoError(t, err)
			defer redis.Close()
			replicas.Go(func() {
				if err := run(ctx, redis, job); err != nil {
					t.Error(err)
				}
			})
		}
		<-time.After(3*time.Minute - time.Second)
		stop()
		replicas.Wait()
		require.Len(t, done, 3)
		require.Equal(t, 4, tries)
	})
}
