package inspect

import (
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Name is a semaphore, a lock or a pool as it was when it was read. What has ended by the server's clock
// does not count, even if nobody has dropped it yet.
type Name struct {
	Kind keyspace.Kind
	Name string
	// Capacity is what is stored, 0 for a name that is not there; of a lock 1; of a pool the number of its
	// resources, with those that are leaving.
	Capacity int
	// Held is the weight of all holds together; of a lock 1 or 0; of a pool the number of resources that
	// are leased.
	Held int
	// Holders is how many claims hold; of a lock how many entries its owner has.
	Holders int
	// Waiting is how many claims wait. Dead ones that nobody has met yet may be among them.
	Waiting int
	// Expired is how much has ended and is not dropped yet: holds, and resources.
	Expired int
	// Oldest is how long the longest of the holds that were read is held; of Reader.Name these are up to
	// 100.
	Oldest time.Duration
	// Longest is who holds since then, nil for nobody.
	Longest *berth.Holder
	// First are the first in line of each priority, the highest first, at most 8. With LIFO and
	// Random others may have waited longer. One whose Alive is 0 is dead.
	First []berth.Waiter
	// Partial says that not all was read: there may be an older hold and more priorities, and some of what
	// has expired may count as if it had not.
	Partial bool
	// Pause is set while nothing is granted of the name, also by a pause of all names; nil if it is not paused.
	Pause *berth.Pause
	// Fence is that of the last grant. Revision is that of the last change by an operator, 0 for none.
	Fence, Revision int64
	// Lock is of a lock that is held, Pool of a pool that is there. Runs is of a name of the kind keyspace.Once, which has
	// nothing else.
	Lock *Lock
	Pool *Pool
	Runs *Runs
	// At, Replica and Moving are as in Page.
	At              time.Time
	Replica, Moving bool
	// Err is why nothing else is known of the name.
	Err error
}

// Share is the part of the capacity that is held: 0 to 1, above 1 after a Resize to less; 0 for a name that is
// not there.
func (n Name) Share() float64 {
	if n.Capacity == 0 {
		return 0
	}
	return float64(n.Held) / float64(n.Capacity)
}

// Lock is who has a lock, and what that owner did.
type Lock struct {
	// Owner is the owner, or the claim's id where none was given.
	Owner string
	// Claim is the id of the outermost entry, Label the label of its node.
	Claim, Label string
	// Left is what is left of the lease if nothing renews it, berth.Forever for no end.
	Left time.Duration
	// Reentries is how many entries were made after the first one.
	Reentries int
	// WorkedThroughAt is when the last WorkThrough was granted, zero for none.
	WorkedThroughAt time.Time
	// Extended is what ExtendAndWorkThrough has added in all, LastLease what the last one has, and
	// ExtendedAt when that was granted.
	Extended, LastLease time.Duration
	ExtendedAt          time.Time
}

// Pool is how many resources of a pool are in which state, and how many of Name.Waiting wait for one resource
// alone.
type Pool struct{ Free, Resting, Leaving, Apart int }

// Runs is what is kept of the runs of a name; see package once.
type Runs struct {
	// Success is when the newest run that succeeded has ended, zero where none is known.
	Success time.Time
	// Due is by when the next one is due: at the end of the period after that of Success. Where none is known it is the
	// end of the period of the run that began last, or of the one after it while that run goes on.
	Due time.Time
	// Every is the length of a period.
	Every time.Duration
	// Failed says that the run that began last has failed.
	Failed bool
}

func runsOf(r *state.Runs) *Runs {
	found := Runs{Failed: r.Run != nil && r.Run.Outcome == state.RunFailed}
	of, more := r.Run, int64(0)
	switch {
	case r.Success != nil:
		of, more, found.Success = r.Success, 1, state.Instant(r.Success.Ended)
	case r.Run.Outcome == state.RunBegun:
		more = 1
	}
	every := of.Over - of.Start
	found.Due, found.Every = state.Instant(of.Over+more*every), state.Millis(every)
	return &found
}

// Name reads one name. One that is not there has no Capacity; that is no error.
func (r *Reader) Name(ctx context.Context, kind keyspace.Kind, name string) (Name, error) {
	if err := checkKind(kind); err != nil {
		return Name{}, err
	}
	n, err := r.read.Name(ctx, kind, name)
	if err != nil {
		return nameOf(&n, notice.Field{}), err
	}
	all, err := r.read.Notice(ctx, kind)
	return nameOf(&n, all), err
}

// notices are what operators have said of a pause of all names of kinds. Beside an error there are those of the others.
func (r *Reader) notices(ctx context.Context, kinds []keyspace.Kind) (map[keyspace.Kind]notice.Field, error) {
	var (
		mu    sync.Mutex
		reads sync.WaitGroup
		errs  []error
		found = map[keyspace.Kind]notice.Field{}
	)
	for _, kind := range kinds {
		reads.Go(func() {
			all, err := r.read.Notice(ctx, kind)
			mu.Lock()
			defer mu.Unlock()
			found[kind], errs = all, append(errs, err)
		})
	}
	reads.Wait()
	return found, reader.Joined(errs...)
}

// paused is the pause of a name at a moment of its server's clock (ms), nil for none.
func paused(own reader.Pause, all notice.Field, now int64) *berth.Pause {
	p := own.Under(all, now)
	if p.Until <= now {
		return nil
	}
	return &berth.Pause{Left: state.Millis(p.Until - now), Since: state.Instant(p.Since), Reason: p.Reason}
}

func nameOf(n *reader.Row, all notice.Field) Name {
	found := Name{
		Kind: n.Kind, Name: n.Name, Capacity: n.Capacity, Held: n.Held, Holders: n.Holders, Waiting: n.Waiting,
		Expired: n.Expired, Oldest: n.Oldest, Longest: n.Longest, First: n.First, Partial: n.Partial, Fence: n.Fence, Revision: n.Revision,
		At: n.At, Replica: n.Replica, Moving: n.Moving, Err: n.Err,
	}
	if n.Err == nil {
		found.Pause = paused(n.Pause, all, n.At.UnixMilli())
	}
	if n.Lock != nil {
		l := Lock(*n.Lock)
		found.Lock = &l
	}
	if p := n.Pool; p != nil {
		found.Pool = &Pool{p.Free, p.Resting, p.Leaving, p.Apart}
	}
	if n.Runs != nil {
		found.Runs = runsOf(n.Runs)
	}
	return found
}
