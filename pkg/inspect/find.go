package inspect

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// CycleOptions are the options of Cycles. A nil pointer leaves all fields zero.
type CycleOptions struct {
	// Within bounds the search: what has not been read by then is left out. Default 5 s.
	Within time.Duration
	// Loose looks also at owners that were seen with several waits at once. What it finds of them is possible,
	// not certain.
	Loose bool
	// Line is how many waiting claims are read of each name, 1 to 100: fewer cost less. Default 100.
	Line int
}

// Cycles are the cycles that were found.
type Cycles struct {
	// At is when they were, by this process's clock.
	At     time.Time `json:"at"`
	Cycles []Cycle   `json:"cycles"` // certain ones first
	// Names is how many names were read.
	Names int `json:"names"`
	// Partial says that there are more names, claims or holds than were read: there may be more cycles.
	Partial bool `json:"partial"`
	// Skipped is how many owners were seen with several waits at once, and left out unless Loose.
	Skipped int `json:"skipped"`
	// Problems are why names were left out.
	Problems []error `json:"problems,omitzero"`
}

const (
	// atOnce is how many names of a Cluster are read at once.
	atOnce = 8
	// clusterClocks is by how much the clocks of a Cluster's servers may differ.
	clusterClocks = time.Second
)

// Cycles finds claims that wait for each other, over all kinds, among the up to 1000 names that the registry believes in
// for longest: those that somebody waits for. Each name of a cycle is read twice. Nobody can see whether a process that
// waits does something else beside, so a cycle is certain as far as each owner does one thing after another. Its
// errors are berth.ErrInvalidConfig for options that cannot be, and the server's where nothing was read. That Within has passed is
// no error, unless no server has answered by then.
func (r *Reader) Cycles(ctx context.Context, opts *CycleOptions) (Cycles, error) {
	var o CycleOptions
	if opts != nil {
		o = *opts
	}
	if o.Within < 0 {
		return Cycles{}, berth.Invalid("Within", "%s is negative", o.Within)
	} else if o.Within == 0 {
		o.Within = 5 * time.Second
	}
	if o.Line = cmp.Or(o.Line, reader.SnapLine); o.Line < 1 || o.Line > reader.SnapLine {
		return Cycles{}, berth.Invalid("Line", "%d is not in 1 to %d", o.Line, reader.SnapLine)
	}
	found := Cycles{At: time.Now()}
	limited, cancel := scriptkit.Limit(ctx, o.Within)
	defer cancel()
	noted, sizes, err := r.contended(limited, NameFilter{})
	found.Partial, found.Problems = noted.More || err != nil, problems(err)
	switch {
	case err == nil || len(sizes) > 0:
	case ctx.Err() == nil && noted.Now > 0 && time.Since(found.At) >= o.Within:
		return found, nil
	default:
		return Cycles{}, err
	}
	first := r.snapshots(limited, o.Line, sizes, &found)
	found.Names = len(first)
	clocks := time.Duration(0)
	if r.redis.Mode() == rueidis.ClientModeCluster {
		clocks = clusterClocks
	}
	var again []*snapshot
	if names := suspects(first, clocks, o.Loose); len(names) > 0 {
		var twice []reader.Size
		for _, s := range names {
			i := slices.IndexFunc(sizes, func(z reader.Size) bool { return z.Kind == s.Kind && z.Name == s.Name.Name })
			twice = append(twice, sizes[i])
		}
		again = r.snapshots(limited, o.Line, twice, &found)
	}
	if ctx.Err() != nil {
		return Cycles{}, context.Cause(ctx)
	}
	found.Cycles, found.Skipped = cycles(first, again, clocks, o.Loose)
	found.Cycles = slices.Concat(certainty(found.Cycles, true), certainty(found.Cycles, false))
	return found, nil
}

// certainty are the cycles that are certain, or those that are not.
func certainty(all []Cycle, certain bool) []Cycle {
	return slices.DeleteFunc(slices.Clone(all), func(c Cycle) bool { return c.Certain != certain })
}

// Of is a cycle that a name is in, a certain one where there is one; nil for none.
func (c *Cycles) Of(kind keyspace.Kind, name string) *Cycle {
	for i := range c.Cycles {
		if slices.ContainsFunc(c.Cycles[i].Links, func(l Link) bool { return l.Wait.Kind == kind && l.Wait.Name == name }) {
			return &c.Cycles[i]
		}
	}
	return nil
}

// CycleOf finds a cycle that a name is in, nil for none, as Cycles does within some time (0: 5 s). Where nobody waits for the name it
// searches for none. partial says that not all was read: the name may be in a cycle all the same.
func (r *Reader) CycleOf(ctx context.Context, kind keyspace.Kind, name string, within time.Duration) (c *Cycle, partial bool, err error) {
	if err := cmp.Or(checkKind(kind), keyspace.CheckName(name)); err != nil {
		return nil, false, err
	}
	sizes, err := r.read.Sizes(ctx, nil, berth.Ref{Kind: kind, Name: name})
	if err != nil || sizes[0].Waiting == 0 {
		return nil, false, err
	}
	found, err := r.Cycles(ctx, &CycleOptions{Within: within})
	return found.Of(kind, name), found.Partial, err
}

