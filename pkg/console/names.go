package console

import (
	"context"
	"net/http"
	"time"

	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// nameList is a page of names in use.
type nameList struct {
	Table    []line
	Prefix   string
	Kind     keyspace.Kind
	Idle     string // "" for none
	Next     string // cursor
	From     string // likewise, of this page
	Partial  bool
	Problems []string
}

// names answers with a page of names in use, which is not live.
func (c *Console) names(w http.ResponseWriter, r *http.Request, a Access) {
	q := r.URL.Query()
	l := nameList{Prefix: q.Get("prefix"), Kind: keyspace.Kind(q.Get("kind")), Idle: q.Get("idle"), From: q.Get("cursor")}
	f := inspect.NameFilter{Prefix: l.Prefix, Idle: l.Idle != ""}
	if l.Kind != "" {
		f.Kinds = []keyspace.Kind{l.Kind}
	}
	ctx, cancel := context.WithTimeout(r.Context(), firstWithin)
	defer cancel()
	p, err := c.watch.Names(ctx, f, l.From, false)
	if err != nil && ctx.Err() != nil {
		err = c.late()
	}
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	l.Next, l.Partial, l.Problems = p.Value.Next, p.Value.Partial, problemsOf(p.Value.Problems)
	page := c.frame(a, "names", "Names in use")
	page.Now, page.Read, page.Query = p.Value.At.Add(time.Since(p.At)), p.Value.At, q
	l.Table = nameLines(page.Now, p.Value.Items, "NAME", "KIND", "STATE", "PROBLEM", "HELD", "WAITING", "HELD BY", "FOR", "READ")
	page.View = l
	page.Beat = beat{Now: page.Now.UnixMilli(), Read: page.Read.UnixMilli()}
	c.render(w, http.StatusOK, "names", page)
}
