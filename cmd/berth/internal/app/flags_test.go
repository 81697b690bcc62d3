package app

import (
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestATimeMayHaveDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "30s": 30 * time.Second, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "1d12h": 36 * time.Hour,
		"+2d1ms": 48*time.Hour + time.Millisecond, "-1d12h": -36 * time.Hour, "1.5d": 36 * time.Hour, ".5d30m": 12*time.Hour + 30*time.Minute,
		"106751d": 106751 * 24 * time.Hour, berth.Forever.String(): berth.Forever,
	} {
		got, err := ParseTime(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, says := range map[string]string{
		"": "is not a time such as", "d": "is not", "5": "is not", "1d5": "is not", "1h1d": "is not", "1d-1h": "is not", "1d1d": "is not", "forever": "is not",
		"106752d": "is too long", "106751d24h": "is too long", "9999999999999d": "is too long", "-106752d1h": "is too long", "1d9999999h": "is too long",
	} {
		var span time.Duration
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		TimeVar(flags, &span, "for", 0, "how long")
		require.ErrorContains(t, flagError(&cobra.Command{}, flags.Parse([]string{"--for=" + text})), says, text)
	}
}

func TestAFlagForATimeShowsItsDefault(t *testing.T) {
	t.Parallel()
	var span, none, ends time.Duration
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	TimeVar(flags, &span, "for", time.Hour, "how long")
	TimeVar(flags, &none, "from", 0, "since when")
	EndlessVar(flags, &ends, "until", 0, "up to when")
	require.Equal(t, "      --for duration     how long (default 1h0m0s)\n      --from duration    since when\n      --until duration   up to when\n", flags.FlagUsages())
	require.Equal(t, time.Hour, span)
	require.NoError(t, flags.Parse([]string{"--until", "forever"}))
	require.Equal(t, berth.Forever, ends)
	require.Error(t, errors.Unwrap(flags.Parse([]string{"--for", "forever"})))
}

func TestAHostAloneIsAnAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"localhost": "localhost:6379", "redis.example.com:6380": "redis.example.com:6380", "[::1]:6380": "[::1]:6380",
	} {
		option, err := (&App{URL: text}).option()
		require.NoError(t, err)
		require.Equal(t, []string{want}, option.InitAddress)
		require.Nil(t, option.TLSConfig)
	}
}