// problems is a list of an error, none of nil.
func problems(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// contended are the names of the registry that somebody waits for, and that a filter means. Beside an error there are
// those of the servers that did answer.
func (r *Reader) contended(ctx context.Context, f NameFilter) (noted reader.Noted, sizes []reader.Size, err error) {
	noted, err = r.read.Waits(ctx)
	sizes, failed := r.sizes(ctx, slices.DeleteFunc(noted.Refs, func(ref berth.Ref) bool { return !f.means(ref) }))
	return noted, slices.DeleteFunc(sizes, func(s reader.Size) bool { return s.Err == nil && s.Waiting == 0 }), errors.Join(err, failed)
}

// sizes are how much there is of names. Beside an error there are those of the servers that did answer.
func (r *Reader) sizes(ctx context.Context, refs []berth.Ref) (sizes []reader.Size, err error) {
	var mu sync.Mutex
	err = r.batches(ctx, refs, func(berth.Ref) int { return 10 }, func(node rueidis.Client, refs []berth.Ref) error {
		some, err := r.read.Sizes(ctx, node, refs...)
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, some...)
		return err
	})
	return sizes, err
}

// batches has do called for all names, several together: so many that what they cost is no more than a trip may read,
// but one at least. In a Cluster these are one name each, as many at a time as may be. It goes on after an error, unless
// nothing answers any more: the others would each take as long.
func (r *Reader) batches(ctx context.Context, refs []berth.Ref, cost func(berth.Ref) int, do func(node rueidis.Client, refs []berth.Ref) error) error {
	var (
		mu    sync.Mutex
		errs  []error
		tasks = make(chan []berth.Ref)
		work  sync.WaitGroup
	)
	var unanswered atomic.Int64 // in a row
	workers, node, most := 1, r.redis, int64(1)
	if r.redis.Mode() == rueidis.ClientModeCluster {
		workers, node, most = atOnce, nil, 2*atOnce // some servers may answer
	}
	for range workers {
		work.Go(func() {
			for batch := range tasks {
				if unanswered.Load() >= most {
					continue
				}
				err := guard.Run("a reading", nil, func() error { return do(node, batch) }) // the call tells of it
				if unanswered.Add(1); !errors.Is(err, berth.ErrUnavailable) {
					unanswered.Store(0)
				}
				if err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for len(refs) > 0 && ctx.Err() == nil {
		n := 1
		for sum := cost(refs[0]); node != nil && n < len(refs); n++ {
			if sum += cost(refs[n]); sum > reader.Most {
				break
			}
		}
		tasks <- refs[:n]
		refs = refs[n:]
	}
	close(tasks)
	work.Wait()
	if len(refs) > 0 {
		errs = append(errs, ctx.Err())
	}
	return reader.Joined(errs...)
}

// snapshots reads names, of each so many who wait, and tells what could not be read of them.
func (r *Reader) snapshots(ctx context.Context, line int, sizes []reader.Size, tell *Cycles) (all []*snapshot) {
	refs, costs := make([]berth.Ref, len(sizes)), map[berth.Ref]int{}
	for i, s := range sizes {
		refs[i], costs[s.Ref] = s.Ref, 10+2*min(s.Held, 100)+2*min(s.Waiting, 2*line)
	}
	noticed, err := r.notices(ctx, kindsOf)
	tell.Problems = append(tell.Problems, problems(err)...)
	var mu sync.Mutex
	failed := r.batches(ctx, refs, func(ref berth.Ref) int { return costs[ref] }, func(node rueidis.Client, refs []berth.Ref) error {
		some, err := r.read.Snapshots(ctx, node, 1, line, nil, refs...)
		mu.Lock()
		defer mu.Unlock()
		for i := range some {
			s, err := r.filled(some[i], noticed[some[i].Kind])
			switch {
			case err != nil:
				tell.Problems = append(tell.Problems, err)
			case s.newer() != 0:
				tell.Problems = append(tell.Problems, some[i].Err)
			default:
				tell.Partial = tell.Partial || s.partial()
				all = append(all, s)
			}
		}
		return err
	})
	slices.SortFunc(all, func(a, b *snapshot) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name.Name, b.Name.Name))
	})
	tell.Problems = append(tell.Problems, problems(failed)...)
	tell.Partial = tell.Partial || len(tell.Problems) > 0
	if _, err := r.probed(ctx, 0, all...); err != nil {
		tell.Problems = append(tell.Problems, err)
	}
	return all
}
