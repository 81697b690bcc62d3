package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
)

// An hour is what the answers leave: the machine may stand still meanwhile.
type hours struct{ fake }

func (h *hours) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	a, err := h.fake.Acquire(ctx, c)
	a.Left = time.Hour
	return a, err
}

func TestAnAcquireAndAReleaseAllocateLittle(t *testing.T) {
	f := &hours{fake{fence: 1}}
	e := engine.New(engine.Config{
		Scripts: f, Node: "n", Wait: time.Hour, CallTimeout: time.Hour, CleanupTimeout: time.Hour, Clock: clock.New(),
	})
	defer func() { require.NoError(t, e.Close(context.Background())) }()
	// The claim with its hold, its id, the asking and what ends it, the attempt, and the end.
	const most = 6
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		h, err := may(context.Background(), e, true)
		if err == nil {
			err = h.Release(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
	}), float64(most))
}
