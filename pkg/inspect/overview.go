package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Overview reads again and again the names that somebody waits for, as a page does that stays open: of more than it may
// read at once it reads those in the worst state and with the most waiting claims each time, and the others in turn. While few are
// waited for, it has names that are in use beside them. It is not safe for concurrent use. There is nothing to close.
type Overview struct {
	reader *Reader
	filter NameFilter
	clock  clock.Clock

	parts   reader.Parts // of the registry, that the next pass reads
	known   map[berth.Ref]*seen
	notices map[keyspace.Kind]notice.Field
	noticed aged
	dead    map[string]bool // nodes of holds without an end, and whether they count as dead
	probed  aged
	cycles  map[berth.Ref]berth.Trouble
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
	waiting int         // claims that are not known to be dead
	level   berth.Level // of its state, "" where it was not read
	row     *berth.Name // as it was read last, nil where it was not among the first
	read    int         // the pass that has read it, 0 for none
	found   int         // the pass that has found it
	place   int         // the how many-th of all that were found
	noted   aged        // when the registry had it
	form    reader.Form
	quiet   bool // it is in use, and shown though nobody waits for it
}

// shown says that a name belongs to the overview.
func (s *seen) shown() bool { return s.waiting > 0 || s.quiet || s.row != nil && s.row.Err != nil }

// compare ranks names: those in the worst state first, then those with the most waiting claims.
func (s *seen) compare(other *seen) int { return s.rank().compare(other.rank()) }

func (s *seen) rank() rank { return rank{s.level, s.waiting, s.ref.Kind, s.ref.Name} }

// bad says that a name is shown also where nobody waits for it, and many are waited for.
func (s *seen) bad() bool { return s.level.Compare(berth.LevelBusy) < 0 }

