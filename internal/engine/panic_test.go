package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/observe"
)

// wanting is a server that says in its first heartbeat that the hold is wanted back.
type wanting struct {
	*fake
	first sync.Once
}

func (w *wanting) BeatMany(ctx context.Context, batches []engine.Batch, answered func(int, engine.Round, error)) {
	oneByOne(ctx, func(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
		round, err := w.Beat(ctx, name, mode, claims)
		w.first.Do(func() { round.Status[0].Word = engine.WordWanted })
		return round, err
	}, batches, answered)
}

// What panics on an answer is here the observer that hears of the wish.
func TestAPanicOnOneAnswerLetsTheHeartbeatGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 7}
		var mu sync.Mutex
		var told []observe.Event
		e := engine.New(engine.Config{
			Scripts: &wanting{fake: f}, Node: "n", Wait: wait, CallTimeout: 10 * time.Second, CleanupTimeout: time.Second, Clock: clock.New(),
			Observe: func(ev observe.Event) {
				mu.Lock()
				defer mu.Unlock()
				switch ev.Kind {
				case observe.Wanted:
					panic(guard.Meant("no such index"))
				case observe.Panicked:
					told = append(told, ev)
				}
			},
		})
		h, err := e.Acquire(context.Background(), &engine.Claim{ID: e.ClaimID(), Name: "x", Record: engine.Record{Weight: 1, Wait: wait, Lease: wait}}, 0)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, h.Err())
		beats, _ := f.counts()
		require.Greater(t, beats, 20)
		mu.Lock()
		require.Len(t, told, 1)
		require.ErrorContains(t, told[0].Err, "the answer to a heartbeat panicked: no such index")
		mu.Unlock()
		require.NoError(t, h.Release(context.Background()))
		require.NoError(t, e.Close(context.Background()))
	})
}
