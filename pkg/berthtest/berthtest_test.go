package berthtest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// The end of a bubble is the check: it fails if one goroutine is left.
func TestEndsWithTheBubble(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(t *testing.T, redis rueidis.Client){
		"unused": func(*testing.T, rueidis.Client) {},
		"used": func(t *testing.T, redis rueidis.Client) {
			t.Helper()
			require.False(t, exists(t, redis, "k"))
		},
		"after the first pings": func(*testing.T, rueidis.Client) {
			time.Sleep(5 * time.Second)
		},
		"with a subscription that nobody ended": func(_ *testing.T, redis rueidis.Client) {
			go func() {
				_ = redis.Receive(context.Background(), redis.B().Subscribe().Channel("c").Build(),
					func(rueidis.PubSubMessage) {})
			}()
			time.Sleep(5 * time.Second)
		},
		"with a command that blocks": func(_ *testing.T, redis rueidis.Client) {
			go func() {
				_ = redis.Do(context.Background(), redis.B().Blpop().Key("list").Timeout(0).Build())
			}()
			time.Sleep(5 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				synctest.Test(t, func(t *testing.T) { use(t, berthtest.Redis(t)) })
			}
		})
	}
}

func TestEndsWithTheTest(t *testing.T) {
	t.Parallel()
	var redis rueidis.Client
	t.Run("inner", func(t *testing.T) {
		redis = berthtest.Redis(t)
		require.False(t, exists(t, redis, "k"))
	})
	err := redis.Do(context.Background(), redis.B().Ping().Build()).Error()
	require.ErrorIs(t, err, rueidis.ErrClosing)
}

// Also where the server would not come back.
func TestANodeIsClosedWithItsTestBeforeItsServer(t *testing.T) {
	t.Parallel()
	var gpu *semaphore.Semaphore
	var permit *semaphore.Permit
	var failed atomic.Int64
	t.Run("inner", func(t *testing.T) {
		server := berthtest.New(t)
		gpu = semaphore.New(server.Node(node.Config{Observer: observe.Func(func(e observe.Event) {
			if e.Kind == observe.ReleaseFailed {
				failed.Add(1)
			}
		})}), "gpu", 1, semaphore.Config{})
		permit = must(gpu.Acquire(t.Context(), nil))(t)
		server.Outage(berth.Forever)
	})
	require.ErrorIs(t, permit.Err(), berth.ErrReleased)
	require.Zero(t, failed.Load(), "it was given back")
	_, err := gpu.Acquire(t.Context(), nil)
	require.ErrorIs(t, err, berth.ErrClosed)
}

func TestExamples(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"Redis": testSessionEnds, "Node": testNightlyJob, "Lose": testOneOfTwoIsLost, "LoseAll": testWorkerStops,
		"Outage": testOutage, "Hang": testHang, "Failover": testFailover,
		"DelayReplies": testLateReplies, "DropReplies": testDroppedReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}
