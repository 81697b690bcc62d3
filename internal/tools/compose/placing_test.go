package compose

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/testkit/amount"
)

// naive composes the script a, and keeps all definitions, where the composer promises that
// they seem to be: before the script's own code, in the order of the files.
func naive(all fstest.MapFS) string {
	var definitions strings.Builder
	done := make(map[string]bool)
	var read func(path string) string
	read = func(path string) string {
		var own strings.Builder
		for line := range strings.Lines(string(all[path].Data)) {
			m := includeComment.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			switch {
			case m != nil && done[m[1]]:
			case m != nil:
				done[m[1]] = true
				read(m[1] + ".lua")
			case isScript(path):
				own.WriteString(line)
			default:
				definitions.WriteString(line)
			}
		}
		return own.String()
	}
	script := read("a.lua")
	return definitions.String() + script
}

// eval returns what a script does on a server: its reply, or its error.
func eval(client rueidis.Client, script string) (string, error) {
	reply, err := client.Do(context.Background(), client.B().Eval().Script(script).Numkeys(0).Build()).AsStrSlice()
	return strings.Join(reply, " "), err
}

// What all scripts have the golden files of scripts/composed prove.
func TestDefinitionsStandWhereTheyAreNeeded(t *testing.T) {
	t.Parallel()
	const include = "--- @include \"lib/f\"\n"
	tests := map[string]struct {
		body, reply string // of the script, behind an include of f; of ok
		f           string // the file
		want        string // the composed script, without its last line
	}{
		"a function that names itself": {
			"ok = {b(3), c(2)}", "321211 c",
			"local function a(n) do return n > 0 and n .. a(n - 1) or '' end end\nlocal function b(n) do return n > 0 and a(n) .. b(n - 1) or '' end end\nlocal function c(n) return n > 0 and c(n - 1) or 'c' end",
			"local function b(n)\nlocal function a(n) do return n > 0 and n .. a(n - 1) or '' end end\n do return n > 0 and a(n) .. b(n - 1) or '' end end\nlocal function c(n) return n > 0 and c(n - 1) or 'c' end\nok = {b(3), c(2)}\n",
		},
		"a function that is a value is made once, and so is what is said of the script's arguments": {
			"ok = {b('x'), a()}", "acx a",
			"local a = function() do return 'a' end end\nlocal c = (...) or 'c'\nlocal function b(...) do return a() .. c .. (...) end end",
			"local a = function() do return 'a' end end\nlocal c = (...) or 'c'\nlocal function b(...) do return a() .. c .. (...) end end\nok = {b('x'), a()}\n",
		},
		"a parameter has the name of what is needed": {
			"ok = {c('x')}", "ax",
			"local function a() do return 'a' end end\nlocal function b() do return a() end end\nlocal function c(a) do return b() .. a end end",
			"local function b()\nlocal function a() do return 'a' end end\n do return a() end end\nlocal function c(a) do return b() .. a end end\nok = {c('x')}\n",
		},
		"a parameter has the name of what another function provides": {
			"ok = {d('x')}", "ax",
			"local function a() do return 'a' end end\nlocal function b() do return a() end end\nlocal function c() do return b() end end\nlocal function d(a) do return c() .. a end end",
			"local function b()\nlocal function a() do return 'a' end end\n do return a() end end\nlocal function d(a)\nlocal function c() do return b() end end\n do return c() .. a end end\nok = {d('x')}\n",
		},
		"a parameter has the name of what Lua provides": {
			"ok = {b('x')}", "12x",
			"local function a(x) do return tostring(x) end end\nlocal c = tostring\nlocal function d(x) do return c(x) end end\nlocal function b(tostring) do return a(1) .. d(2) .. tostring end end",
			"local function a(x) do return tostring(x) end end\nlocal function d(x) do return tostring(x) end end\nlocal function b(tostring) do return a(1) .. d(2) .. tostring end end\nok = {b('x')}\n",
		},
		"what cannot stand in a function stands in the next one outside": {
			"ok = {d()}", "zbxz",
			"local function z() do return 'z' end end\nlocal function a() do return z() end end\nlocal function b() do return a() .. 'b' end end\nlocal function c(z) do return b() .. z end end\nlocal function d() do return c('x') .. z() end end",
			"local function d()\nlocal function z() do return 'z' end end\nlocal function a() do return z() end end\nlocal function c(z)\nlocal function b() do return a() .. 'b' end end\n do return b() .. z end end\n do return c('x') .. z() end end\nok = {d()}\n",
		},
		"what cannot stand in two functions stands outside of both": {
			"ok = {d('y')}", "zxy",
			"local function z() do return 'z' end end\nlocal function a() do return z() end end\nlocal function c(z) do return a() .. z end end\nlocal function d(z) do return c('x') .. z end end",
			"local function a()\nlocal function z() do return 'z' end end\n do return z() end end\nlocal function d(z)\nlocal function c(z) do return a() .. z end end\n do return c('x') .. z end end\nok = {d('y')}\n",
		},
		"a local variable of a function that needs what has its name": {
			"ok = {b()}", "a",
			"local function a() do return 'a' end end\nlocal function b() local a = a() do return a end end",
			"local function b()\nlocal function a() do return 'a' end end\n local a = a() do return a end end\nok = {b()}\n",
		},
		"a local variable of the script has the name of what a later part needs": {
			"local a = a()\n--- @include \"lib/none\"\nok = {a, b(), none}", "a ab 0",
			"local function a() do return 'a' end end\nlocal function b() do return a() .. 'b' end end",
			"local function a() do return 'a' end end\nlocal function b() do return a() .. 'b' end end\nlocal a = a()\nok = {a, b(), (0)}\n",
		},
		"a local variable of the script has the name of what a function in another one needs": {
			"local a = 1\n--- @include \"lib/none\"\nok = {a, c(), none}", "1 ab 0",
			"local function a() do return 'a' end end\nlocal function b() do return a() .. 'b' end end\nlocal function c() do return b() end end",
			"local function b()\nlocal function a() do return 'a' end end\n do return a() .. 'b' end end\nlocal a = 1\nlocal function c() do return b() end end\nok = {a, c(), (0)}\n",
		},
		"a number that is known is written down": {
			"local x = 3\nok = {b(), a(x), a(2 - 3 * (n + 1)), a(1.5), a(m * 4), a(n / 2), a(0x10), c(1)}", "19 3 -13 1 36028797018963968 2 16 1,",
			"local n = 2 + 2\nlocal m = 9007199254740992\nlocal function a(n) return string.format('%d', n) end\nlocal function b() return string.format(\"%d\", n * 5 - 1) end\nlocal function c(n) return string.format('%d,', n) end",
			"local x = 3\nok = {(\"19\"), (string.format('%d', (x))), (\"-13\"), (string.format('%d', (1.5))), (string.format('%d', ((9007199254740992) * 4))), (string.format('%d', ((2 + 2) / 2))), (string.format('%d', (0x10))), (string.format('%d,', (1)))}\n",
		},
		"what an argument does is done once, and before the rest": {
			"local x = 'x'\nlocal function f() x = x .. 'y' return x end\nok = {a(f()), b(f()), c(x, f()), d(f())}", "xya xyyxyy xyyxyyy d",
			"local function a(s) return s .. 'a' end\nlocal function b(s) return s .. s end\nlocal function c(s, t) return s .. t end\nlocal function d(s) return s and 'd' end",
			"local x = 'x'\nlocal function b(s) return s .. s end\nlocal function c(s, t) return s .. t end\nlocal function d(s) return s and 'd' end\nlocal function f() x = x .. 'y' return x end\nok = {((f()) .. 'a'), b(f()), c(x, f()), d(f())}\n",
		},
		"a call that is a statement, one with other arguments, and a function that is no call": {
			"a('x')\nok = {a('x', 'y'), tostring(a ~= nil), b('x')}", "xa true x",
			"local function a(s) return s .. 'a' end\nlocal function b(s) return s end",
			"local function a(s) return s .. 'a' end\nlocal function b(s) return s end\na('x')\nok = {a('x', 'y'), tostring(a ~= nil), b('x')}\n",
		},
		"a parameter may have changed before it is used": {
			"local x = 1\nlocal function f() x = x + 1 return x end\nok = {tostring(a(x) + f())}", "3",
			"local function a(n) return (n) end",
			"local x = 1\nlocal function a(n) return (n) end\nlocal function f() x = x + 1 return x end\nok = {tostring(a(x) + f())}\n",
		},
		"what a formula names means something else where the call stands": {
			"local string = 'x'\nok = {a(string)}", "x",
			"local function a(s) return string.format('%s', s) end",
			"local function a(s) return string.format('%s', s) end\nlocal string = 'x'\nok = {a(string)}\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, reply := "local ok\n"+include+tt.body, "\nreturn {\"ok\", table.concat(ok, ' ')}\n"
			all := files("a.lua", strings.TrimSuffix(okScript("a", body), "\nreturn {\"ok\"}\n")+reply,
				"lib/f.lua", "-- f.\n"+tt.f+"\n", "lib/none.lua", "-- none.\nlocal none = 0\n")
			scripts, err := Parse(all)
			require.NoError(t, err)
			source := scripts[0].Source()
			require.Equal(t, tt.want, strings.TrimSuffix(strings.TrimPrefix(source, "local ok\n"), reply[1:]))
			client := embedded(t)
			for _, script := range []string{source, naive(all)} {
				got, err := eval(client, script)
				require.NoError(t, err)
				require.Equal(t, "ok "+tt.reply, got)
			}
		})
	}
}

