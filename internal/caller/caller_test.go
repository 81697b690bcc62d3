package caller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

var errMine = errors.New("my own reason")

func TestTheEndOfAContextHasItsErrorAndItsCauseOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause error
		says  string
	}{
		{nil, "context canceled"},
		{errMine, "context canceled\nmy own reason"},
		{fmt.Errorf("mine: %w", context.Canceled), "mine: context canceled"},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(c.cause)
		err := EndOf(ctx)
		require.EqualError(t, err, c.says)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, context.Cause(ctx))
	}
}

func TestAPanicBecomesAnErrorWithItsStack(t *testing.T) {
	t.Parallel()
	require.NoError(t, Catch("Source", func() error { return nil }))
	require.Equal(t, errMine, Catch("Source", func() error { return errMine }))
	err := Catch("Source", func() error { panic(errMine) })
	require.ErrorIs(t, err, errMine)
	require.ErrorContains(t, err, "berth: Source panicked: my own reason\n\n")
	require.ErrorContains(t, err, "caller_test.go")
	require.ErrorContains(t, Catch("Close", func() error { panic("text") }), "berth: Close panicked: text\n\n")
}
