package app

import (
	"encoding/json"
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
		require.Equal(t, want, Human(d))
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
		"csi\u009b2J":  `"csi\u009b2J"`,
		"gp\u200bu":    `"gp\u200bu"`,
		"gpu\u3164":    `"gpu\u3164"`, // a letter without an image
		"\u2028":       `"\u2028"`,
	} {
		require.Equal(t, want, Plain(text))
	}
}

// TestJSONHasNoCharacterThatCannotBeRead finds every string again as it was.
func TestJSONHasNoCharacterThatCannotBeRead(t *testing.T) {
	text := "a\x1b\x7f\u0085\u009b2J\u061c\u200b\u200e\u202e\u2028\u2066\ufeff\u3164\U000e0041 größe \U0001f512 <&>"
	var out strings.Builder
	require.NoError(t, PrintJSON(&out, map[string]string{text: text}))
	require.Equal(t, -1, strings.IndexFunc(strings.ReplaceAll(out.String(), "\n", ""), unreadable), "%q", out.String())
	require.Contains(t, out.String(), `\u202e`)
	require.Contains(t, out.String(), `\udb40\udc41`)
	require.Contains(t, out.String(), "größe \U0001f512 <&>")
	var back map[string]string
	require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
	require.Equal(t, map[string]string{text: text}, back)
}

func TestAnErrorCannotCommandTheTerminal(t *testing.T) {
	require.Equal(t, `berth: no \x1b[2J, no \u202e, größe`, OneLine("no \x1b[2J,\n no \u202e, größe"))
	require.Equal(t, "berth: \ufffd2J", OneLine("\x9b2J"), "a byte that some terminals take for a command")
}

func TestTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Table(&out, []string{"NAME", "HELD"}, [][]string{{"größe", "1"}, {"x", "22"}}))
	require.Equal(t, "NAME    HELD\ngröße   1\nx       22\n", out.String())
}
