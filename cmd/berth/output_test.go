package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestHuman(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"forever": berth.Forever,
		"0s":      -time.Second,
		"120µs":   123 * time.Microsecond,
		"1.23ms":  1234 * time.Microsecond,
		"346ms":   345678 * time.Microsecond,
		"1.3s":    1345 * time.Millisecond,
		"59.9s":   59949 * time.Millisecond,
		"1m00s":   59950 * time.Millisecond,
		"1h00m":   time.Hour - time.Millisecond,
		"3m05s":   185 * time.Second,
		"1h01m":   61 * time.Minute,
		"47h59m":  48*time.Hour - time.Minute,
		"3d04h":   76 * time.Hour,
	} {
		require.Equal(t, want, human(d))
	}
}

func TestWhatOthersHaveWrittenCannotBreakATable(t *testing.T) {
	for text, want := range map[string]string{
		"":             "-",
		"größe 4/µ":    "größe 4/µ",
		"a\tb":         `"a\tb"`,
		"\x1b[2J":      `"\x1b[2J"`,
		"\xff":         `"\xff"`,
		"right\u202eL": `"right\u202eL"`,
	} {
		require.Equal(t, want, plain(text))
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, table(&out, []string{"NAME", "HELD"}, [][]string{{"größe", "1"}, {"x", "22"}}))
	require.Equal(t, "NAME    HELD\ngröße   1\nx       22\n", out.String())
}
