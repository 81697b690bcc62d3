package integration

import (
	"context"
	"errors"
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

// What is somebody else's is left alone, in the way of a new name and of an idle one,
// of which the line has nothing. What may be thin is in TestATextThatIsNotOursInTheWay.
func TestAKeyOfAnotherTypeInTheWay(t *testing.T) {
	w := shared(t)
	c := w.node(node.Config{})
	for verb, call := range verbs {
		for _, part := range []string{"state", "line", "line of an idle name"} {
			what := verb + ", " + part
			s := w.sem(c, what, 2)
			key := w.lineKey(what)
			if part == "state" {
				key = w.stateKey(what)
			}
			if part == "line of an idle name" {
				require.NoError(t, w.take(s, nil).Release(w.Within(patience)))
			}
			w.do("SET", key, "somebody's")
			before := w.dumpsOf(what)
			err := call(w.Within(patience), c, s)
			// What does not look at a key is not in its way.
			if err == nil || errors.Is(err, berth.ErrNotHeld) {
				require.Equal(t, "Release", verb, what)
				require.NotEqual(t, "state", part, what)
			} else {
				require.ErrorContains(t, err, key)
				require.ErrorContains(t, err, "string")
			}
			require.Equal(t, before, w.dumpsOf(what), "%s: something was written", what)
			ttl, err := w.do("PTTL", key).AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, -1, ttl, "%s: somebody's key was given an expiry", what)
		}
	}
}
