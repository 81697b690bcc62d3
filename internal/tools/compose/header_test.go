package compose

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/scriptkit"
)

func TestParseHeader(t *testing.T) {
	t.Parallel()
	h, err := parseHeader("semaphore_acquire", `--[[
semaphore_acquire: take weight permits,
or join the line.
KEYS[1] state (HASH field -> number (see f(x)), c:claim -> record)
KEYS[2] line (ZSET)  KEYS[3] log (STREAM of ids; STRING before)
ARGV[1] claim id    ARGV[2] lease
  (ms)    ARGV[3] wait (1) or try (0)
ARGV[4...] x3: claim id, place (a, b), record        -- as many as there are
RETURNS {"granted", fence, left_ms} | {"full"}
  | {"listed", more, claim, ...}
REPLAY the same claim gets the same answer    COST O(log n) + at most 100 swept
]]`)
	require.NoError(t, err)
	require.Equal(t, Header{
		Summary: "take weight permits, or join the line.",
		Keys: []Param{
			{Name: "state", Note: "HASH field -> number (see f(x)), c:claim -> record", Type: "hash"},
			{Name: "line", Note: "ZSET", Type: "zset"},
			{Name: "log", Note: "STREAM of ids; STRING before", Type: "stream", Also: "string"},
		},
		Args:       []Param{{Name: "claim id"}, {Name: "lease", Note: "ms"}, {Name: "wait (1) or try (0)"}},
		Group:      []Param{{Name: "claim id"}, {Name: "place", Note: "a, b"}, {Name: "record"}},
		GroupStart: 4,
		Returns: []scriptkit.Return{
			{Status: "granted", Fields: []string{"fence", "left_ms"}},
			{Status: "full"},
			{Status: "listed", Fields: []string{"more", "claim"}, Repeats: true},
		},
		Replay: "the same claim gets the same answer",
		Cost:   "O(log n) + at most 100 swept",
	}, h)
}

func TestParseHeaderRefuses(t *testing.T) {
	t.Parallel()
	const rest = "RETURNS {\"ok\"}\nREPLAY yes\nCOST O(1)\n"
	tests := []struct{ name, comment, want string }{
		{"no header", "-- s: x", "does not begin with a header"},
		{"an empty header", "--[[\n\n]]", "the header is empty"},
		{"another script's name", "--[[\nr: x\n" + rest + "]]", `"s: what it does"`},
		{"no summary", "--[[\ns:\n" + rest + "]]", `"s: what it does"`},
		{"no number", "--[[\ns: x\nKEYS[a] k (SET)\n" + rest + "]]", `"KEYS[a] k (SET)" cannot be read`},
		{"no name", "--[[\ns: x\nARGV[1]\n" + rest + "]]", `"ARGV[1]" cannot be read`},
		{"a gap in the keys", "--[[\ns: x\nKEYS[2] k (SET)\n" + rest + "]]", "KEYS[2] should be KEYS[1]"},
		{"an argument twice", "--[[\ns: x\nARGV[1] a  ARGV[1] b\n" + rest + "]]", "ARGV[1] should be ARGV[2]"},
		{"one space between params", "--[[\ns: x\nARGV[1] a ARGV[2] b\n" + rest + "]]", "two spaces"},
		{"a key without a type", "--[[\ns: x\nKEYS[1] k\n" + rest + "]]", "KEYS[1] does not name its type"},
		{"a key of an unknown type", "--[[\ns: x\nKEYS[1] k (TREE)\n" + rest + "]]", "KEYS[1] does not name its type"},
		{"a key of an unknown second type", "--[[\ns: x\nKEYS[1] k (SET ids; tree)\n" + rest + "]]", "KEYS[1] does not name a type behind its semicolon"},
		{"a key whose type is a word", "--[[\ns: x\nKEYS[1] k (set of ids)\n" + rest + "]]", "KEYS[1] does not name its type"},
		{"a group of another size", "--[[\ns: x\nARGV[1...] x2: a\n" + rest + "]]", "says x2 and names 1"},
		{"a group too far", "--[[\ns: x\nARGV[2...] x1: a\n" + rest + "]]", "ARGV[2...] should be ARGV[1...]"},
		{"an argument behind the group", "--[[\ns: x\nARGV[1...] x1: a\nARGV[1] b\n" + rest + "]]", "should be ARGV[2...]"},
		{"two groups", "--[[\ns: x\nARGV[1...] x1: a\nARGV[1...] x1: b\n" + rest + "]]", "two groups"},
		{"a group without a size", "--[[\ns: x\nARGV[1...] a\n" + rest + "]]", "cannot be read"},
		{"no RETURNS", "--[[\ns: x\nREPLAY yes\nCOST O(1)\n]]", "no RETURNS"},
		{"no REPLAY", "--[[\ns: x\nRETURNS {\"ok\"}\nCOST O(1)\n]]", "no REPLAY"},
		{"no COST", "--[[\ns: x\nRETURNS {\"ok\"}\nREPLAY yes COST O(1)\n]]", "no COST"},
		{"RETURNS twice", "--[[\ns: x\nRETURNS {\"ok\"}\n" + rest + "]]", "RETURNS twice"},
		{"COST twice", "--[[\ns: x\nCOST O(n)\n" + rest + "]]", "COST twice"},
		{"REPLAY twice", "--[[\ns: x\nREPLAY no\n" + rest + "]]", "REPLAY twice"},
		{"a status twice", "--[[\ns: x\n" + strings.Replace(rest, `{"ok"}`, `{"ok"} | {"ok", a}`, 1) + "]]", `"ok" twice`},
		{"a status without quotes", "--[[\ns: x\n" + strings.Replace(rest, `{"ok"}`, `{ok}`, 1) + "]]", `instead of {"status"`},
		{"a field that is no word", "--[[\ns: x\n" + strings.Replace(rest, `{"ok"}`, `{"ok", int(x)}`, 1) + "]]", `instead of {"status"`},
		{"nothing repeated", "--[[\ns: x\n" + strings.Replace(rest, `{"ok"}`, `{"ok", ...}`, 1) + "]]", "repeats nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseHeader("s", tt.comment)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
