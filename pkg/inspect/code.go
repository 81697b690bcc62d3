package inspect

// Code names a reason.
type Code string

// What may be the matter with a name or a claim. Of each the first ones are decisive. Those from InCycle to NothingBack are of
// berth.Trouble alone.
const (
	Incompatible Code = "incompatible" // written by a newer Berth
	Foreign      Code = "foreign"      // not written by Berth
	Unknown      Code = "unknown"      // nothing is stored of the name
	Damaged      Code = "damaged"      // it cannot be read
	Gone         Code = "ended"        // the claim was ended by force, or has left the line
	Absent       Code = "absent"       // nothing is stored of the claim
	Holding      Code = "holding"      // the claim holds
	Free         Code = "free"         // nobody waits, and something is free

	Silent   Code = "silent"    // its own process has not been heard of
	Paused   Code = "paused"    // nothing is granted
	TooHeavy Code = "too_heavy" // it asks for more than the capacity
	Ready    Code = "ready"     // it is free, and nobody has looked yet

	Own         Code = "own"          // its own owner holds it
	Over        Code = "over"         // more is held than the capacity, which was lowered
	Full        Code = "full"         // of a semaphore
	Locked      Code = "held"         // of a lock
	Entries     Code = "entries"      // of a lock whose owner has several
	Empty       Code = "empty"        // the pool has no resources
	Taken       Code = "taken"        // no resource is free
	Resting     Code = "resting"      // all resources rest
	OneHeld     Code = "one_held"     // the one resource that it waits for
	OneResting  Code = "one_resting"  // likewise
	OneDamaged  Code = "one_damaged"  // likewise
	OneAbsent   Code = "one_absent"   // likewise
	Bound       Code = "bound"        // it is bound to that resource
	LeavingPool Code = "leaving_pool" // some leave when they come back

	Outranked Code = "priority" // who is ahead has a higher priority
	Heavier   Code = "heavier"  // who is first asks for more than is free
	Behind    Code = "behind"   // others stand ahead
	LIFO      Code = "lifo"     // who comes later passes it
	Drawn     Code = "random"   // who comes later may pass it

	InCycle     Code = "cycle"        // claims wait for each other
	DeadHold    Code = "dead_hold"    // a hold without an end, of a node that counts as dead
	LeftBehind  Code = "detached"     // a hold without an end that no process has
	NothingBack Code = "nothing_back" // a pool that has nothing, and to which nothing comes back

	Asked         Code = "wanted"         // the holder was asked to give back
	ServerFull    Code = "server_full"    // it refuses what grows
	ServerRefuses Code = "server_refuses" // it refuses all writes
	OfReplica     Code = "replica"        // a replica answered
	Moved         Code = "moving"         // it changed while it was read
	Part          Code = "partial"        // not all was read
)
