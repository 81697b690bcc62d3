package compose

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLexTellsCodeFromStringsAndComments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, src string
		want      []string // without comments
	}{
		{"names, numbers and operators", "x1 = 2.5e3 .. y ~= 0x1F", []string{"x1", "=", "2.5e3", "..", "y", "~=", "0x1F"}},
		{"varargs", "f(...)", []string{"f", "(", "...", ")"}},
		{"a string with a comment in it", `a("--[[ no", '-- no')`, []string{"a", "(", "--[[ no", ",", "-- no", ")"}},
		{"an escaped quote", `"a\"b" c`, []string{`a\"b`, "c"}},
		{"an escaped end of line", "'a\\\nb' c", []string{"a\\\nb", "c"}},
		{"long strings", "[[a]b]] [==[a]]b]==]", []string{"a]b", "a]]b"}},
		{"a line comment", "a -- b\nc", []string{"a", "c"}},
		{"a long comment", "a --[[ b\n]] c --[==[ ]] ]==] d", []string{"a", "c", "d"}},
		{"a comment that only looks long", "--[ a\nb --[=x\nc", []string{"b", "c"}},
		{"an index is no long string", "a[b[1]]", []string{"a", "[", "b", "[", "1", "]", "]"}},
	} {
		tokens, err := lex(tt.src)
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.want, code(tokens), tt.name)
	}
}

func TestLexNamesTheLineOfWhatHasNoEnd(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"\nx = 'a":          "line 2: a string has no end",
		"x = \"a\n\"":       "line 1: a string has no end",
		"\n\n--[==[ a ]]":   "line 3: a long comment has no end",
		"--[[\n]]x = [=[a]": "line 2: a long string has no end",
	} {
		_, err := lex(src)
		require.EqualError(t, err, want, "%q", src)
	}
}

func TestStripKeepsStringsAndKeepsTokensApart(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"-- only\n--[[ comments ]]\n": "",
		"a --[[x]]b":                  "a b\n",
		"a--[[x]]=1":                  "a =1\n",
		"f --[[\n]] (x)":              "f\n(x)\n",
		"\n\nif x then\n\n  -- why\n  y() -- so\nend\n": "if x then\n  y()\nend\n",
		"x = [[\n-- kept\n\n]]":                         "x = [[\n-- kept\n\n]]\n",
	} {
		tokens, err := lex(src)
		require.NoError(t, err)
		text, starts := strip(src, tokens)
		require.Equal(t, want, text, "%q", src)
		requireStarts(t, src, tokens, text, starts)
	}
}

// requireStarts fails if a token of src does not begin in text where starts says.
func requireStarts(t *testing.T, src string, tokens []token, text string, starts []int) {
	t.Helper()
	for i, token := range tokens {
		if token.kind != kindComment {
			require.True(t, strings.HasPrefix(text[starts[i]:], src[token.start:token.end]), "%q: %q", src, token.text)
		}
	}
}

// FuzzStrip checks that what is sent has the tokens of what was written.
func FuzzStrip(f *testing.F) {
	for _, src := range []string{"a --b\nc", "x=[==[ ]] ]==]--[[y]]z", `f"\"--"`, "1..2", "--[[a]]--[=[\n]=]b", "a\r\n--\x00"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		tokens, err := lex(src)
		if err != nil {
			return
		}
		text, starts := strip(src, tokens)
		requireStarts(t, src, tokens, text, starts)
		again, err := lex(text)
		require.NoError(t, err)
		require.Equal(t, code(tokens), code(again))
	})
}

// code is the texts of the tokens that are no comments.
func code(tokens []token) []string {
	var texts []string
	for _, t := range tokens {
		if t.kind != kindComment {
			texts = append(texts, t.text)
		}
	}
	return texts
}

// Before each name that the code takes from outside stands an @, and before one that it
// sets, two.
func TestScopeTellsWhichNamesCodeTakesFromOutside(t *testing.T) {
	t.Parallel()
	for _, marked := range []string{
		"@f(@g, 1, nil, true, false)",
		"@y.f = @f.y @y:f() @y[@f] = @y.f.g",
		"@f 'f' @f {f = 1, @f, @f == 1, [@f] = @f, g = @f; f = 1}",
		"@@y = 1 .. @f .. 2",

		"local f = @f @g(f)",
		"local f, g = @g, @f, @f @h(f, g)",
		"local f @y(f)",
		"local f = -@f(@g) f()",
		"local f = function() local f = @f return f end f()",
		"local f = { f = @f, function(g) return @f, g end } f()",
		"local function f(g) f(g) end f() @g()",
		"local f = @f or function() return @f end",

		"@y(function(f, ...) return f end) @f()",
		"function @@f(g) return g, @f end @g()",
		"function @y.f(g) return g end",
		"function @y.f:g() return self end @self()",
		"local function f() local g return function() return f, g end end",

		"if @f then local f f() elseif @f then @@f = 1 local f else local g, f = @f f() end @f()",
		"if @f then local f = 1 elseif @f then @g() end @g()",
		"while @f do local f = @f end @f()",
		"do local f do f() end f() end @f()",
		"repeat local f = @f until f @f()",
		"repeat local f repeat local g = f until f and g until f == @g @f()",
		"repeat until @y(function() local f return f end) @f()",
		"for f = @f, @g, @f do f() local f = f end @f()",
		"for f, g in @pairs(@f), @g do f(g) end @f(@g)",
		"for f in @y(function() for f = 1, 2 do f() end return @f end) do f() end @f()",

		"@@f = 1 @@f, @@g = 1, @f",
		"@f.y, @@f = 1, 2 @@g, @f.y, @f[@g], @@h = @f",
		"local f = @g @@g = 2 f = 1",
		"if @f == 1 then @@f = @f end",
		"@y {@f, y = 1} @y(@f, @g) return @f, @g",
	} {
		src := strings.ReplaceAll(marked, "@", "")
		tokens, err := lex(src)
		require.NoError(t, err)
		var s scope
		s.read(tokens)
		var found strings.Builder
		end := 0
		for _, n := range s.names {
			mark := "@"
			if n.set {
				mark = "@@"
			}
			found.WriteString(src[end:tokens[n.at].start] + mark + n.text)
			end = tokens[n.at].end
		}
		require.Equal(t, marked, found.String()+src[end:])
		require.False(t, s.inBlock(), "%s", src)
	}
}
