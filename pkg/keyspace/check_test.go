package keyspace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestNamespacesAndNamesThatAreAllowed(t *testing.T) {
	for _, text := range []string{
		"a", "berth", "shop:eu", ":", "a b", "invoice/42#1", "Überweisung", "\u65e5\u672c", "\U0001f512",
		strings.Repeat("x", 512),
	} {
		require.NoError(t, keyspace.CheckNamespace(text), "namespace %q", text)
		require.NoError(t, keyspace.CheckName(text), "name %q", text)
	}
}

func TestNamespacesAndNamesThatAreRefused(t *testing.T) {
	for _, test := range []struct{ text, problem string }{
		{"", "must not be empty"},
		{strings.Repeat("x", 513), "at most 512 bytes, has 513"},
		{strings.Repeat("ü", 257), "at most 512 bytes, has 514"},
		{"a\xff", `must be valid UTF-8, is "a\xff"`},
		{"\xed\xa0\x80", "must be valid UTF-8"}, // half of a surrogate pair
		{"a{b", "has '{' at byte 1"},
		{"ü}", "has '}' at byte 2"},
		{"{}", "has '{' at byte 0"},
		{"a\nb", "has U+000A at byte 1"},
		{"\x00", "has U+0000 at byte 0"},
		{"\x7f", "has U+007F at byte 0"},
		{"\u0085", "has U+0085 at byte 0"},
		{"gpu\u200b", "has U+200B at byte 3"},
		{"\u202eupg", "has U+202E at byte 0"},
		{"a\u2028b", "has U+2028 at byte 1"},
		{"\u3164", "has U+3164 at byte 0"},
	} {
		requireRefused(t, keyspace.CheckNamespace(test.text), "Namespace", test.problem)
		requireRefused(t, keyspace.CheckName(test.text), "name", test.problem)
	}
}

func TestGlobCharactersAreRefusedInNamespacesOnly(t *testing.T) {
	for _, r := range `*?[]\^` {
		text := "a" + string(r)
		requireRefused(t, keyspace.CheckNamespace(text), "Namespace", "at byte 1")
		require.NoError(t, keyspace.CheckName(text))
	}
}

func requireRefused(t *testing.T, err error, field, problem string) {
	t.Helper()
	require.ErrorIs(t, err, berth.ErrInvalidConfig)
	var refused *berth.ConfigError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, field, refused.Field)
	require.Contains(t, refused.Problem, problem)
}
