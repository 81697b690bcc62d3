package inspect

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// NameFilter says which names a listing is about. The zero value is about all that are in use.
type NameFilter struct {
	// Kinds are the kinds, none for semaphores, locks and pools. With keyspace.Once, which Reader.Names without Waiting alone
	// heeds, there are also the names of package once of whose runs something is kept.
	Kinds []keyspace.Kind
	// Prefix is what the names begin with.
	Prefix string
	// Idle adds names that nobody holds or waits for, that are not paused, and that are still stored.
	Idle bool
	// Waiting leaves only the names that somebody waits for, those with the most waiting claims first. They are found
	// without a walk over all names, in a registry: it has the names that somebody has waited for in the last
	// minutes, of which up to 992 are looked at, and misses one that somebody waits for since less than a second.
	Waiting bool
}

// kinds are those that the filter means.
func (f NameFilter) kinds() []keyspace.Kind {
	if len(f.Kinds) == 0 {
		return kindsOf
	}
	return f.Kinds
}

// means says whether the filter is about a name.
func (f NameFilter) means(ref berth.Ref) bool {
	return slices.Contains(f.kinds(), ref.Kind) && strings.HasPrefix(ref.Name, f.Prefix)
}

func checkKinds(kinds []keyspace.Kind) error {
	for _, kind := range kinds {
		if err := checkKind(kind); err != nil {
			return err
		}
	}
	return nil
}

// Names reads up to most names (0: 100, at most 1000) behind a cursor, "" for the first, in no order: it goes on behind the
// cursor of a page whose filter was the same. A name that is there from the first page to the last is there, as long as
// no server is replaced and no slot moves, and may be there twice. Of each name fewer holds may be read than by Name:
// see berth.Name.Partial. A page takes little more than 200 ms; Partial says that it ended for that, or is without some servers'
// names. Where no server answers, the error is theirs.
//
// With Waiting the pages are in order, and a name whose number of waiting claims changes between two of them may be
// missing, or there twice. Partial says then that the registry has more names than are looked at, or that some could not be
// read.
func (r *Reader) Names(ctx context.Context, f NameFilter, from string, most int) (page Page[berth.Name], err error) {
	contended := slices.DeleteFunc(slices.Clone(f.kinds()), func(k keyspace.Kind) bool { return k == keyspace.Once })
	if err := checkKinds(contended); err != nil {
		return page, err
	}
	if most, err = bounded(most); err != nil {
		return page, err
	}
	if f.Waiting {
		return r.mostContended(ctx, f, from, most)
	}
	found, err := r.read.NamesPage(ctx, reader.Walk{Redis: r.redis, Kinds: f.kinds(), Prefix: f.Prefix, Idle: f.Idle}, from, most)
	if err != nil {
		return page, err
	}
	noticed, err := r.notices(ctx, contended)
	err = reader.Joined(err, r.goOn(ctx, found.Names))
	page = Page[berth.Name]{
		Next: found.Next, Partial: found.Partial || err != nil, At: found.Now, Replica: found.Replica, Problems: append(found.Problems, problems(err)...),
	}
	r.tell(ctx, &page, found.Names, noticed)
	return page, nil
}

// rank is the place of a name among others: by how bad its state is, in an Overview alone, and by how many claims wait.
type rank struct {
	Level   berth.Level   `json:"-"`
	Waiting int           `json:"w"`
	Kind    keyspace.Kind `json:"k"`
	Name    string        `json:"n"`
}

func rankOf(s reader.Size) rank { return rank{Waiting: s.Waiting, Kind: s.Kind, Name: s.Name} }

func (a rank) compare(b rank) int {
	return cmp.Or(a.Level.Compare(b.Level), cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// cursor says that a page begins behind a name.
func (a rank) cursor() string {
	text, _ := json.Marshal(a)
	return base64.RawURLEncoding.EncodeToString(text)
}

// mostContended is a page of the names that somebody waits for.
func (r *Reader) mostContended(ctx context.Context, f NameFilter, from string, most int) (page Page[berth.Name], err error) {
	var after rank
	if from != "" {
		text, err := base64.RawURLEncoding.DecodeString(from)
		if err != nil || json.Unmarshal(text, &after) != nil || after.Kind == "" {
			return page, berth.Invalid("cursor", "%q is none of a page", from)
		}
	}
	noted, sizes, err := r.contended(ctx, f)
	if ctx.Err() != nil {
		return page, context.Cause(ctx)
	} else if err != nil && len(sizes) == 0 {
		return page, err
	}
	page = Page[berth.Name]{Partial: noted.More || err != nil, At: time.UnixMilli(noted.Now), Replica: noted.Replica, Problems: problems(err)}
	sizes = slices.DeleteFunc(sizes, func(s reader.Size) bool { return from != "" && rankOf(s).compare(after) <= 0 })
	slices.SortFunc(sizes, func(a, b reader.Size) int { return rankOf(a).compare(rankOf(b)) })
	if len(sizes) > most {
		sizes = sizes[:most]
		page.Next = rankOf(sizes[most-1]).cursor()
	}
	return page, r.rows(ctx, sizes, &page)
}

// rows reads the names of a page, as many holds of each as a page has room for. Who waits for none any more is there, too.
func (r *Reader) rows(ctx context.Context, sizes []reader.Size, page *Page[berth.Name]) error {
	if len(sizes) == 0 {
		return nil
	}
	k := min(100, max(1, reader.Most/len(sizes)))
	refs, costs := make([]berth.Ref, len(sizes)), map[berth.Ref]int{}
	for i, s := range sizes {
		refs[i], costs[s.Ref] = s.Ref, 20+2*min(s.Held, k)
	}
	var (
		noticed map[keyspace.Kind]notice.Field
		silent  error
		beside  sync.WaitGroup
	)
	beside.Go(func() { noticed, silent = r.notices(ctx, kindsOf) })
	read, failed := r.rowsOf(ctx, k, refs, func(ref berth.Ref) int { return costs[ref] })
	beside.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	page.Problems = append(page.Problems, problems(silent)...)
	var found []reader.Row
	for _, ref := range refs {
		if n, ok := read[ref]; ok {
			found = append(found, n)
		}
	}
	r.tell(ctx, page, found, noticed)
	if failed != nil {
		page.Partial, page.Problems = true, append(page.Problems, failed)
	}
	if len(page.Items) == 0 {
		return failed
	}
	return nil
}

// rowsOf reads names, up to k holds of each. Beside an error there are those that were read.
func (r *Reader) rowsOf(ctx context.Context, k int, refs []berth.Ref, cost func(berth.Ref) int) (map[berth.Ref]reader.Row, error) {
	var mu sync.Mutex
	read := map[berth.Ref]reader.Row{}
	err := r.batches(ctx, refs, cost, func(node rueidis.Client, refs []berth.Ref) error {
		some, err := r.read.Rows(ctx, node, k, nil, refs...)
		mu.Lock()
		defer mu.Unlock()
		for i := range some {
			read[refs[i]] = some[i]
		}
		return err
	})
	return read, err
}
