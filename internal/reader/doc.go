// Package reader reads what Berth stores, with plain commands: names, holds, waiting claims. It
// writes nothing, needs no script, and sweeps nothing: what has passed by the server's clock has passed.
//
// A name is read in a few trips, each a [scriptkit.Runner.Read] of its own, so others may have moved
// since. What one reading saw at its beginning and at its end is compared; see marks.still. The names of one
// server are read together: each trip has the commands of all of them.
//
// A [Reader] that decides refuses replicas. It is for what leads to a write.
package reader

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

const (
	// Most is how many entries, holds or waiting claims, one trip for a name reads at the most.
	Most = 1000
	// held is how many holds of a name are read with the name.
	held = 100
	// tries is how often one name is read where it moves meanwhile.
	tries = 3
)

// Reader reads one namespace. It is safe for concurrent use.
type Reader struct {
	run    *scriptkit.Runner
	space  keyspace.Space
	decide bool

	long    long
	between func() // of tests: runs before each trip but the first
}

// New returns a Reader. decides is for what leads to a write: the answer of a replica counts as none.
func New(run *scriptkit.Runner, space keyspace.Space, decides bool) *Reader {
	return &Reader{run: run, space: space, decide: decides}
}

// Found is an entry of a listing; of one that is damaged only its ID is known.
type Found[E any] struct {
	Entry E
	Err   error
	Heard time.Time // of a claim that waits: when its node was last heard of

	at member // its place in the line
}

// Page is a part of a listing.
type Page[E any] struct {
	Found   []Found[E]
	Next    string // where the next page begins, "" after the last
	Now     time.Time
	Replica bool
	Moving  bool // claims moved while it was read: one may be missing, or there twice
}

// turn is the reading of one name.
type turn struct {
	*Reader
	kind keyspace.Kind
	name string
	do   func() error

	memory *Memory // what is known from the last reading of who answers, nil for nothing
	form   *Form   // what is known of the name, nil for nothing

	now     int64     // of the first trip (ms)
	began   time.Time // when that was answered, by the local clock: for one that remembers
	replica bool      // some trip was answered by a replica
	torn    bool      // the clocks of the trips do not fit: another server answered
	results []rueidis.RedisResult
	yield   func([]scriptkit.Command) bool
	err     error
}

// errLeft ends the reading of a name whose trip has failed.
var errLeft = errors.New("berth: the read has ended")

// together makes the turns of names that lie on one server, or of one name. node is that server's client,
// nil for one name. Each trip has what all of them ask. The error is that of a trip; each turn has one of
// its own.
func (r *Reader) together(ctx context.Context, what string, node rueidis.Client, turns ...*turn) error {
	pulls := make([]func() ([]scriptkit.Command, bool), len(turns))
	for i, t := range turns {
		next, stop := iter.Pull(func(yield func([]scriptkit.Command) bool) {
			t.yield = yield
			t.err = t.do()
		})
		defer stop()
		pulls[i] = next
	}
	for first := true; ; first = false {
		var all []scriptkit.Command
		asked := make([]int, len(turns))
		for i, next := range pulls {
			commands, ok := next()
			if ok {
				all, asked[i] = append(all, commands...), len(commands)
			}
		}
		if len(all) == 0 {
			for _, t := range turns {
				if scriptkit.IsWrongType(t.err) {
					t.err = t.mistyped(ctx)
				}
			}
			return nil
		}
		if !first && r.between != nil {
			r.between()
		}
		answers, err := r.run.Read(ctx, what, turns[0].from(node), all...)
		if err != nil {
			return err
		}
		for i, n := range asked {
			if n > 0 {
				turns[i].hear(answers, answers.Results[:n])
				answers.Results = answers.Results[n:]
			}
		}
	}
}

// hear takes the answers to a trip.
func (t *turn) hear(answers scriptkit.Answers, results []rueidis.RedisResult) {
	if t.memory != nil {
		t.memory.Repeated = t.memory.Repeated || answers.Repeated
	}
	switch m := t.memory; {
	case m == nil:
		if t.now == 0 {
			t.now = answers.Now
		}
		t.torn = t.torn || answers.Now < t.now || answers.Now > t.now+time.Second.Milliseconds()
		t.replica = t.replica || answers.Replica
	case answers.Now > 0: // the first trip
		t.now, t.began = answers.Now, time.Now()
		if m.Greet {
			m.Replica = answers.Replica
		}
		t.replica = m.Replica
	default:
		t.torn = t.torn || time.Since(t.began) > time.Second
	}
	t.results = results
}

// wholly is what each has read, and nothing beside an error: a name may have been read in part by then.
func wholly[E any](read []E, err error) ([]E, error) {
	if err != nil {
		return nil, err
	}
	return read, nil
}

