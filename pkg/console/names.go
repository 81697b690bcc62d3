package console

import (
	"net/url"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// namesPage is a page of names in use, which is not live.
var namesPage = &page{
	name: "names", asks: []string{"prefix", "kind", "idle", "cursor"},
	title: func(url.Values) string { return "Names in use" },
	open: func(c *Console, q url.Values) (source, error) {
		f := inspect.NameFilter{Prefix: q.Get("prefix"), Idle: q.Get("idle") != ""}
		if kind := keyspace.Kind(q.Get("kind")); kind != "" {
			f.Kinds = []keyspace.Kind{kind}
		}
		return fed[inspect.Page[berth.Name]]{
			c.watch.Names(f, q.Get("cursor"), false), func(p inspect.Page[berth.Name]) (any, time.Time) { return namesOf(p), p.At },
		}, nil
	},
}

// nameList is what that page shows.
type nameList struct {
	Table    []line
	Next     string // cursor
	Problems []string
}

func namesOf(p inspect.Page[berth.Name]) nameList {
	table := nameLines(p.At, p.Items, "NAME", "KIND", "STATE", "PROBLEM", "HELD", "WAITING", "HELD BY", "FOR", "READ")
	return nameList{table, p.Next, problemsOf(p.Problems)}
}
