package qlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
)

func TestTheSwarmOfAClosedNodeDoesNotStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.Shut()
		n.Reset()
		require.ErrorIs(t, n.Swarm().Start(context.Background()), berth.ErrClosed)
		require.False(t, n.Swarm().Status().Running)
		require.Zero(t, n.Count("swarm_probe"))
		require.Empty(t, w.Keys())
	})
}

func TestACloseDuringAStartEndsIt(t *testing.T) {
	for what, fate := range map[string]link.Fate{
		"is slow":      link.Slow(2 * time.Second),
		"has no reply": link.LoseReply,
	} {
		t.Run("the probe "+what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				n.connect()
				began := w.Now()
				n.OnCommand(func(c link.Command) link.Fate {
					if c.Name == "swarm_probe" {
						return fate
					}
					return link.Pass
				})
				started := make(chan error, 1)
				go func() { started <- n.Swarm().Start(context.Background()) }()
				synctest.Wait()
				require.Empty(t, started)
				n.Shut()
				require.ErrorIs(t, <-started, berth.ErrClosed)
				require.Less(t, w.Now()-began, 3*time.Second)
				require.False(t, n.Swarm().Status().Running)
				require.ErrorIs(t, n.Swarm().ProbeNow(context.Background()), berth.ErrClosed)
				w.Advance(3 * time.Second)
				members, err := w.Do("ZRANGE", "berth:swarm:{nodes}:probes", "0", "-1").AsStrSlice()
				require.NoError(t, err)
				for _, member := range members {
					require.Regexp(t, "^t:", member, "it has left")
				}
			})
		})
	}
}
