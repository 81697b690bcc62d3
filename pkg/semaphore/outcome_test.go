package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestTheEndOfAHoldSaysOfWhatAndAfterHowLong(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		w.Advance(time.Second)
		w.Do("FLUSHALL")
		<-p.Done()
		at := w.Now()
		w.Advance(time.Second)
		for name, err := range map[string]error{
			"Err": p.Err(), "Cause": context.Cause(p.Context()), "Renew": p.Renew(context.Background()),
			"Release": p.Release(context.Background()),
		} {
			require.ErrorIs(t, err, berth.ErrLost, name)
			require.ErrorIs(t, err, berth.ErrNotHeld, name)
			end, ok := errors.AsType[*berth.EndError](err)
			require.True(t, ok, "%s: %v", name, err)
			require.Equal(t, gpu, end.Name)
			require.Equal(t, p.ID(), end.Claim)
			require.NotZero(t, end.Fence)
			require.Equal(t, at, end.Held)
			for _, text := range []string{end.Claim, strings.TrimPrefix(berth.ErrLost.Error(), "berth: ")} {
				require.Equal(t, 1, strings.Count(err.Error(), text), "%v", err)
			}
		}
	})
}