// each reads something of names that lie on one server. node is that server's client; with nil each name is read where it
// is. One whose slot moves is read alone. failed notes the error of one name; the error returned is that of all.
func (r *Reader) each(ctx context.Context, what string, node rueidis.Client, refs []berth.Ref, read func(i int, t *turn) error, failed func(i int, t *turn, err error)) error {
	begin := func(i int) *turn {
		t := &turn{Reader: r, kind: refs[i].Kind, name: refs[i].Name}
		t.do = func() error { return read(i, t) }
		return t
	}
	alone := func(i int) error {
		t := begin(i)
		err := r.together(ctx, what, nil, t)
		if err == nil {
			err = t.err
		}
		if err != nil {
			failed(i, t, err)
		}
		return scriptkit.CallersEnd(ctx)
	}
	if node == nil && len(refs) > 1 {
		for i := range refs {
			if err := alone(i); err != nil {
				return err
			}
		}
		return nil
	}
	turns := make([]*turn, len(refs))
	for i := range refs {
		turns[i] = begin(i)
	}
	if err := r.together(ctx, what, node, turns...); err != nil {
		return err
	}
	for i, t := range turns {
		if t.err != nil && node != nil && isMoved(t.err) {
			if err := alone(i); err != nil {
				return err
			}
		} else if t.err != nil {
			failed(i, t, t.err)
		}
	}
	return nil
}

// alone makes the one turn of a name, of which each try begins anew: until it finds that nothing moved, up to most tries.
// try returns whether that is so.
func (r *Reader) alone(ctx context.Context, what string, kind keyspace.Kind, name string, most int, try func(t *turn) (still bool, err error)) (t *turn, moving bool, err error) {
	if err := keyspace.CheckName(name); err != nil {
		return nil, false, err
	}
	t = &turn{Reader: r, kind: kind, name: name}
	t.do = func() (err error) {
		moving, err = t.again(most, func() (bool, error) { return try(t) })
		return err
	}
	if err := r.together(ctx, what, nil, t); err != nil {
		return t, false, err
	}
	return t, moving, t.err
}

// again tries until nothing moved, but no more often than that, and returns whether something did. A name may
// change its form between two trips, once: then a key has another type than it had. So it may since the last reading.
func (t *turn) again(most int, try func() (still bool, err error)) (moving bool, err error) {
	changes := 1
	if t.knows() {
		changes++
	}
	for n := 1; ; n++ {
		t.now, t.torn = 0, false
		still, err := try()
		switch {
		case (scriptkit.IsWrongType(err) || errors.Is(err, errMore)) && changes > 0:
			t.forget()
			changes, n = changes-1, n-1
		case err != nil:
			return false, err
		case still && !t.torn:
			return false, nil
		case n >= most:
			return true, nil
		}
	}
}

// odd is the error of a name whose state, of a type that Berth writes, says a number; see [state.FormatError].
func (t *turn) odd(kind string, number int64) error {
	if number == 0 {
		return state.Foreign(t.name, t.key(keyspace.StatePart), kind)
	}
	return state.Incompatible(t.name, number)
}

// types are what Berth writes to the keys of a name. A state is a string, too, while the name is thin.
var types = []struct{ part, holds string }{
	{keyspace.StatePart, "hash"},
	{keyspace.LinePart, "zset"},
	{keyspace.ItemsPart, "hash"},
	{keyspace.FreePart, "zset"},
	{keyspace.BindingsPart, "hash"},
	{keyspace.ProbesPart, "zset"},
}

// mistyped is the error of a name with a key of another type. It asks which that is.
func (t *turn) mistyped(ctx context.Context) error {
	var p trip
	for _, of := range types {
		p.add("TYPE", t.key(of.part))
	}
	answers, err := t.run.Read(ctx, "types", scriptkit.From{}, p.commands...)
	if err == nil {
		for i, result := range answers.Results {
			if kind, err := result.ToString(); err == nil && kind != "none" && kind != types[i].holds {
				return state.Foreign(t.name, t.key(types[i].part), kind)
			}
		}
	}
	return state.Incompatible(t.name, 0)
}

// ask makes a trip.
func (t *turn) ask(p *trip) error {
	if !t.decide {
		p.spare(&t.long)
	}
	if t.memory != nil {
		return t.brief(p)
	}
	if !t.yield(p.sent()) {
		return errLeft
	}
	p.hear(t.results)
	return nil
}

func (t *turn) key(part string) string { return t.space.Key(t.kind, t.name, part) }

func (t *turn) at() time.Time { return time.UnixMilli(t.now) }
