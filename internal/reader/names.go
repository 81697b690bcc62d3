package reader

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

const (
	// names is how many are read together.
	names = 100
	// within is how long a page of names may take, by the client's clock, looked at between its trips.
	within = 200 * time.Millisecond
	// scans is how many times a page looks for names at the most: among others' keys there may be none.
	scans = 200
)

// Walk says which names are meant.
type Walk struct {
	Redis  rueidis.Client
	Kinds  []keyspace.Kind
	Prefix string // what the names begin with
	Idle   bool   // also those that are remembered only
}

// Names is a page of names. Names that cannot be read have an Err.
type Names struct {
	Names    []Row
	Next     string // where the next page begins, "" after the last
	Partial  bool   // it ended for time, or because so much was looked at, or some server's names are missing
	Replica  bool
	Now      time.Time
	Problems []error // of servers
}

// NamesPage reads up to so many names behind a cursor, in no order; promises are those of Servers, and a name may be
// there twice. The error is berth.ErrInvalidConfig for a cursor that is none, the end of ctx, or that of the servers where none
// has answered.
func (r *Reader) NamesPage(ctx context.Context, w Walk, cursor string, most int) (page Names, err error) {
	at, err := placeOf(cursor)
	if err != nil {
		return page, err
	}
	p := pager{Reader: r, Walk: w, page: &page, nodes: w.Redis.Nodes(), at: &at, match: r.match(w.Prefix, w.Kinds...)}
	if err := p.walk(ctx, func() bool { return len(page.Names) == most }, func() { p.read(ctx, most-len(page.Names)) }); err != nil {
		return Names{}, err
	}
	return page, nil
}

// placeOf is the counterpart of cursor.
func placeOf(cursor string) (at place, err error) {
	if cursor == "" {
		return place{Version: 1, Scan: "0"}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil || at.Version != 1 || !inPart(at.In) {
		return place{}, berth.Invalid("cursor", "%q is none of a page", cursor)
	}
	at.done = at.Node == ""
	return at, nil
}

func (at *place) cursor() string {
	if at.done {
		at.Node = ""
	}
	text, _ := json.Marshal(at)
	return base64.RawURLEncoding.EncodeToString(text)
}

// pager reads a page of names.
type pager struct {
	*Reader
	Walk
	page    *Names
	nodes   map[string]rueidis.Client
	at      *place
	match   string
	entries int  // how many were looked at
	scans   int  // how many times names were looked for
	fat     bool // a thin name has nothing that is meant
}

// walk finds names and reads of them until the page is full or at its bounds, or there are no more. Its error is that of
// NamesPage.
func (p *pager) walk(ctx context.Context, full func() bool, read func()) error {
	for c, began := clock.New(), false; !p.at.done || len(p.at.Left) > 0; began = true {
		if full() {
			break
		}
		if p.page.Partial = p.entries >= Most || p.scans >= scans || began && c.Now() >= within; p.page.Partial {
			break
		}
		if len(p.at.Left) > 0 {
			read()
		} else {
			p.find(ctx)
		}
		if err := scriptkit.CallersEnd(ctx); err != nil {
			return cmp.Or(p.silence(), err)
		}
	}
	if err := p.silence(); err != nil {
		return err
	}
	p.page.Partial = p.page.Partial || len(p.page.Problems) > 0
	if !p.at.done || len(p.at.Left) > 0 {
		p.page.Next = p.at.cursor()
	}
	return nil
}

// silence is why no server has answered, nil where one has.
func (p *pager) silence() error {
	if p.at.answered {
		return nil
	}
	return Joined(p.page.Problems...)
}

// find passes some keys, and notes which names are to be read: all but idle thin ones.
func (p *pager) find(ctx context.Context) {
	if p.scans++; p.at.Node == "" {
		p.at.on(p.nodes)
	}
	address, count := p.at.Node, scanned
	if p.Idle {
		count = names // all of them go into the cursor
	}
	found, from, problems := p.step(ctx, p.nodes, p.at, pattern{p.match, count, p.fat}, p.Kinds...)
	p.heed(from, problems)
	if p.at.From, p.at.Left = address, found; p.Idle || len(found) == 0 {
		return
	}
	used, err := p.used(ctx, p.Redis, p.nodes[address], found)
	if err != nil {
		p.leave(ctx, err)
		return
	}
	p.at.Left = used
}

// leave leaves the names out that are to be read, and the server's others.
func (p *pager) leave(ctx context.Context, problem error) {
	p.at.Left = nil
	p.page.Problems = append(p.page.Problems, p.lost(ctx, p.nodes, p.at, p.at.From, problem)...)
}

// read reads some of the names that were found.
func (p *pager) read(ctx context.Context, most int) {
	n := min(len(p.at.Left), most, names)
	k := min(held, max(1, (Most-p.entries-n)/n))
	rows, err := p.Rows(ctx, p.nodes[p.at.From], k, nil, p.at.Left[:n]...)
	if err != nil {
		p.leave(ctx, err)
		return
	}
	p.at.Left, p.at.answered = p.at.Left[n:], true
	for _, row := range rows {
		p.entries += 1 + min(row.Holders, k) + min(row.Expired, k)
		if p.Idle || row.Used() {
			p.page.Names = append(p.page.Names, row)
			p.page.Replica = p.page.Replica || row.Replica
			if p.page.Now.IsZero() && row.Err == nil {
				p.page.Now = row.At
			}
		}
	}
}

// Used says that a name is more than remembered. One that cannot be read may be.
func (n *Row) Used() bool {
	return n.Err != nil || n.Holders+n.Live() > 0 || n.Own.Until > 0 || n.Pool != nil && n.Capacity > 0 || n.Runs != nil
}

// heed takes note of an answer.
func (p *pager) heed(from scriptkit.Answers, problems []error) {
	if len(problems) > 0 {
		p.page.Problems = append(p.page.Problems, problems...)
		return
	}
	p.page.Replica = p.page.Replica || from.Replica
	if p.page.Now.IsZero() {
		p.page.Now = time.UnixMilli(from.Now)
	}
}
