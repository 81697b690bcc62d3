package reader

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Snapshot is a name with its first holds and waiting claims, and with what it tells of their resources. Pools
// are told as a sweep would leave them. Moments are by the clock of the server that has the name, to the millisecond.
type Snapshot struct {
	Row
	Known bool
	Group *state.Group // of a lock

	// Holds are the live ones, the earliest deadline first; of a lock the outermost entry first.
	Holds     []*Held
	HoldsLeft int // live ones that were not read
	// Line are the places, the first first; Lanes those who wait for one resource alone, by lane and place. Dead ones
	// are among them.
	Line, Lanes         []*Place
	LineLeft, LanesLeft int
	// Items are the resources of Holds, of Lanes, of the bindings of Line, of the first rests, and those that leave
	// first: all that leave up to Leaves, zero for all.
	Items     map[string]Item
	RestsLeft int // rests that were not read
	Leaves    time.Time
	Filled    bool
	Refresh   time.Time                // when a Source may be asked again, zero where nobody has asked
	Bindings  map[string]state.Binding // of Line, by their names
	Damaged   []string                 // claims and resources that cannot be read

	Asked map[string]*Asked // the claims that were asked for
}

// Among is a claim that was asked for or read with the name, nil for none.
func (s *Snapshot) Among(claim string) *Asked {
	if asked := s.Asked[claim]; asked != nil {
		return asked
	}
	for _, waits := range [][]*Place{s.Line, s.Lanes} { // sentences ask often: not concatenated
		for _, w := range waits {
			if w.ID == claim {
				return w.Asked()
			}
		}
	}
	for _, h := range s.Holds {
		if h.ID == claim {
			return &Asked{Word: "hold", Hold: h}
		}
	}
	return nil
}

// Held is a hold.
type Held struct {
	berth.Holder
	Record            state.Record
	Wants             state.Wants // of a pool
	Deadline, Renewed time.Time   // zero: none; when it was renewed last is stored of a thin name only
	Fresh             bool        // an entry that has not called yet
	Called            bool        // it called while it was read
}

// Place is a waiting claim.
type Place struct {
	berth.Waiter
	Record state.Record
	Lane   int         // in the line
	Place  string      // there, without its lane
	Wants  state.Wants // of a pool
	Until  time.Time   // of Lanes: until when it waits for nothing else, zero for no end
}

// Asked is a waiting claim that stands where it was read.
func (w *Place) Asked() *Asked { return &Asked{Word: "wait", Wait: w, Rank: w.Ahead} }

// Item is a resource.
type Item struct {
	state.Item
	Cooldown        int64 // its own, or the pool's (ms)
	Damaged, Absent bool
	// Unbegun says that a rest that was asked for has not begun: it does when somebody sweeps, so Ends is its end at the
	// earliest.
	Unbegun bool
}

// RestEnd is when its rest ends, zero where it does not rest, or has no end.
func (i *Item) RestEnd() time.Time { return moment(i.Ends) }

// Leaves is when it leaves the pool by itself, zero for never.
func (i *Item) Leaves() time.Time { return moment(i.Expiry) }

// moment is one of the server's clock (ms), zero for none and for never.
func moment(ms int64) time.Time {
	if ms >= state.Forever {
		return time.Time{}
	}
	return state.Instant(ms)
}

// Free says whether somebody may get it.
func (i *Item) Free() bool { return !i.Absent && !i.Damaged && i.Listed() }

// Asked is a claim that was asked for. Word is "hold", "wait", "damaged", what a tombstone says, or "" where
// nothing is stored.
type Asked struct {
	Word string
	Hold *Held
	Wait *Place
	Rank int // how many stand before it, of those who wait for the same
}

// How much of a name a Snapshot has: with the resources of all, and with bindings, less than 1000 entries.
const (
	SnapLine  = 100 // also of holds, and of lanes
	snapRests = 50
	snapLeave = 10
)

// Snapshots reads names that lie on one server, and the claims asked for of each. node is that server's
// client; nil for one name. line is how many who wait are read of the line, and of its lanes. A name that moves is read again, up to so
// many times. What cannot be interpreted has its Err. An error is that of all: beside it there is nothing.
func (r *Reader) Snapshots(ctx context.Context, node rueidis.Client, most, line int, claims []string, refs ...berth.Ref) ([]Snapshot, error) {
	found := make([]Snapshot, len(refs))
	return wholly(found, r.each(ctx, "snapshot", node, refs, func(i int, t *turn) error {
		moving, err := t.again(most, func() (still bool, err error) {
			found[i], still, err = t.snapshot(line, claims)
			return still, err
		})
		found[i].Row = found[i].of(t, moving)
		return err
	}, func(i int, t *turn, err error) { found[i] = Snapshot{Row: unread(t.kind, t.name, err).of(t, false)} }))
}

