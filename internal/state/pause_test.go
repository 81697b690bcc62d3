package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/state"
)

func TestAPauseIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]state.Pause{
		"":                              {},
		"5 n.1 0 paused":                {Revision: 5, By: "n.1", Paused: true},
		"5 all 17 paused: a: b\nc\x00d": {Revision: 5, By: "all", Notice: 17, Paused: true, Reason: "a: b\nc\x00d"},
		"6 n.2 17 unpaused":             {Revision: 6, By: "n.2", Notice: 17},
	} {
		got, err := state.ParsePause(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"5", "5 n.1 paused", "5 n.1 0 resting", "x n.1 0 paused", "5 n.1 0 paused:"} {
		_, err := state.ParsePause(text)
		require.ErrorIs(t, err, state.ErrDamaged, text)
	}
}
