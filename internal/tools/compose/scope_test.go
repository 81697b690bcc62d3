package compose

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
