package reader

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// mostNoted is how many names of one shard of the registry are read: of all shards less than 1000.
const mostNoted = 62

// Noted are names of the registry.
type Noted struct {
	Refs    []berth.Ref
	More    bool // the registry has others
	Now     int64
	Replica bool
}

// Parts says of which names of each shard of the registry a reading is: how many it passes over.
type Parts [state.Shards]int

// Waits are names that somebody waits for, or did in the last minutes, as the registry knows them: those first that it
// believes in for longest. Beside an error, of shards that do not answer, are the names of the others.
func (r *Reader) Waits(ctx context.Context) (Noted, error) {
	found, _, err := r.Registry(ctx, false, mostNoted, Parts{})
	return found, err
}

// Registry is Waits of up to so many names of each shard behind some, and says where the next part of them begins. together
// has one server asked for all shards at once, which a Cluster cannot.
func (r *Reader) Registry(ctx context.Context, together bool, most int, from Parts) (found Noted, next Parts, err error) {
	var (
		mu    sync.Mutex
		reg   = registry{found: &found, next: &next, most: most}
		errs  []error
		reads sync.WaitGroup
	)
	each := [][]int{}
	for shard := range state.Shards {
		if together && shard > 0 {
			each[0] = append(each[0], shard)
		} else {
			each = append(each, []int{shard})
		}
	}
	for _, shards := range each {
		reads.Go(func() {
			var p trip
			for _, shard := range shards {
				p.add("ZRANGE", r.space.Key(keyspace.Waits, strconv.Itoa(shard), keyspace.NamesPart),
					strconv.Itoa(from[shard]), strconv.Itoa(from[shard]+most), "REV", "WITHSCORES")
			}
			err := guard.Run("a reading", nil, func() error { // the call tells of it
				answers, err := r.run.Read(ctx, "waits", scriptkit.From{}, p.commands...)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					return err
				}
				p.results = answers.Results
				for i, shard := range shards {
					reg.take(shard, from[shard], p.members(i), answers)
				}
				return p.err
			})
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	reads.Wait()
	slices.SortFunc(reg.all, func(a, b noted) int {
		return cmp.Or(cmp.Compare(b.until, a.until), cmp.Compare(a.ref.Kind, b.ref.Kind), cmp.Compare(a.ref.Name, b.ref.Name))
	})
	for _, n := range reg.all {
		found.Refs = append(found.Refs, n.ref)
	}
	return found, next, Joined(errs...)
}

// noted is a name of the registry, and until when it believes that somebody waits for it.
type noted struct {
	ref   berth.Ref
	until int64
}

// registry is what was read of it.
type registry struct {
	found *Noted
	next  *Parts
	most  int
	all   []noted
}

// take takes the names of a shard behind some.
func (r *registry) take(shard, from int, members []member, answers scriptkit.Answers) {
	r.found.Now, r.found.Replica = max(r.found.Now, answers.Now), r.found.Replica || answers.Replica
	r.found.More = r.found.More || from > 0
	if len(members) > r.most {
		members, r.found.More = members[:r.most], true
		r.next[shard] = from + r.most
	}
	for _, m := range members {
		kind, name, ok := state.ParseMember(m.name)
		ref := berth.Ref{Kind: keyspace.Kind(kind), Name: name}
		if _, known := extras[ref.Kind]; ok && known && m.score > answers.Now && keyspace.CheckName(name) == nil {
			r.all = append(r.all, noted{ref, m.score})
		}
	}
}

// Joined joins errors, those once that say the same.
func Joined(errs ...error) error {
	said := map[string]bool{}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		if err == nil || said[err.Error()] {
			return true
		}
		said[err.Error()] = true
		return false
	})...)
}

// Size is how much there is to read of a name.
type Size struct {
	berth.Ref
	Held, Waiting int  // dead ones count
	Keeps         bool // it stays when it is idle, as a pool does that has resources
	Pause         Pause
	Err           error
}

// Sizes reads them of names that lie on one server, in their order. node is that server's client; nil for one name.
func (r *Reader) Sizes(ctx context.Context, node rueidis.Client, refs ...berth.Ref) ([]Size, error) {
	sizes := make([]Size, len(refs))
	return wholly(sizes, r.each(ctx, "sizes", node, refs, func(i int, t *turn) error {
		sizes[i].Ref = refs[i]
		_, err := t.again(1, func() (still bool, err error) { return true, t.size(&sizes[i]) })
		return err
	}, func(i int, _ *turn, err error) { sizes[i] = Size{Ref: refs[i], Err: err} }))
}

func (t *turn) size(s *Size) error {
	text, thin, err := t.text()
	if err != nil {
		return err
	} else if thin {
		n, err := t.slight(text)
		s.Held = n.Held + n.Expired
		return err
	}
	var p trip
	values, pause := p.marks(t), p.fields(t.key(keyspace.StatePart), "", "pause")
	if err := t.ask(&p); err != nil {
		return err
	}
	m, _, err := t.read(&p, values)
	if err == nil {
		s.Pause = t.pauseOf(&m.values, p.texts(pause)[0])
	}
	s.Held, s.Waiting, s.Keeps = int(m.values.Used), int(max(m.values.Waiting, 0)), m.values.Keep != 0
	if m.group != nil {
		s.Held = max(s.Held, len(m.group.Entries))
	}
	return err
}
