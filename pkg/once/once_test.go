package once_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/once"
)

func TestAPeriodIsDoneOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		ran := 0
		f := func() error { ran++; return nil }
		r, err := a.do(f)
		require.NoError(t, err)
		require.Equal(t, once.Ran, r.Status)
		r, err = b.do(f)
		require.NoError(t, err)
		require.Equal(t, once.Done, r.Status)
		require.Equal(t, a.Node(), r.Node)
		require.Equal(t, 1, ran)
		w.Advance(hour)
		r, err = b.do(f)
		require.NoError(t, err)
		require.Equal(t, once.Ran, r.Status)
		require.Equal(t, 2, ran)
	})
}
