package scriptkit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsSentStandsBehindTheHeader(t *testing.T) {
	t.Parallel()
	file := "--[[\ns: test.\n]]\nreturn {\"ok\"}\n"
	require.Equal(t, "return {\"ok\"}\n", (&Script{File: &file, Header: 17}).Source())
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	l := NewLibrary(script(Script{Name: "b"}, ""), script(Script{Name: "a"}, ""), script(Script{Name: "a_b"}, ""))
	var names []string
	for _, s := range l.Scripts() {
		names = append(names, s.Name)
		require.Same(t, s, l.Script(s.Name))
	}
	require.Equal(t, []string{"a", "a_b", "b"}, names)
	require.PanicsWithValue(t, `scriptkit: no script "c"`, func() { l.Script("c") })
}
