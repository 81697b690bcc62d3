package keyspace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
)

// hashTag is what Redis Cluster hashes of a key: the text between the first {
// and the next }, or all of it where there is no such text.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return key
}

// The values are those of the specification.
func TestAHashTagIsThatOfRedis(t *testing.T) {
	for key, tag := range map[string]string{
		"foo": "foo", "a{foo}b{bar}": "foo", "{user1000}.following": "user1000",
		"foo{}{bar}": "foo{}{bar}", "foo{{bar}}zap": "{bar",
	} {
		require.Equal(t, tag, hashTag(key))
	}
}

// Whatever passes the checks gives keys in the name's own slot, from which the
// name can be read again, and from no other namespace or kind.
func FuzzKeys(f *testing.F) {
	f.Add("berth", "gpu", "a")
	f.Add("a:sem", "b:state", "a")
	f.Add(":", "}:state", "::sem")
	f.Add("a", "{x}", "a:lock")
	f.Add("a\x00", "\xff", "")
	f.Add("shop:eu", "invoice:42", "Überweisung")
	f.Add("berth", "Überweisung", "*")
	f.Add("shop:eu", "*", "a b")
	f.Fuzz(func(t *testing.T, ns, name, other string) {
		space, err := keyspace.New(ns)
		if err != nil || keyspace.CheckName(name) != nil {
			return
		}
		for _, kind := range kinds {
			key := space.State(kind, name)
			for _, key := range []string{key, space.Line(kind, name), space.Key(kind, name, "any"), space.Probes(name)} {
				require.Equal(t, name, hashTag(key))
			}
			got, ok := space.NameOf(kind, key)
			require.True(t, ok)
			require.Equal(t, name, got)

			_, ok = space.NameOf(kind, space.Line(kind, name))
			require.False(t, ok)
			for _, another := range kinds {
				_, ok = space.NameOf(another, key)
				require.Equal(t, another == kind, ok)
			}
			if stranger, err := keyspace.New(other); err == nil {
				_, ok = stranger.NameOf(kind, key)
				require.Equal(t, ns == other, ok)
			}
		}
	})
}

// A name that a foreign key seems to have is never one that a check refuses.
func FuzzNameOf(f *testing.F) {
	f.Add("berth:sem:{gpu}:state")
	f.Add("berth:sem:{a}:state}:state")
	f.Add("berth:sem:}:state")
	f.Fuzz(func(t *testing.T, key string) {
		space := newSpace(t, keyspace.DefaultNamespace)
		name, ok := space.NameOf(keyspace.Sem, key)
		if !ok {
			require.Empty(t, name)
			return
		}
		require.NoError(t, keyspace.CheckName(name))
		require.Equal(t, key, space.State(keyspace.Sem, name))
	})
}
