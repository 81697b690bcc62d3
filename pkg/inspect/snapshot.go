package inspect

import (
	"slices"
	"time"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// snapshot is one name as one reading found it. What it tells of time is by the clock of the
// server that has the name, to the millisecond.
type snapshot struct {
	Kind            keyspace.Kind
	Namespace, Name string
	At              time.Time
	Replica, Moving bool
	Known           bool // the name is stored
	Newer           int  // the number of a newer form, -1 for what is not Berth's, else 0

	Capacity int // of a lock 1
	Held     int // the weight of all live holds
	Waiting  int // claims in line; dead ones may be among them
	Pause    *pause

	// Holds are the live ones, the earliest deadline first; of a lock the outermost entry is the
	// first.
	Holds     []hold
	HoldsLeft int // live ones that were not read
	// Line are the places, the first first. Lanes are those who wait for one resource alone, by lane
	// and place. Dead ones are among them.
	Line, Lanes         []wait
	LineLeft, LanesLeft int

	Claim    *reader.Asked            // the claim that an explanation is about, nil for the name
	Asked    map[string]*reader.Asked // the claims that were asked for
	Pool     *pool
	Items    map[string]item          // the resources of Holds and Lanes, the first rests, and those that leave first: as a sweep would leave them
	Damaged  []string                 // claims and resources that cannot be read
	Nodes    map[string]reader.Node   // what the swarm says of nodes, by the clock of the name's server
	Group    *state.Group             // of a lock
	Bindings map[string]state.Binding // of Line, by their names
	Server   *reader.Server           // nil: not known

	shared *shared // of several explanations, nil for none
}

// shared is what explanations of one snapshot have in common: a snapshot that has it does not change any more.
type shared struct {
	nodes    map[string]told
	coming   *coming           // of the name, and of those who wait in the line
	inTheWay map[string][]hold // of those who wait for a resource, "" for the line
	work     int               // of what comes; see enough
	both     map[string]string // the owners of the claims whose label is that of a hold and of a wait
}

// sharing is a snapshot of which several explanations are made, all of them about the same claim or none.
func (s *snapshot) sharing() *snapshot {
	if s.shared != nil {
		return s
	}
	same := *s
	same.shared = &shared{nodes: s.tells(), inTheWay: map[string][]hold{}, both: s.both()}
	return &same
}

// both are the claims that a label does not tell apart: some claims of its process hold, and others wait.
func (s *snapshot) both() map[string]string {
	holding, owners := map[string]bool{}, map[string]string{}
	for i := range s.Holds {
		holding[s.Holds[i].Label] = true
	}
	waits := slices.Concat(s.Line, s.Lanes)
	if c := s.Claim; c != nil && c.Wait != nil {
		waits = append(waits, *c.Wait)
	}
	waiting := map[string]bool{}
	for i := range waits {
		if w := &waits[i]; holding[w.Label] {
			waiting[w.Label], owners[w.ID] = true, w.Owner
		}
	}
	for i := range s.Holds {
		if h := &s.Holds[i]; waiting[h.Label] {
			owners[h.ID] = h.Owner
		}
	}
	return owners
}

// about is a snapshot that was asked for another claim, one that was read with it, or for none.
func (s *snapshot) about(c *reader.Asked) *snapshot {
	other := *s
	other.Claim = c
	return &other
}

// hold is a granted claim.
type hold = reader.Held

// wait is a waiting claim.
type wait = reader.Place

type pause struct {
	Until  time.Time
	Reason string
}

// pool is what only a pool has.
type pool struct {
	Resources, Free, Leased, Resting, Leaving int
	RestsLeft                                 int       // rests that were not read
	Leaves                                    time.Time // all that leave up to then were read; zero: all that leave
	Filled                                    bool
	Refresh                                   time.Time // when its Source may be asked again; zero: nobody has asked
}

// item is one resource of a pool.
type item = reader.Item

// alive says whether a waiting claim counts as alive.
func (s *snapshot) alive(w *wait) bool { return w.Record.Alive().After(s.At) }

// patience is until when a claim waits for its resource alone, zero for ever: a pause keeps it from taking another.
func (s *snapshot) patience(w *wait) time.Time {
	if s.Pause != nil && !w.Until.IsZero() && s.Pause.Until.After(w.Until) {
		return s.Pause.Until
	}
	return w.Until
}

// ago is how long ago a moment was.
func (s *snapshot) ago(t time.Time) time.Duration { return max(0, s.At.Sub(t)) }

// left is how long it is until a moment.
func (s *snapshot) left(t time.Time) time.Duration { return max(0, t.Sub(s.At)) }

// partial says whether not all of the name was read.
func (s *snapshot) partial() bool {
	return s.HoldsLeft > 0 || s.LineLeft > 0 || s.LanesLeft > 0 || s.Pool != nil && s.Pool.RestsLeft > 0
}

// label is how a sentence names a claim's process.
func (s *snapshot) label(claim string) string {
	for i := range s.Holds {
		if s.Holds[i].ID == claim {
			return s.Holds[i].Label
		}
	}
	for _, waits := range [][]wait{s.Line, s.Lanes} {
		for i := range waits {
			if waits[i].ID == claim {
				return waits[i].Label
			}
		}
	}
	if s.Claim != nil && s.Claim.Wait != nil && s.Claim.Wait.ID == claim {
		return s.Claim.Wait.Label
	}
	return ""
}
