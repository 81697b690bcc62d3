package keyspace_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
)

var kinds = []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool, keyspace.Swarm, keyspace.Fence, keyspace.Once}

func newSpace(t *testing.T, ns string) keyspace.Space {
	t.Helper()
	space, err := keyspace.New(ns)
	require.NoError(t, err)
	return space
}

// The layout is what running releases share and what ACLs are written for: a
// change here is a change of format.
func TestTheKeysAndChannels(t *testing.T) {
	berth := newSpace(t, keyspace.DefaultNamespace)
	shop := newSpace(t, "shop:eu")
	for _, test := range []struct{ got, want string }{
		{berth.Namespace(), "berth"},
		{shop.Namespace(), "shop:eu"},
		{berth.State(keyspace.Sem, "gpu"), "berth:sem:{gpu}:state"},
		{berth.Line(keyspace.Sem, "gpu"), "berth:sem:{gpu}:line"},
		{berth.State(keyspace.Lock, "invoice:42"), "berth:lock:{invoice:42}:state"},
		{berth.Line(keyspace.Lock, "invoice:42"), "berth:lock:{invoice:42}:line"},
		{berth.State(keyspace.Pool, "proxies"), "berth:pool:{proxies}:state"},
		{berth.Key(keyspace.Swarm, "nodes", keyspace.StatePart), "berth:swarm:{nodes}:state"},
		{berth.Probes("nodes"), "berth:swarm:{nodes}:probes"},
		{berth.State(keyspace.Fence, "invoice:42"), "berth:fence:{invoice:42}:state"},
		{berth.State(keyspace.Once, "digest"), "berth:once:{digest}:state"},
		{shop.State(keyspace.Sem, "a b"), "shop:eu:sem:{a b}:state"},
		{shop.State(keyspace.Sem, "*"), "shop:eu:sem:{*}:state"},
		{berth.Wake("0123456789abcdef"), "berth:wake:0123456789abcdef"},
		{shop.Wake(""), "shop:eu:wake:"},
		{berth.Match(keyspace.Sem), "berth:sem:{*}:state"},
		{shop.Match(keyspace.Lock), "shop:eu:lock:{*}:state"},
	} {
		require.Equal(t, test.want, test.got)
	}
}

func TestNewRefusesABadNamespace(t *testing.T) {
	for _, ns := range []string{"", "a*", "{a}"} {
		space, err := keyspace.New(ns)
		requireRefused(t, err, "Namespace", "must")
		require.Zero(t, space)
	}
}

func TestNameOfKnowsOnlyStateKeysOfItsNamespaceAndKind(t *testing.T) {
	space := newSpace(t, "a")
	for key, want := range map[string]string{
		"a:sem:{gpu}:state": "gpu", "a:sem:{:}:state": ":",
		"a:sem:{gpu}:line": "", "a:lock:{gpu}:state": "", "b:sem:{gpu}:state": "", "a:a:sem:{gpu}:state": "",
		"a:sem:{}:state": "", "a:sem:{a}:state}:state": "", "a:sem:{{a}:state": "", "a:sem:{a\n}:state": "",
		"a:sem:{a\xff}:state": "", "a:sem:{": "", "a:sem:{}:stat": "", "a:sem:}:state": "", "": "",
	} {
		name, ok := space.NameOf(keyspace.Sem, key)
		require.Equal(t, want != "", ok, "key %q", key)
		require.Equal(t, want, name, "key %q", key)
	}
}

// A colon may stand anywhere, even where it looks like the end of a part.
func TestNoTwoNamesShareAKey(t *testing.T) {
	texts := []string{
		"a", "sem", "lock", ":", "a:", ":a", "a:sem", "a:sem:", "a:lock", "sem:a",
		"a:wake", "wake", "wake:a", "a:state", "state", "line", ":state", "a:sem:a:state",
	}
	owner := make(map[string]string)
	claim := func(key, by string) {
		require.Emptyf(t, owner[key], "%s and %s share %q", owner[key], by, key)
		owner[key] = by
	}
	for _, ns := range texts {
		space := newSpace(t, ns)
		for _, kind := range kinds {
			for _, name := range texts {
				by := fmt.Sprintf("(%q, %q, %q)", ns, kind, name)
				claim(space.State(kind, name), by+" state")
				claim(space.Line(kind, name), by+" line")
			}
		}
		for _, name := range texts {
			claim(space.Probes(name), fmt.Sprintf("(%q, swarm, %q) probes", ns, name))
		}
		for _, node := range []string{"a", "wake", "0123456789abcdef"} {
			claim(space.Wake(node), fmt.Sprintf("(%q, node %q)", ns, node))
		}
	}
}
