package gate

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/clock"
)

// asked is a context that tells when somebody asks whether it has ended.
type asked struct {
	context.Context
	is func()
}

func (a asked) Err() error {
	a.is()
	return a.Context.Err()
}

// A context may find that a hold is over, and then tells an observer, who may take his time.
func TestTheGateAsksNoContextWhileItKeepsOthersOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(clock.New(), useful)
		d := g.Door()
		for range Most {
			require.True(t, d.Try())
		}
		looks := 0
		ctx := asked{context.Background(), func() {
			looks++
			require.True(t, g.mu.TryLock(), "its lock is free")
			g.mu.Unlock()
		}}
		entered := make(chan bool)
		go func() { entered <- d.Enter(ctx, nil, nil) }()
		synctest.Wait() // in line
		d.Leave(unsent)
		require.True(t, <-entered)
		require.Positive(t, looks)
	})
}
