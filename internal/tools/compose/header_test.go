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

func TestAHeaderMayHaveTheKeysOfSeveralNames(t *testing.T) {
	t.Parallel()
	h, err := parseHeader("s", "--[[\ns: x\nKEYS[1...] x2: state (HASH v -> a, b; STRING), line (ZSET)\nRETURNS {\"ok\"}\nREPLAY yes\nCOST O(1)\n]]")
	require.NoError(t, err)
	require.True(t, h.Several)
	require.Equal(t, []Param{{Name: "state", Note: "HASH v -> a, b; STRING", Type: "hash", Also: "string"}, {Name: "line", Note: "ZSET", Type: "zset"}}, h.Keys)
}

func TestParseHeaderRefuses(t *testing.T) {
	t.Parallel()
	const rest = "RETURNS {\"ok\"}\nREPLAY yes\nCOST O(1)\n"
	for _, tt := range []struct{ name, comment, want string }{
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
		{"keys of several names behind another", "--[[\ns: x\nKEYS[1] k (SET)\nKEYS[2...] x1: l (SET)\n" + rest + "]]", "KEYS[2...] are not all its keys"},
		{"keys of several names of another number", "--[[\ns: x\nKEYS[1...] x2: k (SET)\n" + rest + "]]", "KEYS[1...] says x2 and names 1"},
		{"a key behind those of several names", "--[[\ns: x\nKEYS[1...] x1: k (SET)\nKEYS[2] l (SET)\n" + rest + "]]", "KEYS[2] is behind those of several names"},
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
	} {
		_, err := parseHeader("s", tt.comment)
		require.ErrorContains(t, err, tt.want, tt.name)
	}
}

func TestBodyIsHeldToItsHeader(t *testing.T) {
	t.Parallel()
	const (
		two   = "KEYS[1] a (SET)  KEYS[2] b (SET)"
		args  = "ARGV[1] x  ARGV[2] y"
		group = "ARGV[1] x\nARGV[2...] x2: p, q"
	)
	for _, tt := range []struct {
		name, params, body string
		want               []string // none: the body is right
	}{
		{"keys by index", two, `f(KEYS[1], KEYS[ 2 ])`, nil},
		{"keys by a counted index", two, `for i = 1, #KEYS do f(KEYS[i]) end`, nil},
		{"keys as a value", two, `f(KEYS)`, nil},
		{"keys unpacked", two, `f(unpack(KEYS))`, nil},
		{"a key missing", two, `f(KEYS[1])`, []string{"does not use KEYS[2] (b)"}},
		{"a key only in a comment", two, `f(KEYS[1]) -- KEYS[2]`, []string{"does not use KEYS[2] (b)"}},
		{"a key only in a string", two, `f(KEYS[1], "KEYS[2]")`, []string{"does not use KEYS[2] (b)"}},
		{"a key too many", two, `f(KEYS[1], KEYS[2], KEYS[3])`, []string{"uses KEYS[3], which the header does not declare"}},
		{"a key 0", two, `f(KEYS[1], KEYS[2], KEYS[0])`, []string{"uses KEYS[0]"}},
		{"the number of keys uses none", two, `f(#KEYS)`, []string{"KEYS[1]", "KEYS[2]"}},

		{"args by index", args, `local x, y = ARGV[1], ARGV[2]`, nil},
		{"args unpacked", args, `local x, y = unpack(ARGV)`, nil},
		{"some args unpacked", args, `local x, y = ARGV[1], unpack(ARGV, 2)`, nil},
		{"args unpacked twice", args, `f(unpack(ARGV, 1)) g(unpack(ARGV, 2))`, nil},
		{"an arg missing", args, `local x = ARGV[1]`, []string{"does not use ARGV[2] (y)"}},
		{"an arg missing in what is unpacked", args, `local y = unpack(ARGV, 2)`, []string{"does not use ARGV[1] (x)"}},
		{"an arg beyond what is unpacked", args, `local x = unpack(ARGV, 1, 1)`, []string{"does not use ARGV[2] (y)"}},
		{"an arg too many", args, `f(ARGV[1], ARGV[2], ARGV[3])`, []string{"uses ARGV[3], which the header does not declare"}},
		{"args too many, unpacked", args, `f(unpack(ARGV, 1, 3))`, []string{"uses ARGV[3], which the header does not declare"}},
		{"args by a counted index", args, `f(ARGV[1], ARGV[2], ARGV[i])`, []string{"declares no group"}},
		{"args unpacked behind the last", args, `f(ARGV[1], ARGV[2], unpack(ARGV, 3))`, []string{"declares no group"}},
		{"args unpacked up to a variable", args, `f(ARGV[1], ARGV[2], unpack(ARGV, 1, n))`, []string{"declares no group"}},
		{"args unpacked from a variable", args, `f(ARGV[1], ARGV[2], unpack(ARGV, n))`, []string{"declares no group"}},

		{"a group by a counted index", group, `for i = 2, #ARGV, 2 do f(ARGV[1], ARGV[i], ARGV[i + 1]) end`, nil},
		{"a group read by both", group, `f(ARGV[1], ARGV[2], ARGV[i])`, nil},
		{"a group unpacked", group, `f(ARGV[1], unpack(ARGV, 2))`, nil},
		{"a group passed on", group, `f(ARGV)`, nil},
		{"a group missing", group, `f(ARGV[1])`, []string{"does not use the group from ARGV[2] on"}},
		{"a group read once", group, `f(ARGV[1], ARGV[2], ARGV[3])`, []string{"does not use the group from ARGV[2] on"}},
		{"an arg missing before the group", group, `f(ARGV[i])`, []string{"does not use ARGV[1] (x)"}},
	} {
		expectProblems(t, tt.name, tt.params+"\nRETURNS {\"ok\"}", tt.body+"\nreturn {\"ok\"}", tt.want)
	}
}

