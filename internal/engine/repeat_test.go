package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// stuttering is a server whose first answers to own calls are lost.
type stuttering struct {
	fake
	mu   sync.Mutex
	lost []error // guarded by mu
}

func (s *stuttering) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	s.mu.Lock()
	var err error
	if len(s.lost) > 0 {
		err, s.lost = s.lost[0], s.lost[1:]
	}
	s.mu.Unlock()
	round, _ := s.fake.Beat(ctx, name, mode, claims)
	return round, err
}

func (s *stuttering) BeatMany(ctx context.Context, batches []engine.Batch, answered func(int, engine.Round, error)) {
	oneByOne(ctx, s.Beat, batches, answered)
}

func TestAConfirmingCallIsRepeatedUntilItIsAnsweredAndAnotherOwnCallByRetry(t *testing.T) {
	const pause, attempts = 10 * time.Millisecond, 3
	synctest.Test(t, func(t *testing.T) {
		s := &stuttering{fake: fake{fence: 1}, lost: make([]error, 2*attempts)}
		for i := range s.lost {
			s.lost[i] = &scriptkit.Error{MaybeRan: true, Repeatable: true, Err: errOwn}
		}
		var told []observe.Event
		e := engine.New(engine.Config{
			Scripts: s, Node: "n", Wait: wait, CallTimeout: time.Second, CleanupTimeout: time.Second, Clock: clock.New(),
			Retry: berth.Retry{Attempts: attempts, Base: pause, Cap: pause, Jitter: -1},
			Observe: func(ev observe.Event) {
				if ev.Kind == observe.Repeated {
					told = append(told, ev)
				}
			},
		})
		defer func() { require.NoError(t, e.Close(context.Background())) }()
		h := take(t, e, func(r *engine.Record) { r.NoRenew = true })
		require.Equal(t, 2*attempts*pause, e.Now())
		require.Equal(t, wait-2*time.Millisecond-wait/100, h.Left(), "from the start of the call that was answered")
		require.Len(t, told, 2*attempts)
		require.ErrorIs(t, told[0].Err, errOwn)

		for range attempts {
			s.lost = append(s.lost, &scriptkit.Error{MaybeRan: true, Repeatable: true, Err: errOwn})
		}
		require.ErrorIs(t, h.Renew(context.Background()), errOwn)
		require.Empty(t, s.lost, "it was sent no more often")
		require.NoError(t, h.Err())
		require.Len(t, told, 3*attempts-1)

		s.lost = append(s.lost, &scriptkit.Error{Err: errOwn})
		_, err := e.Acquire(context.Background(), &engine.Claim{ID: e.ClaimID(), Name: "y", Record: engine.Record{NoRenew: true, Wait: wait, Lease: wait}}, 0)
		require.ErrorIs(t, err, errOwn, "the server refuses it for good")
		require.Empty(t, s.lost)
	})
}
