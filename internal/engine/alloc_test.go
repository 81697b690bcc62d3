package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
)

func TestAnAcquireAndAReleaseAllocateLittle(t *testing.T) {
	f := &fake{fence: 1}
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
