package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// View reads one name again and again, as a page does that stays open. It is not safe for concurrent use. There is
// nothing to close.
type View struct {
	reader *Reader
	kind   keyspace.Kind
	name   string
	claim  string
}

// Look is a name as one reading of a View found it: its counts, who holds, who waits, and why.
type Look struct {
	Name
	// Explanation is of the name, Asked of the claim that the View was made for, nil without one.
	Explanation Explanation
	Asked       *Explanation
	// Holds are up to 100, those that end first; of a lock the outermost entry is the first. HoldsLeft is how many were
	// not read.
	Holds     []Hold
	HoldsLeft int
	// Waits are the first 100 in line, and behind them up to 100 that wait for one resource of a pool. WaitsLeft is how many
	// were not read. Dead ones are among both.
	Waits     []Wait
	WaitsLeft int
	// Resources are those of a pool that somebody holds, that one in line waits for, that rest or that leave: the
	// first of each.
	Resources []Resource
	// Damaged are the claims and resources that cannot be read.
	Damaged []string
}

// Hold is a hold with how its process stands.
type Hold struct {
	berth.Holder
	Process Process
	Heard   Heard
}

// Wait is a waiting claim with why it waits.
type Wait struct {
	berth.Waiter
	Explanation Explanation
}

// Resource is one resource of a pool.
type Resource struct {
	Key string
	// Claims hold it, at most Max at once.
	Claims []string
	Max    int
	// Rests is for how much longer it rests, berth.Forever without end, 0 if it does not; RestsThen likewise from the
	// moment on in which it is given back. Reason is why.
	Rests, RestsThen time.Duration
	Reason           string
	// Leaving says that it leaves the pool when it is given back. Leaves is when it leaves by itself, zero for never.
	Leaving bool
	Leaves  time.Time
	// Damaged says that it cannot be read, Absent that it is not in the pool.
	Damaged, Absent bool
}

// View returns what reads a name, and explains beside it a claim of it if that is not "".
func (r *Reader) View(kind keyspace.Kind, name, claim string) (*View, error) {
	if err := checkKind(kind); err != nil {
		return nil, err
	}
	if err := keyspace.CheckName(name); err != nil {
		return nil, err
	}
	return &View{r, kind, name, claim}, nil
}

// Read reads the name. One that is not there has no Capacity; that is no error.
func (v *View) Read(ctx context.Context) (Look, error) {
	n, err := v.reader.Name(ctx, v.kind, v.name)
	if err != nil {
		return Look{Name: n}, err
	}
	s, err := v.reader.snapshot(ctx, v.kind, v.name, v.claim)
	if err != nil {
		return Look{Name: n}, err
	}
	return s.look(n, v.claim), nil
}

// look is what a View shows of a snapshot.
func (s *snapshot) look(n Name, claim string) Look {
	l := Look{Name: n, HoldsLeft: s.HoldsLeft, WaitsLeft: s.LineLeft + s.LanesLeft, Damaged: s.Damaged}
	asked := s.Claim
	if claim != "" {
		e := explain(s, claim)
		l.Asked = &e
	}
	s.Claim = nil
	l.Explanation = explain(s, "")
	for i := range s.Holds {
		h := &s.Holds[i]
		b := s.holding(h)
		l.Holds = append(l.Holds, Hold{h.Holder, b.Process, b.Heard})
	}
	for _, waits := range [][]wait{s.Line, s.Lanes} {
		for i := range waits {
			w := &waits[i]
			s.Claim = &found{Record: "wait", Wait: w, Rank: w.Ahead}
			l.Waits = append(l.Waits, Wait{w.Waiter, explain(s, w.ID)})
		}
	}
	s.Claim = asked
	for key := range s.Items {
		l.Resources = append(l.Resources, s.resource(key))
	}
	slices.SortFunc(l.Resources, func(a, b Resource) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return l
}

func (s *snapshot) resource(key string) Resource {
	i := s.Items[key]
	r := Resource{
		Key: key, Claims: i.Holders, Max: i.Max, RestsThen: i.RestPend, Reason: i.Reason, Leaving: i.Leaving, Leaves: i.Expiry,
		Damaged: i.Damaged, Absent: i.Absent,
	}
	switch {
	case i.Forever:
		r.Rests = berth.Forever
	case !i.RestEnd.IsZero():
		r.Rests = s.left(i.RestEnd)
	}
	return r
}
