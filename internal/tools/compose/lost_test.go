package compose

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/testkit/amount"
)

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
