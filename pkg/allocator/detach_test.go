package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

// detach detaches a hold, and sends the token through its text.
func detach(t *testing.T, a *allocator.Allocation[string]) berth.Token {
	t.Helper()
	token, err := a.Detach(context.Background())
	require.NoError(t, err)
	text, err := token.MarshalText()
	require.NoError(t, err)
	var read berth.Token
	require.NoError(t, read.UnmarshalText(text))
	require.Equal(t, token, read)
	require.Equal(t, keyspace.Pool, read.Kind)
	require.Equal(t, proxies, read.Name)
	return read
}

func TestADetachedHoldOutlivesItsNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		var opened []string
		n, m := w.node(), w.nodeOf(allocator.Config[string]{
			Open: func(_ context.Context, key string) (string, error) {
				opened = append(opened, key)
				return key + "!", nil
			},
		})
		a := n.takes("a", nil)
		require.NoError(t, a.Swap(ctx))
		token := detach(t, a)
		require.NoError(t, n.node.Close(ctx))
		require.ErrorIs(t, a.Err(), berth.ErrReleased)
		require.NoError(t, a.Release(ctx))
		require.Equal(t, 1, w.inspect().Leased)
		w.Advance(5 * time.Second)
		b, err := m.Resume(ctx, token)
		require.NoError(t, err)
		require.Equal(t, a.Fence(), b.Fence())
		require.Equal(t, a.ID(), b.ID())
		require.Equal(t, "b", b.Resource())
		require.Equal(t, "b!", b.Value())
		require.Equal(t, []string{"b"}, opened)
		require.Equal(t, m.node.ID(), w.Holders()[0].Node)
		w.Advance(time.Minute)
		require.NoError(t, b.Err(), "it renews again")
		require.NoError(t, b.Swap(ctx))
		require.Equal(t, "a!", b.Value())
		_ = b.Rest(time.Second, "")
		w.release(b)
		require.Equal(t, allocator.Resting, w.status("a").State)
		w.requireIdle()
	})
}

func TestAResumeWhoseOpenFailsGivesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		token := detach(t, w.node().takes("a", nil))
		m := w.nodeOf(allocator.Config[string]{
			Open: func(context.Context, string) (string, error) { return "", errMine }, FailureRest: time.Second,
		})
		require.ErrorIs(t, second(m.Resume(context.Background(), token)), errMine)
		require.Equal(t, allocator.Resting, w.status("a").State)
		w.requireIdle()
	})
}