const (
	passShard   = 50     // how many names of each shard of the registry a pass reads
	passNames   = 200    // how many names it reads
	passFirst   = 100    // how many of these are the first by rank
	passNew     = 50     // how many of the others are the newest that were not read yet
	passHolds   = 20     // how many holds of each
	passWalk    = 50     // how many are names in use that a walk has met, while many are waited for
	passTrip    = 50     // how many names are read together
	rowsMost    = 200    // how many names are told
	knownMost   = 10_000 // how many names are remembered
	fewNames    = 20     // while fewer are waited for, others are shown
	quietNames  = 100    // how many of these there are at most; twice as many if their state is bad
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
// one others in turn, and of all that it knows up to 200 names, 50 at once: the first 100 of a page, up to 50 of
// those that were found last and not read yet, and others in turn. So a name that begins to contend is among them after two
// passes at the latest, unless more than 50 do in a pass. For a name that was read before a pass sends about half as many commands.
//
// The page has up to 200 names, and no Next: those in the worst state first, and of these those with the most living claims that
// wait. One that this pass has not read is as
// an earlier one has found it: see its At. One that nobody waits for any more is left out by the pass that finds that. Of
// other names, up to 10 000, an Overview remembers only how many claims wait.
//
// While fewer than 20 names are waited for, up to 100 follow that are in use, and one that nobody waits for any more stays as
// long as it is. They are looked for in a page of Names, at most once in 30 s, and then read in turn with the others. While
// more are waited for, up to 200 of those that were met are shown whose state is worse than berth.LevelBusy. Of a node of a swarm
// that holds something without an end the swarm is asked once in 5 s.
//
// Partial says that there are more names than the page has, that the registry has more than one pass reads of it, or that
// some were not read yet, or could not be. A pause of all names is known for 5 s. The error is that of a pass that has read nothing.
func (o *Overview) Read(ctx context.Context) (page Page[berth.Name], err error) {
	now := o.clock.Now()
	o.passes++
	from, newest := o.parts, o.passes%2 == 1
	if newest {
		from = reader.Parts{}
	}
	noted, next, err := o.find(ctx, now, passShard, from)
	if from == o.parts {
		o.parts = next
	}
	if page, err = o.begin(ctx, now, noted, err); err != nil {
		return page, err
	}
	refs := o.turn()
	if !o.few && o.walked.due(now, quietEach) {
		refs = refs[:min(len(refs), passNames-passWalk)]
	}
	read, failed := o.take(ctx, now, refs)
	page.Problems = append(page.Problems, problems(failed)...)
	o.fill(ctx, now, passNames-len(refs), &page)
	return o.end(ctx, now, page, read, failed)
}

// Whole makes one pass that reads until it has the first 200 names of all, as a page does that is read once: it reads of up
// to 10 000 names of the registry how many claims wait, searches for cycles, and reads the first ones. It
// takes as long as within at most, half of it for the search.
//
// Partial says that more names are waited for than the page has, that time was over, that the registry has more than were looked
// at, or that some could not be read. Page.Unread is how many names were not read. The rest is as Read has it.
func (o *Overview) Whole(ctx context.Context, within time.Duration) (page Page[berth.Name], err error) {
	if within <= 0 {
		return page, berth.Invalid("within", "%s is not above 0", within)
	}
	limited, cancel := scriptkit.Limit(ctx, within)
	defer cancel()
	now := o.clock.Now()
	o.passes++
	noted, _, err := o.find(limited, now, knownMost/state.Shards, reader.Parts{})
	if page, err = o.begin(limited, now, noted, err); err != nil {
		return page, err
	}
	sizes, failed := o.reader.sizes(limited, slices.Collect(maps.Keys(o.known)))
	for _, size := range sizes {
		if s := o.known[size.Ref]; size.Err == nil && size.Waiting == 0 && s.row == nil {
			o.quiets(s, false)
			delete(o.known, size.Ref)
		} else {
			s.waiting, s.level = size.Waiting, cmp.Or(s.level, berth.LevelBusy)
		}
	}
	cycles, unsearched := o.reader.Cycles(limited, &CycleOptions{Within: max(within/2, 1)})
	if unsearched == nil {
		o.Mark(&cycles)
	}
	page.Problems = append(page.Problems, problems(reader.Joined(failed, unsearched))...)
	read := 0
	for refs := o.bare(); len(refs) > 0; refs = o.bare() {
		n, err := o.take(limited, now, refs)
		if read += n; err != nil {
			failed = err
			page.Problems = append(page.Problems, err)
			break
		}
	}
	o.fill(limited, now, quietNames, &page)
	page.Partial = page.Partial || limited.Err() != nil
	return o.end(ctx, now, page, read, failed)
}

// Mark has a page tell of the names that are in a cycle, as a search has found it that was made beside; they are read
// each time. The next call takes the marks away that a search does not find any more, and nil
// takes away all: a page still has those of names that it has not read since.
func (o *Overview) Mark(c *Cycles) {
	o.cycles = c.troubles()
	for ref, t := range o.cycles {
		if o.filter.means(ref) && t.Level == berth.LevelStuck {
			o.know(ref).level = berth.LevelStuck
		}
	}
}

// begin makes a page of what was found in the registry.
func (o *Overview) begin(ctx context.Context, now time.Duration, noted reader.Noted, err error) (page Page[berth.Name], _ error) {
	page = Page[berth.Name]{Partial: noted.More || err != nil, At: time.UnixMilli(noted.Now), Replica: noted.Replica, Problems: problems(err)}
	if end := scriptkit.CallersEnd(ctx); end != nil {
		return Page[berth.Name]{}, end
	} else if err != nil && noted.Now == 0 {
		return Page[berth.Name]{}, err
	}
	if o.noticed.due(now, noticeFor) {
		all, err := o.reader.notices(ctx, o.filter.kinds())
		if page.Problems = append(page.Problems, problems(err)...); err == nil {
			o.notices, o.noticed = all, aged{true, now}
		}
	}
	return page, nil
}

// end completes a page for which so many names were read.
func (o *Overview) end(ctx context.Context, now time.Duration, page Page[berth.Name], read int, failed error) (Page[berth.Name], error) {
	page.Partial = page.Partial || len(page.Problems) > 0
	if ctx.Err() != nil {
		return Page[berth.Name]{}, context.Cause(ctx)
	} else if failed != nil && read == 0 {
		return Page[berth.Name]{}, failed
	}
	o.forget(now)
	items, more := o.rows()
	page.Items, page.Partial = items, page.Partial || more
	for _, s := range o.known {
		switch {
		case s.read == 0:
			page.Unread++
		case s.level == berth.LevelStuck && s.shown():
			page.Stuck++
		}
	}
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

// bare are those of the first names by rank of which there is no row.
func (o *Overview) bare() (refs []berth.Ref) {
	all := o.ranked()
	for _, s := range all[:min(len(all), rowsMost)] {
		if s.row == nil {
			refs = append(refs, s.ref)
		}
	}
	return refs
}

// find looks into the registry, as reader.Registry does.
func (o *Overview) find(ctx context.Context, now time.Duration, most int, from reader.Parts) (reader.Noted, reader.Parts, error) {
	together := o.reader.redis.Mode() != rueidis.ClientModeCluster
	noted, next, err := o.reader.read.Registry(ctx, together, most, from)
	for _, ref := range noted.Refs {
		if o.filter.means(ref) {
			o.know(ref).noted = aged{true, now}
		}
	}
	return noted, next, err
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
	for n < min(passFirst, len(all)) && (all[n].waiting > 0 || all[n].bad()) {
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
func (o *Overview) take(ctx context.Context, now time.Duration, refs []berth.Ref) (read int, err error) {
	if len(refs) == 0 {
		return 0, nil
	}
	var mu sync.Mutex
	var found []reader.Row
	form := func(ref berth.Ref) *reader.Form { return &o.known[ref].form }
	err = o.reader.batches(ctx, refs, func(berth.Ref) int { return reader.Most / passTrip }, func(node rueidis.Client, refs []berth.Ref) error {
		rows, err := o.reader.read.Rows(ctx, node, passHolds, form, refs...)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		found = append(found, rows...)
		return nil
	})
	return len(found), reader.Joined(err, o.heed(ctx, now, found))
}

// heed notes how names were found, and asks the swarm about those of their nodes that it was not asked about for a while.
func (o *Overview) heed(ctx context.Context, now time.Duration, rows []reader.Row) error {
	if o.probed.due(now, probesFor) {
		o.dead, o.probed = map[string]bool{}, aged{true, now}
	}
	all := make([]*reader.Row, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	nodes := slices.DeleteFunc(probable(all...), func(node string) bool {
		_, known := o.dead[node]
		return known
	})
	dead, err := o.reader.dead(ctx, nodes)
	if err == nil {
		for _, node := range nodes {
			o.dead[node] = dead[node]
		}
	}
	for _, n := range all {
		o.note(n)
	}
	return err
}

// note notes how a name was found. One that is in use is shown while few are waited for, and where its state is bad.
func (o *Overview) note(n *reader.Row) {
	s, row := o.know(berth.Ref{Kind: n.Kind, Name: n.Name.Name}), named(n, o.notices[n.Kind], o.dead)
	mark(&row, o.cycles)
	s.row, s.waiting, s.level, s.read = &row, row.Live(), row.Trouble.Level, o.passes
	most := quietNames
	if s.bad() {
		most *= 2
	}
	o.quiets(s, n.Used() && (o.few || s.bad()) && (s.quiet || o.quiet < most))
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

// fill looks for names that are in use, up to so many. While many are waited for, it keeps those whose state is bad.
func (o *Overview) fill(ctx context.Context, now time.Duration, most int, page *Page[berth.Name]) {
	o.few = o.contended() < fewNames
	if most = min(most, quietNames); most <= 0 || !o.walked.due(now, quietEach) {
		return
	}
	found, err := o.reader.read.NamesPage(ctx, reader.Walk{Redis: o.reader.redis, Kinds: o.filter.kinds(), Prefix: o.filter.Prefix}, o.cursor, most)
	if err != nil {
		o.cursor = ""
		page.Problems = append(page.Problems, err)
		return
	}
	o.walked, o.cursor = aged{true, now}, found.Next
	page.Problems = append(page.Problems, found.Problems...)
	page.Problems = append(page.Problems, problems(o.heed(ctx, now, found.Names))...)
}

// forget forgets names that are not shown and that the registry does not have any more, and those of the lowest rank where
// there are too many: of those that nobody waits for the ones that were read, or found the longest ago.
func (o *Overview) forget(now time.Duration) {
	o.few = o.contended() < fewNames
	for ref, s := range o.known {
		o.quiets(s, s.quiet && (o.few || s.bad()))
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
