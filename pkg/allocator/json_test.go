package allocator_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/wire"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestWhatIsToldIsJSON(t *testing.T) {
	t.Parallel()
	require.NoError(t, wire.Check(
		allocator.Change{}, allocator.ResourceInfo{}, allocator.Settings{}, allocator.Inspection{}, allocator.HealthReport{},
	))
	for policy, word := range map[allocator.Policy]string{
		0: "", allocator.LeastRecent: "least-recent", allocator.MostRecent: "most-recent", allocator.Random: "random",
	} {
		text, err := policy.MarshalText()
		require.NoError(t, err)
		require.Equal(t, word, string(text))
		read := allocator.Random
		require.NoError(t, read.UnmarshalText(text))
		require.Equal(t, policy, read)
	}
	require.ErrorIs(t, new(allocator.Policy).UnmarshalText([]byte("unknown")), berth.ErrInvalidConfig)
}

func TestACooldownOfNoneIsNotOneThatIsUnset(t *testing.T) {
	t.Parallel()
	for text, settings := range map[string]allocator.Settings{
		`{"byOperator":false}`:                {},
		`{"cooldownMs":0,"byOperator":false}`: {Cooldown: -1},
	} {
		written, err := json.Marshal(settings)
		require.NoError(t, err)
		require.Equal(t, text, string(written))
		var read allocator.Settings
		require.NoError(t, json.Unmarshal(written, &read))
		require.Equal(t, settings, read)
	}
}
