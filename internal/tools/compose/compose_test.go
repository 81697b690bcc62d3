package compose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sent is the source of the script a, whose body begins with the given lines,
// without its last line.
func sent(t *testing.T, body string, included ...string) string {
	t.Helper()
	all, err := Parse(files(append([]string{"a.lua", okScript("a", body)}, included...)...))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return strings.TrimSuffix(all[0].Source(), "return {\"ok\"}\n")
}

func TestIncludesComeFromAnyFolder(t *testing.T) {
	t.Parallel()
	require.Equal(t, "local one = {}\nlocal function two() return one end\ntwo()\n", sent(t,
		"--- @include \"kind/lock/two\"\ntwo()",
		"state/one.lua", "-- one.\nlocal one = {}",
		"kind/lock/two.lua", "-- two.\n--- @include \"state/one\"\nlocal function two() return one end",
		"kind/lock.lua", "-- Nobody includes this file.\nlocal lock = 1",
		"kind/readme.txt", "no Lua",
		"kind/old.lua/readme.txt", "no Lua",
	))
}

// noDefinition is what is said of a line that defines nothing.
func noDefinition(line int, text string) string {
	return fmt.Sprintf("line %d: %q is no definition: besides comments and includes, a file in a folder holds only local function name(...) ... end and local name = value", line, text)
}

// requireProblem fails unless an error is the one that is wanted, "" for none.
func requireProblem(t *testing.T, want string, err error, name string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err, name)
		return
	}
	require.EqualError(t, err, want, name)
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	const f = "local function f() end\n"
	for _, tt := range []struct {
		name, text string
		want       string // "" for a file that is right
	}{
		{"a function", "local function f(a, ...) local b = function() end if a then b() end return a end", ""},
		{"a function with every block", "local function f() for i = 1, 2 do end while x do end repeat if y then elseif z then else end until x do end end", ""},
		{"literals", "local a = nil local b = true local c = false local d = 1.5 local e = 'x' local f = [[y]]", ""},
		{"operators", "local f = not - # a .. b == 1 ~= 2 and 3 <= 4 or 5 >= 6 local b = 1 + 2 - 3 * 4 / 5 % 6 ^ 7 < 8 > 9", ""},
		{"an expression on many lines", "local f = 258\n  * (width\n  - 1)", ""},
		{"tables", "local f = {\n  a = 1, {2}, function() return {} end,\n}\nlocal g = {}", ""},
		{"a function as a value", "local f = function() return 1 end local g = 1", ""},
		{"calls and indexes in a value", "local f = a.b:c(1)[2] 'x' { y }.z local g = (a or b)()", ""},
		{"an include between definitions", "local a = 1\n--- @include \"lib/g\"\nlocal b = g", ""},

		{"a call", f + "f()", noDefinition(3, "f()")},
		{"a call behind a definition", "local a = 1 f()\n" + f, noDefinition(2, "f()")},
		{"a call behind a table", "local a = {}\n(f)()", noDefinition(3, "(f)()")},
		{"an assignment", f + "x = 1 -- why", noDefinition(3, "x = 1 -- why")},
		{"an assignment behind a function", "local x = function() end\n.y = 1", noDefinition(3, ".y = 1")},
		{"a global function", f + "\nfunction g() end", noDefinition(4, "function g() end")},
		{"if", f + "if x then", noDefinition(3, "if x then")},
		{"for", f + "for i = 1, 2 do end", noDefinition(3, "for i = 1, 2 do end")},
		{"do", f + "do local x = 1 end", noDefinition(3, "do local x = 1 end")},
		{"return", f + "return 1", noDefinition(3, "return 1")},
		{"two names", f + "local a, b = 1, 2", noDefinition(3, "local a, b = 1, 2")},
		{"two values", f + "local a = 1, 2", noDefinition(3, ", 2")},
		{"a name without a value", f + "local a\nlocal b = 1", noDefinition(3, "local a")},
		{"a keyword as a name", f + "local end = 1", noDefinition(3, "local end = 1")},
		{"a keyword as a function's name", f + "local function end() end", noDefinition(3, "local function end() end")},
		{"a semicolon", "local a = 1;\n" + f, noDefinition(2, ";")},
		{"only local", "local", noDefinition(2, "local")},

		{"a function without an end", f + "local function g() if x then end", "line 3: the definition of g cannot be read up to its end"},
		{"a function without parameters", f + "local function g end", "line 3: the definition of g cannot be read up to its end"},
		{"a function whose parameters have no end", f + "local function g(end", "line 3: the definition of g cannot be read up to its end"},
		{"a function that ends in its parameters", f + "local function g(end)", "line 3: the definition of g cannot be read up to its end"},
		{"a table without an end", "local a = {\n" + f, "line 2: the definition of a cannot be read up to its end"},
		{"brackets without an end", "local a = b(", "line 2: the definition of a cannot be read up to its end"},
		{"a missing value", "local a =", "line 2: the definition of a cannot be read up to its end"},
		{"a missing operand", "local a = 1 +\n" + f, "line 2: the definition of a cannot be read up to its end"},
		{"a missing field", "local a = b.", noDefinition(2, ".")},
		{"a string that looks like an operator", "local a = 1 'and' 2", noDefinition(2, "'and' 2")},
		{"an include in a function", "local function g()\n--- @include \"lib/g\"\nend", "line 2: the definition of g cannot be read up to its end"},
		{"no comment", "", "the file does not begin with a comment"},
		{"no definition", "--- @include \"lib/g\"", "the file defines nothing"},
	} {
		text := "-- f.\n" + tt.text
		if tt.name == "no comment" {
			text = "local f = 1 -- f."
		}
		err := (&source{path: "lib/f.lua"}).read(text)
		requireProblem(t, tt.want, err, tt.name)
	}
}