// TestAComposedScriptDoesWhatItsFilesSay composes files that are written at random, with
// few names for everything, and compares what the script does with what the naive one does.
func TestAComposedScriptDoesWhatItsFilesSay(t *testing.T) {
	require.NoError(t, amount.Histories(100))
	client := embedded(t)
	rapid.Check(t, func(t *rapid.T) {
		all := (&author{t: t, calls: 3}).files()
		scripts, err := Parse(all)
		if err != nil && strings.Contains(err.Error(), "which is another name for it") {
			t.Skip("refused")
		}
		require.NoError(t, err, "%s", naive(all))
		source := scripts[0].Source()
		want, err := eval(client, naive(all))
		require.NoError(t, err, "%s", naive(all))
		got, err := eval(client, source)
		require.NoError(t, err, "%s\n%s", naive(all), source)
		require.Equal(t, want, got, "%s\n%s", naive(all), source)
	})
}

// author writes files at random. All that their code names is there.
type author struct {
	t     *rapid.T
	b     strings.Builder
	calls int // that the function may still have
	depth int // of blocks
}

// fewNames are what an author calls everything, and of Lua's functions one that it shadows.
var fewNames = []string{"a", "b", "c", "d", "e", "f", "tostring"}

// visible has, by name, what is visible: "value", "table", or the parameters of a function.
type visible map[string]string

