package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// The moment of the deadline is the first one at which the clock says it. What ends the context on its own then takes
// goroutines that come after f's own, as after a process has stood still.
func TestTheContextOfFLooksAtTheClockItself(t *testing.T) {
	each(t, map[string]func(context.Context) bool{
		"Err": func(ctx context.Context) bool { return ctx.Err() != nil },
		"Done": func(ctx context.Context) bool {
			select {
			case <-ctx.Done():
				return true
			default:
				return false
			}
		},
	}, func(t *testing.T, w *world, ended func(context.Context) bool) {
		for range 40 {
			n := w.node()
			var looks []bool
			c := n.stand(nil, func(ctx context.Context) error {
				n.Stall() // nothing is renewed
				for _, wait := range []time.Duration{lease - margin - 1, 1} {
					time.Sleep(wait)
					looks = append(looks, ended(ctx))
				}
				return nil
			})
			w.Advance(lease)
			require.Equal(t, []bool{false, true}, looks)
			require.ErrorIs(t, context.Cause(c.only().ctx), berth.ErrLost)
			n.Flow()
			c.Cancel(nil)
			w.Advance(lease)
		}
	})
}
