package compose

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLexTellsCodeFromStringsAndComments(t *testing.T) {
	t.Parallel()
	tests := []struct {
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tokens, err := lex(tt.src)
			require.NoError(t, err)
			require.Equal(t, tt.want, code(tokens))
		})
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
