package integration

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// The longest that is allowed goes through to the server and back.
func TestTheLargestInputIsTaken(t *testing.T) {
	w := shared(t)
	name := strings.Repeat("ö", 256)
	c := w.node(node.Config{Label: strings.Repeat("l", 512)})
	s := w.sem(c, name, 1<<40)
	meta := map[string]string{"": "\x00\xff: ", "k": strings.Repeat("v", 16<<10-10)}
	ctx := berth.WithOwner(w.Within(patience), strings.Repeat("o", 512))
	p, err := s.Acquire(ctx, &semaphore.AcquireOptions{Weight: 1 << 40, Priority: -128, Meta: meta})
	require.NoError(t, err)
	q := w.queue(s, &semaphore.AcquireOptions{Priority: 127, Meta: meta}, 1)
	for _, h := range w.reader().Holders(keyspace.Sem, name) {
		require.Equal(t, meta, h.Meta)
		require.Equal(t, 1<<40, h.Weight)
		require.Equal(t, berth.Owner(ctx), h.Owner)
	}
	for _, h := range w.reader().Waiters(keyspace.Sem, name) {
		require.Equal(t, meta, h.Meta)
		require.Equal(t, 127, h.Priority)
	}
	require.NoError(t, p.Release(ctx))
	require.NoError(t, q.Wait(w).Release(ctx))
	w.idle(name)
}

// verbs are all calls that touch the keys of a name.
var verbs = map[string]func(ctx context.Context, n *node.Node, s *semaphore.Semaphore) error{
	"Acquire": func(ctx context.Context, _ *node.Node, s *semaphore.Semaphore) error {
		_, err := s.Acquire(ctx, nil)
		return err
	},
	"TryAcquire": func(ctx context.Context, _ *node.Node, s *semaphore.Semaphore) error {
		_, err := s.TryAcquire(ctx, nil)
		return err
	},
	"Resize": func(ctx context.Context, n *node.Node, s *semaphore.Semaphore) error {
		return semaphore.NewOperator(n).Resize(ctx, s.Name(), 5, &semaphore.ResizeOptions{Create: true})
	},
	"Release": func(ctx context.Context, n *node.Node, s *semaphore.Semaphore) error {
		_, err := n.Operator().Release(ctx, berth.Target{Kind: keyspace.Sem, Name: s.Name(), Claim: "nobody"})
		return err
	},
}
