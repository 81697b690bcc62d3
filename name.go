package berth

import (
	"cmp"
	"slices"
	"time"
)

// Ref identifies a name by its kind and its text.
type Ref struct {
	// Kind is keyspace.Sem, keyspace.Lock or keyspace.Pool.
	Kind Kind `json:"kind"`
	// Name is the text of the name.
	Name string `json:"name"`
}

// Name is a semaphore, a lock or a pool, as one reading found it. The counts leave out all that has ended by the server's
// clock, even if the server has not dropped it yet. Later releases add fields.
type Name struct {
	// Kind is the kind of the name.
	Kind Kind `json:"kind"`
	// Name is the text of the name.
	Name string `json:"name"`
	// Capacity is the stored capacity of a semaphore; 1 for a lock; the number of a pool's resources, including
	// those that are leaving. 0 for a name that does not exist.
	Capacity int `json:"capacity"`
	// Held is the total weight of a semaphore's holds; 1 or 0 for a lock; the number of leased resources
	// for a pool.
	Held int `json:"held"`
	// Holders is how many claims hold; for a lock, how many entries its owner has.
	Holders int `json:"holders"`
	// Waiting is how many claims wait, including dead claims that no script has found yet.
	Waiting int `json:"waiting"`
	// Dead is how many of the waiting claims are known to be dead: of the claims in First, or of all that were read. A
	// reading from a replica has 0.
	Dead int `json:"dead"`
	// Expired is how many holds and resources have ended but are still stored.
	Expired int `json:"expired"`
	// Oldest is how long the oldest hold that was read has lasted. A reading of one name reads up to 100 holds.
	Oldest time.Duration `json:"oldestMs"`
	// Longest is that oldest hold, nil for none.
	Longest *Holder `json:"longest,omitzero"`
	// First has the first in line of each priority, the highest priority first, at most 8. Under LIFO and Random other
	// claims may have waited longer. A claim whose Alive is 0 is dead.
	First []Waiter `json:"first"`
	// Partial says that the reading is incomplete: there may be an older hold and more priorities, and Expired may be
	// lower than the other counts imply.
	Partial bool `json:"partial"`
	// Pause is the pause of the name, or of all names; nil if the name is not paused.
	Pause *Pause `json:"pause,omitzero"`
	// Fence is the last fencing token that was given to a grant or, in a pool, to a resource that
	// came free.
	Fence int64 `json:"fence"`
	// Revision is the number of the last change by an operator, 0 for none.
	Revision int64 `json:"revision"`
	// Trouble is how bad the name's state is, and why.
	Trouble Trouble `json:"trouble,omitzero"`
	// Lock is set if the name is a held lock.
	Lock *LockInfo `json:"lock,omitzero"`
	// Pool is set if the name is an existing pool.
	Pool *PoolInfo `json:"pool,omitzero"`
	// Runs is set if the name is one of package once, of kind keyspace.Once. Such a name has no
	// counts.
	Runs *RunsInfo `json:"runs,omitzero"`
	// At is when the name was read, by the server's clock.
	At time.Time `json:"at"`
	// Replica says that a replica answered: the reading may be behind, and At is by the replica's
	// clock.
	Replica bool `json:"replica"`
	// Moving says that claims moved during the reading: a claim may be missing or counted twice.
	Moving bool `json:"moving"`
	// Err says why the other fields are unknown; nil if they are known.
	Err error `json:"error,omitzero"`
}

// Share returns the share of the capacity that is held: 0 to 1, or above 1 after a Resize below what is held; 0 for a
// name that does not exist.
func (n Name) Share() float64 {
	if n.Capacity == 0 {
		return 0
	}
	return float64(n.Held) / float64(n.Capacity)
}

// Live returns how many waiting claims are not known to be dead.
func (n Name) Live() int { return max(0, n.Waiting-n.Dead) }

// Level is how bad the state of a name is.
type Level string

// The levels, the worst first. A name that could not be read, and a name of package once, has the level "".
const (
	LevelStuck   Level = "stuck"   // nothing moves until somebody repairs it
	LevelOverdue Level = "overdue" // a holder's process is silent for too long
	LevelMeant   Level = "meant"   // intended: the name is paused, rests, is asked back, or a detached hold without end has it
	LevelBusy    Level = "busy"    // claims hold it or wait for it
	LevelFree    Level = "free"
)

