package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// View reads one name again and again, as a page does that stays open. It is not safe for concurrent use. There is
// nothing to close.
type View struct {
	reader *Reader
	kind   keyspace.Kind
	name   string

	memory  reader.Memory
	clock   clock.Clock
	greeted aged // who answers
	asked   aged // what the server says of itself
	noticed aged
	notice  notice.Field
	probed  aged
	nodes   map[string]reader.Node // what the swarm said of them
	swarm   int64                  // what time its server had then (ms)
}

// aged is something that is remembered for a while.
type aged struct {
	known bool
	at    time.Duration
}

// due says that it is not known, or older than that.
func (a aged) due(now, after time.Duration) bool { return !a.known || now-a.at >= after }

// For how long a View remembers what is not of its name alone.
const (
	noticeFor = 5 * time.Second
	probesFor = 5 * time.Second
	greetFor  = 10 * time.Second
	serverFor = 10 * time.Second
)

// claimsMost is how many claims one reading of a View explains.
const claimsMost = 100

// Look is a name as one reading of a View found it: its counts, who holds, who waits, and why.
type Look struct {
	berth.Name
	// Explanation is of the name.
	Explanation Explanation `json:"explanation"`
	// Asked are the claims that Read was asked for.
	Asked map[string]AskedClaim `json:"asked"`
	// Holds are up to 100, those that end first; of a lock the outermost entry is the first. HoldsLeft is how many were
	// not read.
	Holds     []Hold `json:"holds"`
	HoldsLeft int    `json:"holdsLeft"`
	// Waits are the first 100 in line, and behind them up to 100 that wait for one resource of a pool. WaitsLeft is how many
	// were not read. Dead ones are among both.
	Waits     []Wait `json:"waits"`
	WaitsLeft int    `json:"waitsLeft"`
	// Resources are those of a pool that somebody holds, that one in line waits for, that rest or that leave: the
	// first of each.
	Resources []Resource `json:"resources"`
	// Damaged are the claims and resources that cannot be read.
	Damaged []string `json:"damaged"`
}

// Hold is a hold with how its process stands.
type Hold struct {
	berth.Holder
	Process Process `json:"process"`
	Heard   Heard   `json:"heard,omitzero"`
}

// Wait is a waiting claim with why it waits.
type Wait struct {
	berth.Waiter
	Explanation Explanation `json:"explanation"`
}

// Resource is one resource of a pool.
type Resource struct {
	Key string `json:"resource"`
	// Claims hold it, at most Max at once.
	Claims []string `json:"claims"`
	Max    int      `json:"maxSharers"`
	// Rests is for how much longer it rests, berth.Forever without end, 0 if it does not; RestsThen likewise from the
	// moment on in which it is given back. Reason is why.
	Rests     time.Duration `json:"restsMs,omitzero"`
	RestsThen time.Duration `json:"restsThenMs,omitzero"`
	Reason    string        `json:"reason,omitzero"`
	// Leaving says that it leaves the pool when it is given back. Leaves is when it leaves by itself, zero for never.
	Leaving bool      `json:"leaving"`
	Leaves  time.Time `json:"leaves,omitzero"`
	// Damaged says that it cannot be read, Absent that it is not in the pool.
	Damaged bool `json:"damaged"`
	Absent  bool `json:"absent"`
}

// View returns what reads a name.
func (r *Reader) View(kind keyspace.Kind, name string) (*View, error) {
	if err := checkKind(kind); err != nil {
		return nil, err
	}
	if err := keyspace.CheckName(name); err != nil {
		return nil, err
	}
	return &View{reader: r, kind: kind, name: name, clock: clock.New()}, nil
}

