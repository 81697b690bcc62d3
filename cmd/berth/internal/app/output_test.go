package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/text"
)

// TestJSONHasNoCharacterThatCannotBeRead finds every string again as it was.
func TestJSONHasNoCharacterThatCannotBeRead(t *testing.T) {
	wild := "a\x1b\x7f\u0085\u009b2J\u061c\u200b\u200e\u202e\u2028\u2066\ufeff\u3164\U000e0041 größe \U0001f512 <&>"
	var out strings.Builder
	require.NoError(t, PrintJSON(&out, map[string]string{wild: wild}))
	require.Equal(t, -1, strings.IndexFunc(strings.ReplaceAll(out.String(), "\n", ""), text.Unreadable), "%q", out.String())
	require.Contains(t, out.String(), `\u202e`)
	require.Contains(t, out.String(), `\udb40\udc41`)
	require.Contains(t, out.String(), "größe \U0001f512 <&>")
	var back map[string]string
	require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
	require.Equal(t, map[string]string{wild: wild}, back)
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
