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
	Names    []nameRow
	Prefix   string
	Kind     keyspace.Kind
	Idle     bool
	Next     string // cursor
	From     string // likewise, of this page
	Partial  bool
	Problems []string
}

// IdleValue is Idle as an address has it.
func (l nameList) IdleValue() string {
	if l.Idle {
		return "1"
	}
	return ""
}

// names answers with a page of names in use, which is not live.
func (c *Console) names(w http.ResponseWriter, r *http.Request, a Access) {
	q := r.URL.Query()
	l := nameList{Prefix: q.Get("prefix"), Kind: keyspace.Kind(q.Get("kind")), Idle: q.Get("idle") != "", From: q.Get("cursor")}
	f := inspect.NameFilter{Prefix: l.Prefix, Idle: l.Idle}
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
	for _, n := range p.Value.Items {
		l.Names = append(l.Names, rowOf(n))
	}
	l.Next, l.Partial, l.Problems = p.Value.Next, p.Value.Partial, problemsOf(p.Value.Problems)
	page := c.frame(a, "names", "Names in use")
	page.View, page.Now, page.Read, page.Query = l, p.Value.At.Add(time.Since(p.At)), p.Value.At, q
	page.Beat = beat{Now: page.Now.UnixMilli(), Read: page.Read.UnixMilli()}
	c.render(w, http.StatusOK, "names", page)
}