func (a *author) printf(format string, args ...any) { fmt.Fprintf(&a.b, format, args...) }

func (a *author) upTo(n int) int { return rapid.IntRange(0, n).Draw(a.t, "n") }

func (a *author) of(all []string) string { return rapid.SampledFrom(all).Draw(a.t, "of") }

// files returns a script that includes, between its statements, file after file, and the
// files.
func (a *author) files() fstest.MapFS {
	all := make(fstest.MapFS)
	definitions := visible{"tostring": "p"}
	script, own := visible{"tostring": "p"}, make(visible) // what the script sees, and what of it is its own
	text := strings.TrimSuffix(okScript("a", "local out = ''"), "return {\"ok\"}\n")
	rest := rapid.Permutation(fewNames[:6]).Draw(a.t, "definitions")
	for i := range 3 {
		a.b.Reset()
		a.printf("-- A file.\n")
		for _, name := range rest[2*i : 2*i+1+a.upTo(1)] {
			a.definition(name, definitions)
		}
		last := fmt.Sprintf("last%d", i)
		a.function(last, definitions)
		file := fmt.Sprintf("lib/%d", i)
		all[file+".lua"] = &fstest.MapFile{Data: []byte(a.b.String())}
		for name, is := range definitions {
			script[name] = is
		}
		for name, is := range own {
			script[name] = is
		}

		a.b.Reset()
		a.calls = a.upTo(1)
		a.printf("--- @include %q\n", file)
		before := maps.Clone(script)
		a.block(script)
		for name, is := range script {
			if before[name] != is {
				own[name] = is
			}
		}
		a.printf("out = out .. %s\n", a.call(last, script))
		a.printf("if #out > %d then return {'ok', out} end\n", a.upTo(20))
		text += a.b.String()
	}
	all["a.lua"] = &fstest.MapFile{Data: []byte(text + "return {'ok', out}\n")}
	return all
}

// definition writes a definition and makes it visible.
func (a *author) definition(name string, v visible) {
	other := a.of(slices.Sorted(maps.Keys(v)))
	switch a.upTo(8) {
	case 0:
		a.printf("local %s = '%s' .. 1\n", name, name)
		v[name] = "value"
	case 1:
		a.printf("local %s = { n = 0, %s }\n", name, other)
		v[name] = "table"
	case 2:
		a.printf("local %s = %s\n", name, other)
		v[name] = v[other]
	case 3, 4:
		a.formula(name, v)
	default:
		a.function(name, v)
	}
}

