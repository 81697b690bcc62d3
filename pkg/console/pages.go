package console

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// page is a page that shows what was read.
type page struct {
	name    string        // of its address, and of its templates
	asks    []string      // what of its query counts
	regions []string      // what of it changes; without any it is not live
	every   time.Duration // how often it is read at the most, 0: it is never old
	title   func(q url.Values) string
	open    func(c *Console, q url.Values) (source, error)
}

// pages are those that show what was read.
var pages = []*page{overviewPage, namePage, claimPage, nodesPage, nodePage, runsPage, leadersPage, searchPage, cyclesPage, actionsPage, namesPage}

var overviewPage = &page{
	name: "overview", asks: []string{"kind", "state"}, regions: []string{"names"}, every: watch.OverviewEvery,
	title: func(url.Values) string { return "Overview" },
	open: func(c *Console, q url.Values) (source, error) {
		kind, level := q.Get("kind"), berth.Level(q.Get("state"))
		if kind != "" && act.Nouns[keyspace.Kind(kind)] == "" {
			return nil, berth.Invalid("kind", "%q is none of sem, lock and pool", kind)
		} else if level != "" && level.Compare("") == 0 {
			return nil, berth.Invalid("state", "%q is none of stuck, overdue, meant, busy and free", level)
		}
		return fed[inspect.Page[berth.Name]]{
			c.watch.Overview(),
			func(p inspect.Page[berth.Name]) (any, time.Time) {
				return overviewOf(p, keyspace.Kind(kind), level).with(c.watch.DrainsSeen(), c.cfg.Namespace), p.At
			},
		}, nil
	},
}

var namePage = &page{
	name: "name", asks: []string{"kind", "name", "holders", "line"}, regions: []string{"state", "chart", "resources", "holders", "line", "holds"},
	every: watch.NameEvery,
	title: func(q url.Values) string { return text.Plain(q.Get("name")) + " (" + kindWord(q.Get("kind")) + ")" },
	open:  openName,
}

var claimPage = &page{
	name: "claim", asks: []string{"kind", "name", "id"}, regions: []string{"state", "blockers"}, every: watch.NameEvery,
	title: func(q url.Values) string { return "Claim of " + text.Plain(q.Get("name")) },
	open:  openName,
}

func openName(c *Console, q url.Values) (source, error) {
	claim := q.Get("id")
	return fed[watch.Name]{
		c.watch.Name(keyspace.Kind(q.Get("kind")), q.Get("name"), claim),
		func(n watch.Name) (any, time.Time) {
			v := nameOf(n, claim, q)
			e := &n.Explanation
			if claim != "" {
				e = v.Why
			}
			v.Mends = c.mends(e)
			return v, n.At
		},
	}, nil
}

// fed is a source that the server is read for.
type fed[T any] struct {
	*watch.Feed[T]
	view func(T) (any, time.Time)
}

func (f fed[T]) last(known int) (reading, <-chan struct{}) {
	last, news := f.Last()
	r := reading{at: last.At, err: last.Err, seq: last.Seq, turn: last.Turn}
	if !last.At.IsZero() && last.Seq != known {
		r.view, r.clock = f.view(last.Value)
	}
	return r, news
}

// topicOf is what a request for a page asks for.
func (c *Console) topicOf(name string, r *http.Request, a Access) (topic, error) {
	i := slices.IndexFunc(pages, func(p *page) bool { return p.name == name })
	if i < 0 {
		return topic{}, errNoPage
	}
	if pages[i] == actionsPage {
		if err := c.mayAct(a); err != nil {
			return topic{}, err
		}
	}
	t := topic{page: pages[i], query: url.Values{}, act: a.Act}
	asked := r.URL.Query()
	for _, key := range t.page.asks {
		if v := asked.Get(key); v != "" {
			t.query.Set(key, v)
		}
	}
	return t, nil
}
