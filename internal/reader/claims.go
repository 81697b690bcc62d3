package reader

import (
	"context"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Listed is a claim with its name: one that holds, or one that waits.
type Listed struct {
	berth.Ref
	Holder *berth.Holder
	Waiter *berth.Waiter
	Pause  Pause     // of the name
	Heard  time.Time // of a waiter: when its node was last heard of
}

// Claims is a page of claims.
type Claims struct {
	Claims []Listed
	Names  // without names; its problems are of claims and names, too
	Moving bool
}

// Which says which claims of the names of a walk are meant.
type Which struct {
	Walk
	Holds, Waits bool
	Keep         func(*Listed) bool
}

// ClaimsPage reads up to so many claims behind a cursor, in no order: of each name those that wait first, so that one
// that is granted meanwhile is not missed but there twice. It looks at little more than Most entries. Its error is that of
// NamesPage.
func (r *Reader) ClaimsPage(ctx context.Context, w Which, cursor string, most int) (Claims, error) {
	var found Claims
	at, err := placeOf(cursor)
	if err != nil {
		return found, err
	}
	p := claims{
		pager: pager{Reader: r, Walk: w.Walk, page: &found.Names, nodes: w.Redis.Nodes(), at: &at, match: r.match(w.Prefix, w.Kinds...), fat: !w.Holds},
		Which: w, found: &found, most: most,
	}
	if err := p.walk(ctx, func() bool { return len(found.Claims) == most }, func() { p.read(ctx) }); err != nil {
		return Claims{}, err
	}
	return found, nil
}

// claims reads a page of claims.
type claims struct {
	pager
	Which
	found *Claims
	most  int
}

// read reads claims of some of the names that were found: of as many as there is room for, of one at least.
func (p *claims) read(ctx context.Context) {
	refs := p.at.Left[:min(len(p.at.Left), names)]
	node := p.nodes[p.at.From]
	sizes, err := p.Sizes(ctx, node, refs...)
	room, n := Most-p.entries, 0
	for sum := 0; err == nil && n < len(sizes); n++ {
		if sum += 1 + sizes[n].Held + sizes[n].Waiting; n > 0 && sum > room {
			break
		}
	}
	read := make([]ofName, n)
	if n > 0 {
		err = p.each(ctx, "claims", node, refs[:n], func(i int, t *turn) (err error) {
			of := &read[i]
			if *of = (ofName{Size: sizes[i], most: room}); i == 0 {
				of.in = p.at.In
			}
			if of.Err == nil && of.Held+of.Waiting > 0 {
				err = of.claims(t, p.Holds, p.Waits)
			}
			p.page.Replica = p.page.Replica || t.replica
			if p.page.Now.IsZero() && t.now > 0 {
				p.page.Now = t.at()
			}
			return err
		}, func(i int, _ *turn, err error) { read[i].Err, read[i].next = err, "" })
	}
	if err != nil {
		p.at.In = ""
		p.leave(ctx, err)
		return
	}
	p.at.answered = true
	for i := range read {
		if !p.take(&read[i]) {
			p.at.Left = p.at.Left[i:]
			return
		}
	}
	p.at.Left, p.at.In = p.at.Left[n:], ""
}

// take takes what was read of a name. It returns false where the name is to be gone on with, and notes where.
func (p *claims) take(of *ofName) bool {
	p.entries += 1 + of.read
	p.found.Moving = p.found.Moving || of.moving
	if of.Err != nil {
		p.page.Problems = append(p.page.Problems, of.Err)
	}
	for i := range of.found {
		f := &of.found[i]
		switch f.Entry.Ref, f.Entry.Pause = of.Ref, of.Pause; {
		case f.Err != nil:
			p.page.Problems = append(p.page.Problems, f.Err)
		case p.Keep(&f.Entry):
			p.found.Claims = append(p.found.Claims, f.Entry)
		}
		if len(p.found.Claims) == p.most {
			p.at.In = of.places[i]
			return false
		}
	}
	p.at.In = of.next
	return of.next == ""
}

// ofName is the reading of claims of one name.
type ofName struct {
	Size
	in, next string // where it begins, and where it is to be gone on with: "" for the beginning, and for the end
	most     int
	read     int
	found    []Found[Listed]
	places   []string // where to go on behind each
	moving   bool
}

// The places in the claims of a name begin with what is read there.
const (
	inWaits = "w"
	inHolds = "h"
)

// claims reads up to so many: those that wait, and then those that hold. Of a lock the entries are read together.
func (n *ofName) claims(t *turn, holds, waits bool) error {
	phase, rest := inWaits, ""
	if n.in != "" {
		phase, rest = n.in[:1], n.in[1:]
	}
	if phase == inWaits {
		if waits && n.Waiting > 0 {
			err := claimsIn(t, n, inWaits, rest, (*turn).waitersPage, func(w *berth.Waiter) Listed { return Listed{Waiter: w} })
			if err != nil || n.next != "" {
				return err
			}
		}
		rest = ""
	}
	switch {
	case !holds || n.Held == 0:
		return nil
	case n.read >= n.most:
		n.next = inHolds
		return nil
	case n.Kind == keyspace.Lock:
		return n.entries(t, rest)
	}
	return claimsIn(t, n, inHolds, rest, (*turn).holdersPage, func(h *berth.Holder) Listed { return Listed{Holder: h} })
}

// claimsIn reads holds or waits behind a place.
func claimsIn[E any](t *turn, n *ofName, phase, rest string, try func(t *turn, after *member, most int) (Page[E], bool, error), listed func(*E) Listed) error {
	var after *member
	if rest != "" {
		m, err := memberOf(rest)
		if err != nil {
			return err
		}
		after = &m
	}
	var page Page[E]
	moving, err := t.again(1, func() (still bool, err error) {
		page, still, err = try(t, after, n.most-n.read)
		return still, err
	})
	n.moving = n.moving || moving
	for i := range page.Found {
		f := &page.Found[i]
		one := Found[Listed]{Entry: listed(&f.Entry), Err: f.Err}
		one.Entry.Heard = f.Heard
		n.found = append(n.found, one)
		n.places = append(n.places, phase+cursorOf(f.at))
	}
	if n.read += len(page.Found); page.Next != "" {
		n.read = n.most // dead ones, too
		n.next = phase + page.Next
	}
	return err
}

// entries reads those of a lock that stand behind one, whose place is its id.
func (n *ofName) entries(t *turn, behind string) error {
	var row Row
	moving, err := t.again(1, func() (still bool, err error) {
		row, still, err = t.row(held)
		return still, err
	})
	n.moving = n.moving || moving
	n.read += len(row.Entries)
	for i := range row.Entries {
		e := &row.Entries[i]
		n.found = append(n.found, Found[Listed]{Entry: Listed{Holder: &e.Entry}, Err: e.Err})
		n.places = append(n.places, inHolds+e.Entry.ID)
		if e.Entry.ID == behind {
			n.found, n.places = nil, nil
		}
	}
	return err
}

// inPart says whether a place is one of a cursor.
func inPart(in string) bool {
	return in == "" || strings.HasPrefix(in, inWaits) || strings.HasPrefix(in, inHolds)
}