// params draws parameters, and returns them with what their function sees.
func (a *author) params(name string, v visible) ([]string, visible) {
	params := rapid.SliceOfNDistinct(rapid.SampledFrom(fewNames), 0, 2, rapid.ID).Draw(a.t, "params")
	inner := maps.Clone(v)
	delete(inner, name) // it would call itself without an end
	for _, p := range params {
		inner[p] = "value"
	}
	return params, inner
}

// formula writes a function that does nothing but return something, and makes it visible.
func (a *author) formula(name string, v visible) {
	params, inner := a.params(name, v)
	a.calls = 1
	value := func() string { return a.value(inner) }
	formulas := []string{
		fmt.Sprintf("%s .. %s", value(), value()),
		fmt.Sprintf("%s and %s or %s", value(), value(), value()),
		fmt.Sprintf("string.format('%%s', %s)", value()),
		fmt.Sprintf("string.sub(%s, -9) .. string.sub(%s, 1, 2)", value(), value()),
		fmt.Sprintf("(%s)", value()),
	}
	a.printf("local function %s(%s) return %s end\n", name, strings.Join(params, ", "), a.of(formulas))
	v[name] = strings.Repeat("p", len(params))
}

// function writes a function and makes it visible.
func (a *author) function(name string, v visible) {
	params, inner := a.params(name, v)
	a.calls = 2
	a.printf("local function %s(%s)\nlocal out = '%s'\n", name, strings.Join(params, ", "), name)
	a.block(inner)
	a.printf("return out end\n")
	v[name] = strings.Repeat("p", len(params))
}

// block writes statements. They make visible what they declare.
func (a *author) block(v visible) {
	a.depth++
	defer func() { a.depth-- }()
	for range 1 + a.upTo(3) {
		name, kind := a.of(fewNames), a.upTo(8)
		if a.depth > 2 {
			kind = 8 // no more blocks
		}
		switch kind {
		case 0, 1:
			a.printf("local %s = %s\n", name, a.value(v))
			v[name] = "value"
		case 2:
			a.printf("local function %s(e) return %s end\n", name, a.value(with(without(v, name), "e")))
			v[name] = "p"
		case 3:
			a.printf("for %s = 1, #('' .. %s) * 0 + 1 do\n", name, a.value(v))
			a.block(with(v, name))
			a.printf("end\n")
		case 4:
			a.printf("repeat local %s = %s\n", name, a.value(v))
			inner := with(v, name)
			a.block(inner)
			a.printf("until %s\n", a.value(inner))
		case 5:
			a.printf("if %s then\n", a.value(v))
			a.block(maps.Clone(v))
			a.printf("else\n")
			a.block(maps.Clone(v))
			a.printf("end\n")
		default:
			if v[name] == "table" {
				a.printf("%s.n = %s.n + 1\n", name, name)
			}
			a.printf("out = string.sub(out..%s, -99)\n", a.value(v))
		}
	}
}

func with(v visible, name string) visible {
	v = maps.Clone(v)
	v[name] = "value"
	return v
}

func without(v visible, name string) visible {
	v = maps.Clone(v)
	delete(v, name)
	return v
}

// value returns an expression for a string or a number.
func (a *author) value(v visible) string {
	name := a.of(fewNames)
	switch is, ok := v[name]; {
	case !ok:
		return fmt.Sprintf("%q", name)
	case is == "value":
		return name
	case is == "table":
		return name + ".n"
	case a.calls <= 0:
		return "(0)"
	default:
		made := a.call(name, v)
		return a.of([]string{made, made, fmt.Sprintf("(%s and %s)", name, made), fmt.Sprintf("(%s .. 'x')", made)})
	}
}

func (a *author) call(name string, v visible) string {
	a.calls--
	args := make([]string, len(v[name]))
	for i := range args {
		args[i] = a.value(v)
	}
	return fmt.Sprintf("%s(%s)", name, strings.Join(args, ", "))
}

// lost reports whether a script is refused for an assignment that the embedded server may not make.
func lost(t require.TestingT, script string) bool {
	code, err := lex(script)
	require.NoError(t, err)
	return checkLost(code) != nil
}

