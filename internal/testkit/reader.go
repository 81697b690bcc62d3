package testkit

import (
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Reader reads a namespace for a test, which fails where something cannot be read.
type Reader struct {
	Patient
	read *inspect.Reader
}

// Reader returns one that reads through a client.
func (p Patient) Reader(redis rueidis.Client, namespace string) Reader {
	p.Helper()
	read, err := inspect.New(redis, inspect.Config{Namespace: namespace, CallTimeout: Patience})
	require.NoError(p, err)
	return Reader{p, read}
}

// Look reads a name.
func (r Reader) Look(kind keyspace.Kind, name string) berth.Name {
	r.Helper()
	n, err := r.read.Name(r.Within(Patience), kind, name)
	require.NoError(r, err)
	return n
}

// Holders reads the holds of a name, at most 1000.
func (r Reader) Holders(kind keyspace.Kind, name string) []berth.Holder {
	r.Helper()
	page, err := r.read.Holders(r.Within(Patience), kind, name, "", 1000)
	return itemsOf(r, page, err)
}

// Waiters reads the claims that wait for a name, at most 1000.
func (r Reader) Waiters(kind keyspace.Kind, name string) []berth.Waiter {
	r.Helper()
	page, err := r.read.Waiters(r.Within(Patience), kind, name, "", 1000)
	return itemsOf(r, page, err)
}

// Names reads the names of a kind that are in use.
func (r Reader) Names(kind keyspace.Kind) (all []berth.Name) {
	r.Helper()
	for cursor := ""; ; {
		page, err := r.read.Names(r.Within(Patience), inspect.NameFilter{Kinds: []keyspace.Kind{kind}}, cursor, 1000)
		all = append(all, itemsOf(r, page, err)...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

func itemsOf[E any](r Reader, page inspect.Page[E], err error) []E {
	r.Helper()
	require.NoError(r, err)
	require.Empty(r, page.Problems)
	return page.Items
}