// Snapshot reads one name, as Snapshots does, and remembers how. Its error is that of the server, or berth.ErrInvalidConfig for a
// bad name; after one the next reading knows nothing.
func (r *Reader) Snapshot(ctx context.Context, memory *Memory, most int, claims []string, of berth.Ref) (Snapshot, error) {
	memory.Repeated = false
	var found Snapshot
	t := &turn{Reader: r, kind: of.Kind, name: of.Name, memory: memory, form: &memory.form}
	var moving bool
	t.do = func() (err error) {
		moving, err = t.again(most, func() (still bool, err error) {
			found, still, err = t.snapshot(SnapLine, claims)
			return still, err
		})
		return err
	}
	if err := r.together(ctx, "snapshot", nil, t); err != nil {
		*memory = Memory{Greet: true, Ask: true}
		return Snapshot{}, err
	}
	if t.err != nil {
		found = Snapshot{Row: unread(t.kind, t.name, t.err)}
	}
	found.Row = found.of(t, moving)
	return found, nil
}

func (t *turn) snapshot(line int, claims []string) (s Snapshot, still bool, err error) {
	text, thin, err := t.text()
	if err != nil {
		return s, false, err
	} else if thin {
		return s, true, t.thinSnapshot(&s, claims, text)
	}
	s.Asked = map[string]*Asked{}
	snap := &snap{s: &s, claims: claims, most: line, places: map[string]int{}}
	still, err = t.fat(&s.Row, SnapLine, snap)
	if err == nil && s.Known {
		snap.end()
	}
	return s, still, err
}

func (t *turn) thinSnapshot(s *Snapshot, claims []string, text string) (err error) {
	s.Known = true
	if s.Row, err = t.slight(text); err != nil || s.Held == 0 {
		return err
	}
	thin, _, _ := state.ParseThin(text)
	h, err := t.held(thin.Claim, thin.Record, thin.Ends)
	if err != nil {
		s.Damaged = []string{thin.Claim}
	} else {
		h.Renewed = state.Instant(thin.Since)
		s.Holds = []*Held{h}
	}
	if slices.Contains(claims, thin.Claim) {
		s.Asked = map[string]*Asked{thin.Claim: askedOf(h, nil, err)}
	}
	return nil
}

// held is a hold by its record and its deadline (ms).
func (t *turn) held(claim, text string, ends int64) (h *Held, err error) {
	h = &Held{Deadline: moment(ends)}
	if h.Holder, err = Holder(t.name, claim, t.at(), ends, text); err == nil {
		h.Record, err = state.ParseRecord(text)
		h.Wants = t.wants(&h.Record)
	}
	return h, err
}

// place is a waiting claim by its record, its place and what is told of a lane of its own.
func (t *turn) place(claim, text, place string, lane int64, apart string) (w *Place, err error) {
	w = &Place{Lane: int(lane), Place: place}
	if w.Waiter, w.Record, err = Waiter(t.name, claim, t.at(), text); err != nil {
		return w, err
	}
	if w.Wants = t.wants(&w.Record); apart == "" {
		return w, nil
	}
	if len(place) > laneDigits {
		w.Lane, w.Place = int(parse(place[:laneDigits])), place[laneDigits:]
	}
	until, _, err := state.ParseLane(apart)
	if err == nil {
		w.Until = moment(until)
		w.BindWait, w.Resource, err = t.bindWait(apart)
	}
	return w, err
}

// wants is what a claim on a pool asks for.
func (t *turn) wants(r *state.Record) (w state.Wants) {
	if t.kind == keyspace.Pool {
		w, _ = state.ParseWants(r.Extra)
	}
	return w
}

// laneDigits is how many digits of a place in a lane are its lane in the line; see scripts/pool/lane.lua.
const laneDigits = 3

func parse(digits string) (n int64) {
	for _, c := range strings.Trim(digits, "-") {
		n = n*10 + int64(c-'0')
	}
	return n
}

// askedOf is a claim of which a record is stored.
func askedOf(h *Held, w *Place, err error) *Asked {
	switch {
	case err != nil:
		return &Asked{Word: "damaged"}
	case h != nil:
		return &Asked{Word: "hold", Hold: h}
	}
	return &Asked{Word: "wait", Wait: w}
}
