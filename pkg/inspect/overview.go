package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Overview reads again and again the names that somebody waits for, as a page does that stays open: of more than it may
// read at once it reads those with the most waiting claims each time, and the others in turn. While few are waited for, it
// has names that are in use beside them. It is not safe for concurrent use. There is nothing to close.
type Overview struct {
	reader *Reader
	filter NameFilter
	clock  clock.Clock

	parts   reader.Parts // of the registry, that the next pass reads
	known   map[berth.Ref]*seen
	notices map[keyspace.Kind]notice.Field
	noticed aged
	walked  aged   // when names were looked for that nobody waits for
	cursor  string // where they are looked for next
	passes  int
	founds  int  // how many names were found
	few     bool // fewer than fewNames are waited for
	quiet   int  // how many names are shown that nobody waits for
}

// seen is a name that an Overview knows.
type seen struct {
	ref     berth.Ref
	waiting int
	row     *berth.Name // as it was read last, nil where it was not among the first
	read    int         // the pass that has read it, 0 for none
	found   int         // the pass that has found it
	place   int         // the how many-th of all that were found
	noted   aged        // when the registry had it
	quiet   bool        // it is in use, and shown though nobody waits for it
}

// shown says that a name belongs to the overview.
func (s *seen) shown() bool { return s.waiting > 0 || s.quiet || s.row != nil && s.row.Err != nil }

// compare ranks names: those with the most waiting claims first.
func (s *seen) compare(other *seen) int {
	return rank{s.waiting, s.ref.Kind, s.ref.Name}.compare(rank{other.waiting, other.ref.Kind, other.ref.Name})
}

const (
	passShard   = 50     // how many names of each shard of the registry a pass reads
	passNames   = 200    // how many names it reads
	passFirst   = 100    // how many of these are those with the most waiting claims
	passNew     = 50     // how many of the others are the newest that were not read yet
	passHolds   = 20     // how many holds of each
	passTrip    = 50     // how many names are read together
	rowsMost    = 200    // how many names are told
	knownMost   = 10_000 // how many names are remembered
	fewNames    = 20     // while fewer are waited for, others are shown
	quietNames  = 100    // how many of these there are at most
	quietEach   = 30 * time.Second
	forgetAfter = time.Minute
)

// Overview returns what reads the names that a filter means; Idle and Waiting do not count.
func (r *Reader) Overview(f NameFilter) (*Overview, error) {
	if err := checkKinds(f.Kinds); err != nil {
		return nil, err
	}
	f.Waiting, f.Idle = true, false
	return &Overview{reader: r, filter: f, clock: clock.New(), known: map[berth.Ref]*seen{}, few: true}, nil
}

// Read makes one pass: it reads up to 50 names of each of the 16 shards of the registry, in one pass the newest and in the next
// one others in turn, and of all that it knows up to 200 names, 50 at once: the 100 with the most waiting claims, up to 50 of
// those that were found last and not read yet, and others in turn. So a name that begins to contend is among them after two
// passes at the latest, unless more than 50 do in a pass.
//
// The page has up to 200 names, and no Next: those with the most waiting claims first. One that this pass has not read is as
// an earlier one has found it: see its At. One that nobody waits for any more is left out by the pass that finds that. Of
// other names, up to 10 000, an Overview remembers only how many claims wait.
//
// While fewer than 20 names are waited for, up to 100 follow that are in use, and one that nobody waits for any more stays as
// long as it is. They are looked for in a page of Names, at most once in 30 s, and then read in turn with the others.
//
// Partial says that there are more names than the page has, that the registry has more than one pass reads of it, or that
// some were not read yet, or could not be. A pause of all names is known for 5 s. The error is that of a pass that has read nothing.
func (o *Overview) Read(ctx context.Context) (page Page[berth.Name], err error) {
	now := o.clock.Now()
	o.passes++
	noted, err := o.find(ctx, now)
	page = Page[berth.Name]{Partial: noted.More || err != nil, At: time.UnixMilli(noted.Now), Replica: noted.Replica, Problems: problems(err)}
	if ctx.Err() != nil {
		return Page[berth.Name]{}, context.Cause(ctx)
	} else if err != nil && noted.Now == 0 {
		return Page[berth.Name]{}, err
	}
	if o.noticed.due(now, noticeFor) {
		all, err := o.reader.notices(ctx, o.filter.kinds())
		if page.Problems = append(page.Problems, problems(err)...); err == nil {
			o.notices, o.noticed = all, aged{true, now}
		}
	}
	refs := o.turn()
	read, failed := o.take(ctx, refs)
	page.Problems = append(page.Problems, problems(failed)...)
	if o.few = o.contended() < fewNames; o.few {
		page.Problems = append(page.Problems, o.fill(ctx, now, passNames-len(refs))...)
	}
	page.Partial = page.Partial || len(page.Problems) > 0
	if ctx.Err() != nil {
		return Page[berth.Name]{}, context.Cause(ctx)
	} else if failed != nil && read == 0 {
		return Page[berth.Name]{}, failed
	}
	o.forget(now)
	items, more := o.rows()
	page.Items, page.Partial = items, page.Partial || more
	return page, nil
}

// rows are the names that are told, and whether there may be more. Of others no rows are kept.
func (o *Overview) rows() (items []berth.Name, more bool) {
	for _, s := range o.ranked() {
		switch shown := s.shown(); {
		case shown && s.row != nil && len(items) < rowsMost:
			items = append(items, *s.row)
		default:
			s.row, more = nil, more || shown || s.read == 0
		}
	}
	return items, more
}

