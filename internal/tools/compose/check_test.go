package compose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBodyIsHeldToItsHeader(t *testing.T) {
	t.Parallel()
	const (
		two   = "KEYS[1] a (SET)  KEYS[2] b (SET)"
		args  = "ARGV[1] x  ARGV[2] y"
		group = "ARGV[1] x\nARGV[2...] x2: p, q"
	)
	tests := []struct {
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			expectProblems(t, tt.params+"\nRETURNS {\"ok\"}", tt.body+"\nreturn {\"ok\"}", tt.want)
		})
	}
}

func TestStatusesAreThoseOfReturns(t *testing.T) {
	t.Parallel()
	const two = `RETURNS {"a", x} | {"b"}`
	tests := []struct {
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			expectProblems(t, tt.returns, tt.body, tt.want)
		})
	}
}

func TestStatusesOfIncludesCount(t *testing.T) {
	t.Parallel()
	lib := "-- f.\nlocal function f() return {\"newer\", 1} end\n"
	_, err := Parse(files("a.lua", okScript("a", "--- @include \"lib/f\"\nf()"), "lib/f.lua", lib))
	require.ErrorContains(t, err, `the body returns "newer", which RETURNS does not have`)
}

func TestADefinitionThatTheScriptDoesNotNeedDoesNotCount(t *testing.T) {
	t.Parallel()
	lib := `-- f and g.
local function f() return redis.call("GET", "k") end
local function g() redis.call("DEL", KEYS[1], ARGV[1]) return {"newer", 1} end
`
	all, err := Parse(files("a.lua", okScript("a", "--- @include \"lib/f\"\nf()"), "lib/f.lua", lib))
	require.NoError(t, err)
	require.Equal(t, []string{"GET"}, all[0].Commands)
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
func expectProblems(t *testing.T, header, body string, want []string) {
	t.Helper()
	_, err := Parse(files("s.lua", "--[[\ns: x.\n"+header+"\nREPLAY yes    COST O(1)\n]]\n"+body))
	if len(want) == 0 {
		require.NoError(t, err)
	}
	for _, w := range want {
		require.ErrorContains(t, err, w)
	}
}
