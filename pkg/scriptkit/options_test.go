package scriptkit

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestOptionsHaveTheDefaultsOfRetry(t *testing.T) {
	t.Parallel()
	want := Options{
		Retry: berth.Retry{
			Attempts: 20,
			Within:   10 * time.Second,
			Base:     20 * time.Millisecond,
			Factor:   2,
			Cap:      time.Second,
			Jitter:   0.2,
		},
		CallTimeout: 3 * time.Second,
	}
	require.Equal(t, want, Options{}.withDefaults())
	require.NoError(t, Options{}.Validate())
	require.NoError(t, want.Validate())
	require.Equal(t, want, want.withDefaults())
	require.Zero(t, Options{Retry: berth.Retry{Jitter: -1}}.withDefaults().Retry.Jitter)
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]Options{
		"Retry.Attempts": {Retry: berth.Retry{Attempts: -1}},
		"Retry.Within":   {Retry: berth.Retry{Within: -1}},
		"Retry.Base":     {Retry: berth.Retry{Base: -1}},
		"Retry.Factor":   {Retry: berth.Retry{Factor: 0.5}},
		"Retry.Cap":      {Retry: berth.Retry{Cap: -1}},
		"Retry.Jitter":   {Retry: berth.Retry{Jitter: 1.5}},
		"CallTimeout":    {CallTimeout: -1},
	} {
		err := o.Validate()
		require.ErrorIs(t, err, berth.ErrInvalidConfig, field)
		require.ErrorContains(t, err, "invalid "+field)
		require.Equal(t, Options{}.withDefaults(), o.withDefaults(), field)
	}
	require.Error(t, Options{Retry: berth.Retry{Factor: math.NaN()}}.Validate())
	require.Error(t, Options{Retry: berth.Retry{Jitter: math.NaN()}}.Validate())
}
