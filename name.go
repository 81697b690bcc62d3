package berth

import (
	"cmp"
	"slices"
	"time"
)

// Ref is a name of a kind.
type Ref struct {
	// Kind is keyspace.Sem, keyspace.Lock or keyspace.Pool.
	Kind Kind `json:"kind"`
	// Name is what is contended for.
	Name string `json:"name"`
}

// Name is a semaphore, a lock or a pool, as one reading found it. The counts leave out what has ended by the server's clock,
// even if nobody has dropped it yet. Later releases add fields.
type Name struct {
	// Kind is the kind of the name.
	Kind Kind `json:"kind"`
	// Name is what is contended for.
	Name string `json:"name"`
	// Capacity is the stored capacity; of a lock 1; of a pool the number of its resources, those that are leaving
	// included. A name that is not there has 0.
	Capacity int `json:"capacity"`
	// Held is the weight of all holds together; of a lock 1 or 0; of a pool the number of leased resources.
	Held int `json:"held"`
	// Holders is how many claims hold; of a lock how many entries its owner has.
	Holders int `json:"holders"`
	// Waiting is how many claims wait. Dead claims that nobody has met yet may be among them.
	Waiting int `json:"waiting"`
	// Dead is how many of them are known to be dead: of those in First, or of all that were read. A replica knows of none.
	Dead int `json:"dead"`
	// Expired is how many holds and resources have ended and are not dropped yet.
	Expired int `json:"expired"`
	// Oldest is how long the longest of the holds that were read is held. A reading of one name reads up to 100 holds.
	Oldest time.Duration `json:"oldestMs"`
	// Longest is who holds since then, nil for nobody.
	Longest *Holder `json:"longest,omitzero"`
	// First are the first in line of each priority, the highest first, at most 8. With LIFO and Random others may have
	// waited longer. A claim whose Alive is 0 is dead.
	First []Waiter `json:"first"`
	// Partial says that not all was read: there may be an older hold and more priorities, and Expired may lack some that
	// other counts have.
	Partial bool `json:"partial"`
	// Pause is set while nothing is granted of the name, also by a pause of all names; nil if the name is not paused.
	Pause *Pause `json:"pause,omitzero"`
	// Fence is the last number given: to a grant, and of a pool also to a resource that came free.
	Fence int64 `json:"fence"`
	// Revision is the number of the last change by an operator, 0 for none.
	Revision int64 `json:"revision"`
	// Trouble is how bad its state is.
	Trouble Trouble `json:"trouble,omitzero"`
	// Lock is set for a lock that is held.
	Lock *LockInfo `json:"lock,omitzero"`
	// Pool is set for a pool that is there.
	Pool *PoolInfo `json:"pool,omitzero"`
	// Runs is set for a name of package once, of the kind keyspace.Once. Such a name has no counts.
	Runs *RunsInfo `json:"runs,omitzero"`
	// At is when the name was read, by the server's clock.
	At time.Time `json:"at"`
	// Replica says that a replica answered: the name is as of that replica, and At by its clock.
	Replica bool `json:"replica"`
	// Moving says that claims moved while the name was read: one may be missing, or counted twice.
	Moving bool `json:"moving"`
	// Err is why nothing else is known of the name.
	Err error `json:"error,omitzero"`
}

// Share is the part of the capacity that is held: 0 to 1, above 1 after a Resize to less; 0 for a name that is not there.
func (n Name) Share() float64 {
	if n.Capacity == 0 {
		return 0
	}
	return float64(n.Held) / float64(n.Capacity)
}

// Live is how many claims wait that are not known to be dead.
func (n Name) Live() int { return max(0, n.Waiting-n.Dead) }

// Level is how bad the state of a name is.
type Level string

// The levels, the worst first. "" is the level of a name that could not be read, and of one of package once.
const (
	LevelStuck   Level = "stuck"   // it stays so until somebody mends it
	LevelOverdue Level = "overdue" // the process of a hold should have been heard of
	LevelMeant   Level = "meant"   // somebody wants it so: it is paused, rests, or was asked for
	LevelBusy    Level = "busy"    // claims hold it or wait for it
	LevelFree    Level = "free"
)