// ranked are all names that are known, by rank.
func (o *Overview) ranked() []*seen {
	all := slices.Collect(maps.Values(o.known))
	slices.SortFunc(all, (*seen).compare)
	return all
}

// find looks into the registry.
func (o *Overview) find(ctx context.Context, now time.Duration) (reader.Noted, error) {
	together := o.reader.redis.Mode() != rueidis.ClientModeCluster
	from, newest := o.parts, o.passes%2 == 1
	if newest {
		from = reader.Parts{}
	}
	noted, next, err := o.reader.read.Registry(ctx, together, passShard, from)
	if from == o.parts {
		o.parts = next
	}
	for _, ref := range noted.Refs {
		if slices.Contains(o.filter.kinds(), ref.Kind) && strings.HasPrefix(ref.Name, o.filter.Prefix) {
			o.know(ref).noted = aged{true, now}
		}
	}
	return noted, err
}

// know is a name that is known from now on.
func (o *Overview) know(ref berth.Ref) *seen {
	s := o.known[ref]
	if s == nil {
		o.founds++
		s = &seen{ref: ref, found: o.passes, place: o.founds}
		o.known[ref] = s
	}
	return s
}

// turn are the names that this pass reads.
func (o *Overview) turn() (refs []berth.Ref) {
	all := o.ranked()
	n := 0
	for n < min(passFirst, len(all)) && all[n].waiting > 0 {
		n++
	}
	bare := map[*seen]bool{} // that are to be told, and of which there is no row
	for _, s := range all[n:min(len(all), rowsMost)] {
		bare[s] = s.waiting > 0 && s.row == nil
	}
	slices.SortFunc(all[n:], func(a, b *seen) int {
		return cmp.Or(cmp.Compare(min(a.read, 1), min(b.read, 1)), cmp.Compare(b.found, a.found), cmp.Compare(a.place, b.place))
	})
	for k := 0; k < passNew && n < len(all) && all[n].read == 0; k++ {
		n++
	}
	slices.SortFunc(all[n:], func(a, b *seen) int {
		switch {
		case bare[a] && !bare[b]:
			return -1
		case bare[b] && !bare[a]:
			return 1
		}
		return cmp.Or(cmp.Compare(a.read, b.read), cmp.Compare(a.place, b.place))
	})
	for _, s := range all[:min(len(all), passNames)] {
		refs = append(refs, s.ref)
	}
	return refs
}

// take reads names, and says how many were.
func (o *Overview) take(ctx context.Context, refs []berth.Ref) (read int, err error) {
	if len(refs) == 0 {
		return 0, nil
	}
	var mu sync.Mutex
	err = o.reader.batches(ctx, refs, func(berth.Ref) int { return reader.Most / passTrip }, func(node rueidis.Client, refs []berth.Ref) error {
		rows, err := o.reader.read.Rows(ctx, node, passHolds, refs...)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range rows {
			o.note(&rows[i])
		}
		read += len(rows)
		return nil
	})
	return read, err
}

// note notes how a name was found. One that is in use is shown while few are waited for.
func (o *Overview) note(n *reader.Row) {
	s, row := o.know(berth.Ref{Kind: n.Kind, Name: n.Name.Name}), named(n, o.notices[n.Kind], nil)
	s.row, s.waiting, s.read = &row, row.Waiting, o.passes
	o.quiets(s, n.Used() && o.few && (s.quiet || o.quiet < quietNames))
}

// quiets has a name be shown, or not, though nobody waits for it.
func (o *Overview) quiets(s *seen, quiet bool) {
	if s.quiet {
		o.quiet--
	}
	if s.quiet = quiet; quiet {
		o.quiet++
	}
}

// contended is how many names somebody waits for.
func (o *Overview) contended() (n int) {
	for _, s := range o.known {
		if s.waiting > 0 {
			n++
		}
	}
	return n
}

// fill looks for names that are in use, up to so many.
func (o *Overview) fill(ctx context.Context, now time.Duration, most int) []error {
	if most = min(most, quietNames-o.quiet); most <= 0 || !o.walked.due(now, quietEach) {
		return nil
	}
	found, err := o.reader.read.NamesPage(ctx, reader.Walk{Redis: o.reader.redis, Kinds: o.filter.kinds(), Prefix: o.filter.Prefix}, o.cursor, most)
	if err != nil {
		o.cursor = ""
		return problems(err)
	}
	o.walked, o.cursor = aged{true, now}, found.Next
	for i := range found.Names {
		o.note(&found.Names[i])
	}
	return found.Problems
}

// forget forgets names that are not shown and that the registry does not have any more, and those of the lowest rank where
// there are too many: of those that nobody waits for the ones that were read, or found the longest ago.
func (o *Overview) forget(now time.Duration) {
	o.few = o.contended() < fewNames
	for ref, s := range o.known {
		o.quiets(s, s.quiet && o.few)
		if shown := s.waiting > 0 || s.quiet; !shown && s.noted.due(now, forgetAfter) {
			delete(o.known, ref)
		}
	}
	if len(o.known) <= knownMost {
		return
	}
	all := o.ranked()
	slices.SortStableFunc(all, func(a, b *seen) int {
		return cmp.Or(cmp.Compare(b.waiting, a.waiting), cmp.Compare(min(a.read, 1), min(b.read, 1)), cmp.Compare(b.found, a.found))
	})
	for _, s := range all[knownMost:] {
		o.quiets(s, false)
		delete(o.known, s.ref)
	}
}