func TestStatusesAreThoseOfReturns(t *testing.T) {
	t.Parallel()
	const two = `RETURNS {"a", x} | {"b"}`
	for _, tt := range []struct {
		name, returns, body string
		want                []string
	}{
		{"tables", two, `if x then return {"a", x} end return {"b"}`, nil},
		{"a status with a trailing semicolon", two, `if x then return {"a", x}; end return {"b"};`, nil},
		{"a choice of tables", two, `return x and {"a", x} or {"b"}`, nil},
		{"a choice of words", two, `return { x > 0 and "a" or "b", x }`, nil},
		{"a reply that is filled", two, "local reply = {\"a\", 0}\nreply[3] = x\nif y then return {\"b\"} end return reply", nil},
		{"a word in a variable", two, "local status = x == 'c' and 'a' or 'b'\nlocal y = 'd'\nreturn {status, y}", nil},
		{"a word set twice", two, "local status = 'a'\nif x then status = 'b' end\nreturn {status}", nil},
		{"strings that are passed, joined or compared", two, "local s = f('c') .. 'd'\ns = 'e' .. s\ns = 'f' == x or 'g' ~= y\nif x then return {'a', x} end if y then return {'b'} end return {s}", nil},
		{"a function's table", two, "local function f(x) return {x, 'c'} end return f(1) and {'a', {'d'}} or {'b'}", nil},
		{"a table with named fields", two, "if x then return {err = 'c'} end return x and {'a'} or {'b'}", nil},
		{"tables behind the return", two, "if x then return {'a'} elseif y then return {'b'} else local t = {'c'} end", nil},
		{"tables in a condition", two, "if x then return {'a'} elseif {'c'} then return {'b'} end", nil},
		{"tables behind the block", two, "if x then return {'a'} end local t = {'c'} return {'b'}", nil},
		{"tables in a function that is returned", two, "local function f() return function() local t = {'c'} end end return x and {'a'} or {'b'}", nil},
		{"tables in another branch", two, "if x then return {'a'} else local t = {'c'} end repeat return {'b'} until {'d'}", nil},
		{"a table in a call", two, "if x then return {'a'} end if y then return {'b'} end return f({'c'})", nil},
		{"a status missing in the body", two, `return {"a", x} -- {"b"}`, []string{`RETURNS has "b", which the body does not return`}},
		{"a status missing in RETURNS", `RETURNS {"a"}`, `if x then return {"c"} end return {"a"}`, []string{`the body returns "c", which RETURNS does not have`}},
		{"both", two, `if x then return {"c"} end return {"a"}`, []string{`RETURNS has "b"`, `returns "c"`}},
	} {
		expectProblems(t, tt.name, tt.returns, tt.body, tt.want)
	}
}

func TestStatusesOfIncludesCount(t *testing.T) {
	t.Parallel()
	lib := "-- f.\nlocal function f() return {\"newer\", 1} end\n"
	_, err := Parse(files("a.lua", okScript("a", "--- @include \"lib/f\"\nf()"), "lib/f.lua", lib))
	require.ErrorContains(t, err, `the body returns "newer", which RETURNS does not have`)
}

func TestCommands(t *testing.T) {
	t.Parallel()
	all, err := Parse(files("a.lua", okScript("a", `
		local call, n = nil, 0
		local try = redis.pcall
		redis.call("hset", "k", "HGET", 1) -- redis.call("DEL")
		redis.pcall('PUBLISH', "c", "m")
		redis.call "TIME"
		try("ZADD", "redis.call('LPUSH')")
		pcall(redis.call, "GET", "k")
		redis.sha1hex("x")`)))
	require.NoError(t, err)
	require.Equal(t, []string{"GET", "HSET", "PUBLISH", "TIME", "ZADD"}, all[0].Commands)
}

func TestCommandsMustBeWrittenOut(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`redis.call(cmd, 1)`:                          `given as "cmd"`,
		`local call = redis.call call(unpack(parts))`: `given as "unpack"`,
		`f(redis.call)`:                               "redis.call is neither called nor given a local name",
	} {
		_, err := Parse(files("a.lua", okScript("a", body)))
		require.ErrorContains(t, err, want)
	}
}

// expectProblems parses a script and wants all of the given problems, or none.
func expectProblems(t *testing.T, name, header, body string, want []string) {
	t.Helper()
	_, err := Parse(files("s.lua", "--[[\ns: x.\n"+header+"\nREPLAY yes    COST O(1)\n]]\n"+body))
	if len(want) == 0 {
		require.NoError(t, err, name)
	}
	for _, w := range want {
		require.ErrorContains(t, err, w, name)
	}
}
