package qlock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
)

// The channel of a node is any text before its id: a push must reach it, and a cancel the server.
func TestANamespaceMayHaveSpacesAndColons(t *testing.T) {
	each(t, map[string]string{"spaces": "my shop", "colons": "shop:eu"}, func(t *testing.T, w *world, namespace string) {
		n, other := w.node(node.Config{Namespace: namespace}), w.node(node.Config{Namespace: namespace})
		for range 2 { // the name is thin at first, and then fat
			l := n.take(nil)
			q := other.queue(nil)
			ctx, cancel := context.WithCancel(context.Background())
			left := make(chan error, 1)
			go func() {
				_, err := other.Lock(ctx, door, nil)
				left <- err
			}()
			synctest.Wait()
			cancel()
			require.ErrorIs(t, <-left, context.Canceled)
			release(t, l)
			synctest.Wait()
			release(t, q.Granted(w.Now())) // without any time passing
		}
	})
}