// Compare orders levels: it returns a negative number if l is worse than other. "" is the
// greatest level.
func (l Level) Compare(other Level) int { return cmp.Compare(l.place(), other.place()) }

func (l Level) place() int {
	all := []Level{LevelStuck, LevelOverdue, LevelMeant, LevelBusy, LevelFree}
	if i := slices.Index(all, l); i >= 0 {
		return i
	}
	return len(all)
}

// Trouble is how bad the state of a name is, and why. Trouble considers only what one reading covers: up to 100 holds and
// the first claims in line.
type Trouble struct {
	Level Level `json:"level"`
	// Why is an inspect.Code. It is "" for LevelFree, and for LevelBusy unless a cycle is
	// possible.
	Why string `json:"why,omitzero"`
	// Claim is the hold or wait that causes the trouble, Node that claim's node; "" for none.
	Claim string `json:"claim,omitzero"`
	Node  string `json:"node,omitzero"`
	// Possible says that the cycle is possible, not certain; see inspect.Cycle.
	Possible bool `json:"possible,omitzero"`
}

// LockInfo says who holds a lock and how its owner has re-entered it.
type LockInfo struct {
	// Owner is the owner, or the claim's id where no owner was given.
	Owner string `json:"owner"`
	// Claim is the id of the outermost entry, Label the label of its node.
	Claim string `json:"claim"`
	Label string `json:"label"`
	// Left is the rest of the lease if nothing renews it, Forever for no end.
	Left time.Duration `json:"leftMs"`
	// Reentries is how many entries followed the first one.
	Reentries int `json:"reentries"`
	// WorkedThroughAt is when the last WorkThrough was granted, zero for none.
	WorkedThroughAt time.Time `json:"workedThroughAt"`
	// Extended is how much time ExtendAndWorkThrough has added in all, LastLease how much its last
	// call has added.
	Extended  time.Duration `json:"extendedMs"`
	LastLease time.Duration `json:"lastLeaseMs"`
	// ExtendedAt is when the last ExtendAndWorkThrough was granted, zero for none.
	ExtendedAt time.Time `json:"extendedAt"`
}

// PoolInfo counts the resources of a pool, leaving out what has expired.
type PoolInfo struct {
	// Free, Resting and Leaving are the numbers of resources in these states.
	Free    int `json:"free"`
	Resting int `json:"resting"`
	Leaving int `json:"leaving"`
	// Endless is how many resources rest without end. Endless is only read if no resource is free or leased.
	Endless int `json:"endless"`
	// Apart is how many of the claims in Name.Waiting wait for one resource alone.
	Apart int `json:"apart"`
}

// RunsInfo is the stored record of the runs of a name; see package once.
type RunsInfo struct {
	// Success is when the newest successful run ended, zero if none is known.
	Success time.Time `json:"success"`
	// Due is the time by which the next run is due: the end of the period that follows the period of Success. Without a
	// Success, Due is the end of the period of the last run, or of the following period while that run goes on. Zero if it
	// is not stored.
	Due time.Time `json:"due"`
	// Every is the length of the period of Success or, without a Success, of the last run.
	Every time.Duration `json:"everyMs"`
	// Outcome is the once.Outcome of the run that began last, "" if none is known. Begun and Ended are the times of that run;
	// Ended is zero until the run has ended. Label is the label of its node, Fence the fencing token of its hold.
	Outcome string    `json:"outcome"`
	Begun   time.Time `json:"begunAt"`
	Ended   time.Time `json:"endedAt"`
	Label   string    `json:"label"`
	Fence   int64     `json:"fence"`
	// GoesOn says that the run has begun and still holds its lock. If a run has begun but GoesOn is false and the run has
	// not ended, its process has died or has lost the lock.
	GoesOn bool `json:"goesOn"`
}

// Binding binds a name to a resource of a pool. A claim with that name gets the resource if the resource is free.
type Binding struct {
	// Name is the name of the binding.
	Name string `json:"binding"`
	// Resource is the key of the resource, any bytes; "" if nothing is bound.
	Resource string `json:"resource"`
	// Left is how long the binding still lasts, Forever for no end.
	Left time.Duration `json:"leftMs"`
}