func TestComposeRefuses(t *testing.T) {
	t.Parallel()
	const (
		f = "-- f.\nlocal function f() end\n"
		g = "-- g.\nlocal function g() end\n"

		text = "-- f.\nlocal f = 'x'\n"
	)
	include := func(names ...string) string {
		var lines strings.Builder
		for _, name := range names {
			lines.WriteString("--- @include \"" + name + "\"\n")
		}
		return lines.String()
	}
	for _, tt := range []struct {
		name, body string
		included   []string
		want       string // "" for a script that is right
	}{
		{"a name of two files", include("lib/f", "lib/g") + "f()", []string{"lib/f.lua", f, "lib/g.lua", g + "local f = 1"}, "f is defined twice, in lib/f.lua and in lib/g.lua"},
		{"a name of two files that nobody uses", include("lib/f", "lib/g") + "f(g)", []string{"lib/f.lua", f + "local x = 1", "lib/g.lua", g + "local x = 1"}, "x is defined twice, in lib/f.lua and in lib/g.lua"},
		{"a name twice in a file", include("lib/f") + "f()", []string{"lib/f.lua", f + f}, "f is defined twice, in lib/f.lua and in lib/f.lua"},
		{"a name of two files in two scripts", include("lib/f") + "f()", []string{"lib/f.lua", f, "lib/h.lua", f}, ""},

		{"an include that the script does not use", include("lib/f"), []string{"lib/f.lua", f}, `a.lua includes "lib/f.lua" and uses nothing of it`},
		{"an include that the script only uses as a field", include("lib/f") + "local x = {f = y.f}", []string{"lib/f.lua", f}, `a.lua includes "lib/f.lua" and uses nothing of it`},
		{"an include of which the script uses a part", include("lib/f") + "f()", []string{"lib/f.lua", f + "local x = 1"}, ""},
		{"an include for a later file", include("lib/f", "lib/g") + "g()", []string{"lib/f.lua", f, "lib/g.lua", g + "local h = f"}, `a.lua includes "lib/f.lua" and uses nothing of it`},
		{"an include for a later definition", include("lib/f", "lib/g") + "h()", []string{"lib/f.lua", f, "lib/g.lua", g + "local h = f"}, ""},
		{"an include for an earlier definition", include("lib/g", "lib/f") + "h()", []string{"lib/f.lua", f, "lib/g.lua", g + "local h = f"}, "lib/g.lua names f before lib/f.lua defines it"},
		{"an include that a file does not use", include("lib/g", "lib/f") + "g(f)", []string{"lib/f.lua", f, "lib/g.lua", include("lib/f") + g}, `lib/g.lua includes "lib/f.lua" and uses nothing of it`},
		{"an include for a file that another file includes", include("lib/h") + "h()", []string{"lib/f.lua", f, "lib/g.lua", "-- g.\nlocal g = f", "lib/h.lua", include("lib/f", "lib/g") + "local h = g"}, `lib/h.lua includes "lib/f.lua" and uses nothing of it`},
		{"an include that a file uses in what the script does not need", include("lib/g") + "g()", []string{"lib/f.lua", f, "lib/g.lua", include("lib/f") + g + "local h = f"}, ""},
		{"an include that only brings in others", include("lib/g") + "f()", []string{"lib/f.lua", f, "lib/g.lua", include("lib/f") + g + "local h = f"}, `a.lua includes "lib/g.lua" and uses nothing of it`},
		{"an include of which the script only declares a name", include("lib/f") + "local f = 1 f = f", []string{"lib/f.lua", f}, `a.lua includes "lib/f.lua" and uses nothing of it`},
		{"two includes that are not used", include("lib/f", "lib/g"), []string{"lib/f.lua", f, "lib/g.lua", g}, "a.lua includes \"lib/f.lua\" and uses nothing of it\na.lua includes \"lib/g.lua\" and uses nothing of it"},

		{"a name before its include", "f()\n" + include("lib/f"), []string{"lib/f.lua", f}, "a.lua names f before lib/f.lua defines it"},
		{"a name before its definition", include("lib/f") + "f()", []string{"lib/f.lua", "-- f.\nlocal function f() return x end local x = 1"}, "lib/f.lua names x before lib/f.lua defines it"},
		{"functions that name each other", include("lib/f") + "x()", []string{"lib/f.lua", "-- f.\nlocal function f() return x() end local function x() return f() end"}, "lib/f.lua names x before lib/f.lua defines it"},
		{"a value that names itself", include("lib/f") + "f()", []string{"lib/f.lua", "-- f.\nlocal f = f"}, "lib/f.lua names f before lib/f.lua defines it"},
		{"other names in a circle", include("lib/f") + "f()", []string{"lib/f.lua", "-- f.\nlocal x = f local f = x"}, "lib/f.lua declares f, and names x, which is another name for it in lib/f.lua"},
		{"a name of its own before a definition", include("lib/f") + "f()", []string{"lib/f.lua", "-- f.\nlocal function f(x) return x end local x = 1"}, ""},
		{"what is not needed, before its definition", include("lib/f") + "x()", []string{"lib/f.lua", "-- f.\nlocal function f() return x end local x = 1"}, ""},

		{"a function that is set", include("lib/f") + "f = 1", []string{"lib/f.lua", f}, "a.lua sets f, which lib/f.lua defines"},
		{"a value that is set", include("lib/f") + "f()", []string{"lib/f.lua", "-- f.\nlocal x = 1 local function f() y, x = 1, 2 end"}, "lib/f.lua sets x, which lib/f.lua defines"},
		{"a name of its own that is set", include("lib/f") + "f(function(f) f = 1 end)", []string{"lib/f.lua", f}, ""},
		{"a value at the begin of a statement", include("lib/f") + "y()\nf:gsub(y)", []string{"lib/f.lua", text}, "a.lua begins a statement with f, which is a value in lib/f.lua"},
		{"a value behind a name", include("lib/f") + "local y = y f:gsub(y)", []string{"lib/f.lua", text}, "a.lua begins a statement with f, which is a value in lib/f.lua"},
		{"a value behind a block", include("lib/f") + "do end f:gsub(y)", []string{"lib/f.lua", text}, "a.lua begins a statement with f, which is a value in lib/f.lua"},
		{"a value behind text", include("lib/f") + "y = 'y' f:gsub(y)", []string{"lib/f.lua", text}, "a.lua begins a statement with f, which is a value in lib/f.lua"},
		{"a value at the begin of a block", include("lib/f") + "if f then f:gsub(f) end", []string{"lib/f.lua", text}, ""},
		{"another name at the begin of a statement", include("lib/f") + "y()\nx()", []string{"lib/f.lua", f + "local x = f"}, ""},
		{"another name where its name is declared", include("lib/f") + "y(function(f) x(f) end)", []string{"lib/f.lua", f + "local x = f"}, "a.lua declares f, and names x, which is another name for it in lib/f.lua"},
		{"another name behind where its name is declared", include("lib/f") + "local f = 1\n" + include("lib/g") + "y(x, g)", []string{"lib/f.lua", f + "local x = f", "lib/g.lua", g}, "a.lua declares f, and names x, which is another name for it in lib/f.lua"},
		{"another name before where its name is declared", include("lib/f") + "x()\n" + include("lib/g") + "local f = g", []string{"lib/f.lua", f + "local x = f", "lib/g.lua", g}, ""},
	} {
		all := files(append([]string{"a.lua", okScript("a", tt.body)}, tt.included...)...)
		_, err := Parse(all)
		if tt.want != "" {
			tt.want = "compose: a.lua: " + tt.want
		}
		requireProblem(t, tt.want, err, tt.name)
	}
}

// FuzzDefinitions checks that all code of a file that is accepted is in its
// definitions.
func FuzzDefinitions(f *testing.F) {
	for _, src := range []string{"local a = 1", "local function f() end", "local a = b.c:d'x'{}[1]", "local a = -(", "local a = {function() until", "local function A(end"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		s := &source{path: "lib/f.lua"}
		if s.read("-- f.\n"+src) != nil || strings.Contains(src, "@include") {
			return
		}
		var bodies strings.Builder
		for _, p := range s.pieces {
			bodies.WriteString(p.body)
		}
		want, err := lex(src)
		require.NoError(t, err)
		got, err := lex(bodies.String())
		require.NoError(t, err)
		require.Equal(t, code(want), code(got))
	})
}
