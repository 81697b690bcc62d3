package guard_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/observe"
)

func TestAPanicIsToldAndBecomesAnError(t *testing.T) {
	t.Parallel()
	var events []observe.Event
	tell := func(e observe.Event) {
		events = append(events, e)
		panic("and so does the observer")
	}
	err := guard.Run("the reading", tell, func() error { panic(guard.Meant("no such index")) })
	require.ErrorContains(t, err, "please report it: berth: the reading panicked: no such index")
	require.ErrorContains(t, err, "guard_test.go", "the stack")
	require.Len(t, events, 1)
	require.Equal(t, []any{observe.Panicked, "the reading", err}, []any{events[0].Kind, events[0].Detail, events[0].Err})

	failed := errors.New("failed")
	require.Equal(t, failed, guard.Run("the reading", tell, func() error { return failed }))
	require.Len(t, events, 1)
	require.Error(t, guard.Run("the reading", nil, func() error { panic(guard.Meant("x")) }))
}

func TestAPanicFailsTheTestsOfBerth(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, "no such index", func() {
		_ = guard.Run("the reading", nil, func() error { panic("no such index") })
	})
}
