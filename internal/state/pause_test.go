package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/state"
)

func TestAPauseIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]state.Pause{
		"":                            {},
		"5 n.1 0 9 0 0 ":              {Revision: 5, By: "n.1", Paused: true},
		"5 all 17 0 9 0 a: b\nc\x00d": {Revision: 5, By: "all", Notice: 17, Paused: true, Reason: "a: b\nc\x00d"},
		"5 all 17 8 9 4 mineall":      {Revision: 5, By: "all", Notice: 17, Paused: true, Reason: "all"},
		"5 all 17 9 8 4 mineall":      {Revision: 5, By: "all", Notice: 17, Paused: true, Reason: "mine"},
		"6 n.2 17 0 0 0 ":             {Revision: 6, By: "n.2", Notice: 17},
	} {
		got, err := state.ParsePause(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"5", "5 n.1 0 9 0", "5 n.1 0 9 0 0", "5 n.1 0 9 x 0 ", "x n.1 0 9 0 0 ", "5 n.1 0 9 0 5 four"} {
		_, err := state.ParsePause(text)
		require.ErrorIs(t, err, state.ErrDamaged, text)
	}
}