// Read reads the name, and explains beside it claims of it. One that is not there has no Capacity. One that cannot be read,
// being of a newer form, damaged or not Berth's, has Look.Err, and an Explanation of that. None of these is an error: that is
// the server's. A name that moves while it is read is not read a second time: Moving says so, and a claim may be missing, or
// there twice.
//
// What a reading sends is bounded: more than 100 claims are berth.ErrInvalidConfig, and nothing is read. These are the commands of each second:
//
//	a name that is not there, or thin                       2
//	a semaphore or a lock                                   5
//	a pool                                                  7   its resources and bindings
//	 of more than 50 resources all rest                    +1
//	 more than 500 hold, wait, rest or expire              +2   of a pool +6
//	 a claim asked for behind the first 100 of such a line +2   +1 for each of them, of a lane +2
//	one a second at the most, in turn:
//	 who answers, or what the server says of itself        +1   in 10 s
//	 a pause of all names                                  +1   in 5 s
//	 what the swarm says of nodes                          +2   in 5 s, of holds without an end
//
// What is to be asked in turn and was not for twice as long is asked in any case. So is all of it in the first reading, and in
// the one after an error or after one that had to be repeated: another server may answer. A name that has changed its form
// is read twice, and so is one that has more than 500 for the first time.
func (v *View) Read(ctx context.Context, claims ...string) (Look, error) {
	now := v.clock.Now()
	claims = slices.DeleteFunc(slices.Clone(claims), func(claim string) bool { return claim == "" })
	if len(claims) > claimsMost {
		err := berth.Invalid("claims", "%d are more than %d", len(claims), claimsMost)
		return Look{Name: berth.Name{Kind: v.kind, Name: v.name, Err: err}}, err
	}
	free := true // nothing else is asked in this reading
	turn := func(a *aged, after time.Duration) bool {
		ask := a.due(now, after) && (free || a.due(now, 2*after))
		free = free && !ask
		return ask
	}
	if turn(&v.noticed, noticeFor) {
		all, err := v.reader.read.Notice(ctx, v.kind)
		if err != nil && !errors.Is(err, state.ErrDamaged) { // which listings tell; it hides no name
			return v.failed(err)
		}
		v.notice, v.noticed = all, aged{true, now}
	}
	v.memory.Greet, v.memory.Ask = turn(&v.greeted, greetFor), turn(&v.asked, serverFor)
	greets, asks := v.memory.Greet, v.memory.Ask
	found, err := v.reader.read.Snapshot(ctx, &v.memory, 1, claims, berth.Ref{Kind: v.kind, Name: v.name})
	if err != nil {
		return v.failed(err)
	}
	if greets {
		v.greeted = aged{true, now}
	}
	if asks {
		v.asked = aged{true, now}
	}
	s, err := v.reader.filled(found, v.notice)
	if err != nil {
		return v.failed(err)
	}
	s.server = v.memory.Server
	if len(probable(&s.Row)) > 0 {
		if turn(&v.probed, probesFor) {
			if err := v.probe(ctx, s); err != nil {
				return v.failed(err)
			}
		}
		s.nodes = v.nodes
	}
	l := s.look()
	l.Asked = map[string]AskedClaim{}
	for _, claim := range claims {
		l.Asked[claim] = s.about(s.Asked[claim]).claimed(claim)
	}
	if v.memory.Repeated {
		v.greeted, v.asked, v.probed = aged{}, aged{}, aged{}
	}
	return l, nil
}

// failed has the next reading know nothing: another server may answer it.
func (v *View) failed(err error) (Look, error) {
	*v = View{reader: v.reader, kind: v.kind, name: v.name, clock: v.clock}
	return Look{Name: berth.Name{Kind: v.kind, Name: v.name, Err: err}}, err
}

// probe asks the swarm about the nodes whose holds have no end, and for the time if it was not asked before.
func (v *View) probe(ctx context.Context, s *snapshot) (err error) {
	at, now := v.clock.Now(), int64(0)
	if v.probed.known {
		now = v.swarm + (at - v.probed.at).Milliseconds()
	}
	v.swarm, err = v.reader.probed(ctx, now, s)
	v.nodes, v.probed = s.nodes, aged{true, at}
	return err
}

// look is what a View shows of a snapshot.
func (s *snapshot) look() Look {
	l := Look{Name: s.Name, HoldsLeft: s.HoldsLeft, WaitsLeft: s.LineLeft + s.LanesLeft, Damaged: s.Damaged}
	s = s.about(nil).sharing()
	l.Trouble = s.trouble()
	l.Explanation = explain(s, "")
	for _, h := range s.Holds {
		l.Holds = append(l.Holds, s.holder(h))
	}
	for _, w := range slices.Concat(s.Line, s.Lanes) {
		l.Waits = append(l.Waits, Wait{w.Waiter, explain(s.about(w.Asked()), w.ID)})
	}
	for key := range s.Items {
		l.Resources = append(l.Resources, s.resource(key))
	}
	slices.SortFunc(l.Resources, func(a, b Resource) int { return strings.Compare(a.Key, b.Key) })
	return l
}

func (s *snapshot) resource(key string) Resource {
	i := s.Items[key]
	r := Resource{
		Key: key, Claims: i.Claims, Max: int(i.Max), RestsThen: state.Millis(i.Pending), Reason: i.Reason, Leaving: i.Leaving, Leaves: i.Leaves(),
		Damaged: i.Damaged, Absent: i.Absent,
	}
	if end := i.RestEnd(); i.Ends > 0 && end.IsZero() {
		r.Rests = berth.Forever
	} else if !end.IsZero() {
		r.Rests = s.left(end)
	}
	return r
}
