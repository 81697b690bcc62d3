package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/observe"
)

func TestATermIsToldWhenItBeginsAndWhenItEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		c := n.standOn(berth.WithOwner(context.Background(), "me"), &leader.Config{Attrs: map[string]any{"a": 1}}, nil)
		w.Advance(time.Second)
		began := n.Told(observe.TermBegan)
		require.Len(t, began, 1)
		require.Empty(t, n.Told(observe.TermEnded))

		w.Do("FLUSHALL") // the term is lost, and the next one begins
		w.Advance(lease)
		ended := n.Told(observe.TermEnded)
		require.Len(t, ended, 1)
		require.ErrorIs(t, ended[0].Err, berth.ErrLost)
		require.Greater(t, ended[0].Held, time.Second)
		c.Cancel(errOwn)
		<-c.Done
		synctest.Wait()
		began, ended = n.Told(observe.TermBegan), n.Told(observe.TermEnded)
		require.Len(t, began, 2)
		require.Len(t, ended, 2)
		require.ErrorIs(t, ended[1].Err, errOwn)
		for i := range began {
			for _, e := range []observe.Event{began[i], ended[i]} {
				require.Equal(t, []any{"lock", "berth", boss, n.ID(), "me", map[string]any{"a": 1}}, []any{e.Primitive, e.Namespace, e.Name, e.Node, e.Owner, e.Attrs})
				require.Equal(t, began[i].Claim, e.Claim)
				require.NotZero(t, e.Fence)
				require.Equal(t, began[i].Fence, e.Fence)
			}
		}
	})
}
