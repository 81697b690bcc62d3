package jam

import (
	"context"
	"net/url"

	"github.com/berth-go/berth/pkg/keyspace"
)

// View is one page of the console.
type View struct {
	Name string
	// Path is its address, relative to that of the console.
	Path string
	// Code is what it is answered with, 0 for 200.
	Code int
	// Hostile says that it shows what only strangers write: it belongs to tests.
	Hostile bool
}

// Views are all pages that the console has of the jam.
func (j *Jam) Views(ctx context.Context) ([]View, error) {
	holders, err := j.read.Holders(ctx, keyspace.Sem, Full, "", 100)
	if err != nil {
		return nil, err
	}
	dead := ""
	for _, h := range holders.Items {
		if h.Node == j.Dead {
			dead = h.ID
		}
	}
	waiters, err := j.read.Waiters(ctx, keyspace.Sem, Full, "", 100)
	if err != nil {
		return nil, err
	}
	resting, err := j.read.Waiters(ctx, keyspace.Pool, Resting, "", 100)
	if err != nil {
		return nil, err
	}
	strange, err := j.strange(ctx)
	if err != nil {
		return nil, err
	}
	first := waiters.Items[0]
	return append([]View{
		{Name: "overview", Path: "./"},
		{Name: "overview-locks", Path: "./?kind=lock"},
		{Name: "name", Path: NamePath(keyspace.Sem, Full)},
		{Name: "lock", Path: NamePath(keyspace.Lock, Cycle[0])},
		{Name: "paused", Path: NamePath(keyspace.Sem, Paused)},
		{Name: "endless", Path: NamePath(keyspace.Lock, Endless)},
		{Name: "pool", Path: NamePath(keyspace.Pool, Resting)},
		{Name: "proxies", Path: NamePath(keyspace.Pool, Proxies)},
		{Name: "claim-waiting", Path: ClaimPath(keyspace.Sem, Full, first.ID)},
		{Name: "claim-dead", Path: ClaimPath(keyspace.Sem, Full, dead)},
		{Name: "claim-resting", Path: ClaimPath(keyspace.Pool, Resting, resting.Items[0].ID)},
		{Name: "node", Path: path("node", "id", first.Node)},
		{Name: "node-dead", Path: path("node", "id", j.Dead)},
		{Name: "nodes", Path: "nodes"},
		{Name: "runs", Path: "runs"},
		{Name: "leaders", Path: "leaders"},
		{Name: "cycles", Path: "cycles"},
		{Name: "names", Path: "names"},
		{Name: "search-name", Path: path("search", "by", "name", "q", "a")},
		{Name: "search-owner", Path: path("search", "by", "owner", "q", first.Owner)},
		{Name: "search-label", Path: path("search", "by", "label", "q", first.Label)},
		{Name: "search-node", Path: path("search", "by", "node", "q", first.Node)},
		{Name: "search-nothing", Path: path("search", "by", "name", "q", "nothing has this name")},
		{Name: "actions", Path: "actions"},
		{Name: "act-release", Path: actPath("release", keyspace.Sem, Full, "claim", dead)},
		{Name: "act-pause", Path: actPath("pause", keyspace.Sem, Full)},
		{Name: "act-unpause", Path: actPath("unpause", keyspace.Sem, Paused)},
		{Name: "act-resize", Path: actPath("resize", keyspace.Sem, Full, "capacity", "9")},
		{Name: "act-rest", Path: actPath("rest", keyspace.Pool, Proxies, "resource", "10.0.0.1:3128")},
		{Name: "act-rest-ends", Path: actPath("rest", keyspace.Pool, Resting, "resource", "ana@example.org", "for", "0")},
		{Name: "act-drain", Path: path("act", "verb", "drain", "node", first.Node)},
		{Name: "no-name", Path: NamePath(keyspace.Sem, "nobody/has/this")},
		{Name: "no-claim", Path: ClaimPath(keyspace.Sem, Full, "nobody.has-this")},
	}, strange...), nil
}

// strange are the pages of what strangers have written.
func (j *Jam) strange(ctx context.Context) (views []View, err error) {
	if j.cfg.Plain {
		return nil, nil
	}
	for _, n := range []struct {
		kind       keyspace.Kind
		name, what string
	}{
		{keyspace.Sem, Image, "an image"},
		{keyspace.Sem, Escaped, "an address"},
		{keyspace.Sem, Long, "a long name"},
		{keyspace.Sem, RightTo, "a name from right to left"},
		{keyspace.Lock, Script, "a script"},
		{keyspace.Lock, Parent, "a folder"},
		{keyspace.Pool, Location, "a scheme"},
	} {
		waiters, err := j.read.Waiters(ctx, n.kind, n.name, "", 1)
		if err != nil {
			return nil, err
		}
		holders, err := j.read.Holders(ctx, n.kind, n.name, "", 1)
		if err != nil {
			return nil, err
		}
		w, h := waiters.Items[0], holders.Items[0]
		views = append(views,
			View{Name: "name " + n.what, Path: NamePath(n.kind, n.name), Hostile: true},
			View{Name: "hold of " + n.what, Path: ClaimPath(n.kind, n.name, h.ID), Hostile: true},
			View{Name: "wait for " + n.what, Path: ClaimPath(n.kind, n.name, w.ID), Hostile: true},
			View{Name: "node of " + n.what, Path: path("node", "id", h.Node), Hostile: true},
			View{Name: "owner of " + n.what, Path: path("search", "by", "owner", "q", w.Owner), Hostile: true},
			View{Name: "label of " + n.what, Path: path("search", "by", "label", "q", h.Label), Hostile: true},
			View{Name: "act on " + n.what, Path: actPath("release", n.kind, n.name, "claim", w.ID), Hostile: true},
			View{Name: "pause " + n.what, Path: actPath("pause", n.kind, n.name, "reason", closing+broken), Hostile: true},
			View{Name: "search for " + n.what, Path: path("search", "by", "name", "q", n.name), Hostile: true},
		)
	}
	return append(views,
		View{Name: "a kind of markup", Path: path("name", "kind", closing, "name", Image), Code: 400, Hostile: true},
		View{Name: "a page of markup", Path: url.PathEscape(closing), Code: 404, Hostile: true},
		View{Name: "a node of markup", Path: path("node", "id", closing+backwards+broken), Hostile: true},
		View{Name: "a resource of markup", Path: actPath("rest", keyspace.Pool, Location, "resource", closing+wrong), Hostile: true},
		View{Name: "a drain of markup", Path: path("act", "verb", "drain", "label", closing+backwards+broken), Hostile: true},
		View{Name: "a search by markup", Path: path("search", "by", closing, "q", Script+backwards+broken+wrong), Code: 400, Hostile: true},
	), nil
}

// NamePath is the address of a name.
func NamePath(kind keyspace.Kind, name string) string {
	return path("name", "kind", string(kind), "name", name)
}

// ClaimPath is the address of a claim.
func ClaimPath(kind keyspace.Kind, name, id string) string {
	return path("claim", "kind", string(kind), "name", name, "id", id)
}

// actPath is the address of the page that asks whether something is to be done.
func actPath(verb string, kind keyspace.Kind, name string, pairs ...string) string {
	return path("act", append([]string{"verb", verb, "kind", string(kind), "name", name}, pairs...)...)
}

func path(page string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return page + "?" + q.Encode()
}