// Compare compares two levels: the worse one is the lesser one, and "" the greatest.
func (l Level) Compare(other Level) int { return cmp.Compare(l.place(), other.place()) }

func (l Level) place() int {
	all := []Level{LevelStuck, LevelOverdue, LevelMeant, LevelBusy, LevelFree}
	if i := slices.Index(all, l); i >= 0 {
		return i
	}
	return len(all)
}

// Trouble is how bad the state of a name is, and why. It goes by what one reading found: up to 100 holds, and the first claims
// in line.
type Trouble struct {
	Level Level `json:"level"`
	// Why is an inspect.Code, "" for LevelFree, and for LevelBusy unless a cycle is possible.
	Why string `json:"why,omitzero"`
	// Claim is the hold or the wait that it is about, Node that claim's node; "" for none.
	Claim string `json:"claim,omitzero"`
	Node  string `json:"node,omitzero"`
	// Possible says that the cycle is possible, not certain; see inspect.Cycle.
	Possible bool `json:"possible,omitzero"`
}

// LockInfo is who has a lock, and what that owner did.
type LockInfo struct {
	// Owner is the owner, or the claim's id where no owner was given.
	Owner string `json:"owner"`
	// Claim is the id of the outermost entry, Label the label of its node.
	Claim string `json:"claim"`
	Label string `json:"label"`
	// Left is what is left of the lease if nothing renews it, Forever for no end.
	Left time.Duration `json:"leftMs"`
	// Reentries is how many entries were made after the first one.
	Reentries int `json:"reentries"`
	// WorkedThroughAt is when the last WorkThrough was granted, zero for none.
	WorkedThroughAt time.Time `json:"workedThroughAt"`
	// Extended is what ExtendAndWorkThrough has added in all, LastLease what its last call has added.
	Extended  time.Duration `json:"extendedMs"`
	LastLease time.Duration `json:"lastLeaseMs"`
	// ExtendedAt is when the last ExtendAndWorkThrough was granted, zero for none.
	ExtendedAt time.Time `json:"extendedAt"`
}

// PoolInfo counts the resources of a pool as a sweep would leave them.
type PoolInfo struct {
	// Free, Resting and Leaving are how many resources are in that state.
	Free    int `json:"free"`
	Resting int `json:"resting"`
	Leaving int `json:"leaving"`
	// Endless is how many of the resting ones rest without an end. It is read where no resource is free or leased.
	Endless int `json:"endless"`
	// Apart is how many of Name.Waiting wait for one resource alone.
	Apart int `json:"apart"`
}

// RunsInfo is what is kept of the runs of a name; see package once.
type RunsInfo struct {
	// Success is when the newest run that succeeded has ended, zero where none is known.
	Success time.Time `json:"success"`
	// Due is by when the next run is due: at the end of the period after that of Success. Without a Success it is the end of
	// the period of the run that began last, or of the period after that while the run goes on. Zero if it is not kept.
	Due time.Time `json:"due"`
	// Every is the length of the period of Success, or else of the run that began last.
	Every time.Duration `json:"everyMs"`
	// Outcome is the once.Outcome of the run that began last, "" where none is known; Begun and Ended are when it was, Ended zero
	// unless the run has ended, and Label is that of the process. Fence is that of the run's hold.
	Outcome string    `json:"outcome"`
	Begun   time.Time `json:"begunAt"`
	Ended   time.Time `json:"endedAt"`
	Label   string    `json:"label"`
	Fence   int64     `json:"fence"`
	// GoesOn says that the run has begun, and holds its lock. Without the lock its process has died, or has lost the lock.
	GoesOn bool `json:"goesOn"`
}

// Binding is a name and the resource of a pool that it is bound to. A claim with the name gets the resource if it is free.
type Binding struct {
	// Name is the name of the binding.
	Name string `json:"binding"`
	// Resource is the key of the resource, any bytes; "" if nothing is bound.
	Resource string `json:"resource"`
	// Left is how long the binding lasts yet, Forever for no end.
	Left time.Duration `json:"leftMs"`
}