func TestAnAssignmentThatMayBeLostIsRefused(t *testing.T) {
	t.Parallel()
	for body, refused := range map[string]bool{
		"x, a.f = f() and 1, 2":                          true,
		"a.f, x = f() and 1, 2":                          true,
		"x, a[1] = f() and 1, 2":                         true,
		"x, a.f(1).g = f() and 1, 2":                     true,
		"x = not -a and 1":                               true,
		"x = ... and 1":                                  true,
		"x = (...) and 1":                                true,
		"x = 1 or (... and 2)":                           true,
		"do local outer end x = outer and 1":             true,
		"for outer = 1, 2 do end x = outer and 1":        true,
		"if a then local outer else x = outer and 1 end": true,
		"repeat local outer until a x = outer and 1":     true,
		"for outer = 1, 2 do x = outer and 1 end":        false,
		"do local outer do x = outer and 1 end end":      false,
		"a.f, a.g = f() and 1, 2":                        false,
		"a[f() and 1] = f() and 2":                       false,
		"x = -a and 1":                                   false,
		"x = ...":                                        false,
		"x = not a and b == c":                           true,
		"x = a.f and b":                                  true,
		"x = f(a) and b":                                 true,
		"x = outer and b":                                true, // a function's own variable is reckoned in its place, another's is not
		"x = a or f() and b":                             true,
		"x = (a or f()) and b":                           true,
		"x = (f() or a) and b":                           false,
		"x = a and (f() and b)":                          true,
		"a, x = 2, not b and 1 == 2":                     true,
		"if a then x = not b and c end":                  true,
		"local y = function() local z z = f() and a end": true,
		"x = a and b":                                    false,
		"x = a == b and f()":                             false,
		"x = f() or a and b":                             false,
		"x = f() and a or b":                             false,
		"x = not a":                                      false,
		"x = 'a' .. f() and b":                           false,
		"x = { f() and b }":                              false,
		"x = { x = f() and b }":                          false,
		"x = g(f() and b)":                               false,
		"local y = f() and b":                            false,
		"a.x = f() and b":                                false,
		"for i = f() and 1, 2 do end":                    false,
		"if f() and b then x = 1 end":                    false,
		"return f() and b":                               false,
	} {
		script := "local outer\nlocal function s(a, b, c, f, g, ...)\nlocal x\n" + body + "\nend\n"
		require.Equal(t, refused, lost(t, script), body)
	}
}

// expressionOf is an expression of variables of a function, and of others.
func expressionOf(depth int) *rapid.Generator[string] {
	if depth == 0 {
		return rapid.SampledFrom([]string{
			"yes", "no", "none", "1", "'text'", "nil", "true", "false", "id(yes)", "id(no)", "id(none)", "has.x", "has.y",
			"above", "below", "shadow", "...", "(...)", "not -one", "one == 1", "one ~= 1", "two < one", "id(one) == 1", "not yes", "not no", "not none", "one + 1", "#has",
		})
	}
	return rapid.Custom(func(t *rapid.T) string {
		part := func(what string) string {
			return expressionOf(rapid.IntRange(0, depth-1).Draw(t, what+" depth")).Draw(t, what)
		}
		return fmt.Sprintf(rapid.SampledFrom([]string{"%s and %s", "%s or %s", "(%s and %s)", "(%s or %s) and true", "not (%s) and %s"}).
			Draw(t, "form"), part("left"), part("right"))
	})
}

// All that gopher-lua reckons otherwise where it is assigned to a variable than where it declares one is refused.
func TestNothingThatIsLostPasses(t *testing.T) {
	require.NoError(t, amount.Histories(100))
	client, found := embedded(t), 0
	run := func(t *rapid.T, script string) string {
		reply, err := eval(client, script)
		require.NoError(t, err, script)
		return reply
	}
	rapid.Check(t, func(t *rapid.T) {
		value := expressionOf(3).Draw(t, "value")
		script := func(assign string) string {
			return "local above, below, shadow = true, false\nlocal function f(yes, no, none, one, two, ...)\n" +
				"for shadow = 1, 2 do end do local shadow = 1 end\nlocal has, id = { x = true }, function(v) return v end\nlocal x = 'old'\n" +
				assign + "\nreturn { tostring(x) }\nend\nreturn f(true, false, nil, 1, 2, false)\n"
		}
		assigned := script("x = " + value)
		if run(t, assigned) != run(t, script("local y = "+value+"\nx = y")) {
			found++
			require.True(t, lost(t, assigned), assigned)
		}
	})
	require.Positive(t, found)
}
