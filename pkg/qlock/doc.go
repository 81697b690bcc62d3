// Package qlock provides locks with a line of waiters, which processes share over Redis or
// Valkey.
//
//	n, err := node.New(redis, node.Config{}) // one for all that the process holds
//	defer n.Close(ctx)
//
//	locks := qlock.New(n, qlock.Config{})
//	lock, err := locks.Lock(ctx, "invoice:42", nil) // waits in line
//	defer lock.Release(ctx)
//
// Package node configures a process and all its holds: namespace, label, retries, events,
// Close, and the calls for operators. [Locks] are the locks of a node. A lock needs only a name
// and has no settings. A [Lock] is the handle of one claim. A [LockSet] is the handle of
// several names locked together by [Locks.LockAll]. [Operator] has Extend, the only operator's
// call that is specific to locks. Package inspect lists holders and waiters.
//
// [New] returns no error: bad arguments of New are returned by each call of the Locks, and by
// Check of the node.
//
// A zero field of a call's [LockOptions] takes its value from Config.Defaults, then from the
// default that its comment names.
//
// # Names
//
// A name is valid UTF-8 of 1 to 512 bytes, without braces and without invisible characters such
// as control characters; see keyspace.CheckName, and keyspace.CheckNamespace for namespaces.
// Names are compared byte by byte.
//
// Check users' text, such as a tenant's id or an e-mail address, before making it part of a
// name. Refuse an empty text and any text that CheckName refuses, limit the length, and add a
// prefix ("order:" + id), so that users cannot choose names meant for others. Or hash the text:
// a hash is always a valid name, and a keyed hash also hides the text. Every new name takes
// memory on the server until node.Config.Linger has passed, so limit how many names a user can
// make. Never use such a name as a label of a metric. Listings return owners, labels and
// metadata as they were given: escape these texts before they reach a terminal or a page.
//
// # Model
//
// Every call makes a claim. One script on the server decides about the claim, by the server's
// clock:
//
//	           nobody holds it, nobody waits
//	asked for ───────────────────────────────────────► held ◄──► detached
//	    │                                               ▲   Detach, Resume
//	    │ else       first in line, and it is free      │ own call
//	    ├──► waiting ──────────────────────────────► granted
//	    │
//	    │ its owner holds it: WorkThrough, ExtendAndWorkThrough
//	    └──► one more entry of the owner's hold: held, or granted as that is
//
// An owner may hold a name by several entries. Each entry is a claim with its own handle and
// release; all entries share the fence and one deadline, each entry within its own MaxHold. The
// lock is held while any entry lives. The script that ends the last entry grants the lock to
// the first in line. An entry ends by Release, at its deadline, or by force; a wait also ends
// by cancellation.
//
// A waiting claim has a place, which it gets on arrival, and a liveness deadline: the wait lease
// after the last heartbeat of its process. The wait lease is Config.Lease, or the node's Lease
// if that is shorter. A waiting claim that is granted keeps this deadline until its process
// calls next, so a grant to a dead process costs at most the wait lease. No first grant, at once
// or by a hand-off, is longer than the wait lease: a longer Lease, or berth.Forever, begins with
// the next call of the process.
//
// # Order
//
// All claims for a name stand in one line, and higher priorities stand ahead of all lower ones.
// Within a priority [Queued] claims are granted in order of arrival. A [Random] claim draws its
// place once and may stand ahead of Queued claims. [LIFO] claims stand behind all others, the
// newest first. Only RequeueEvery, which is off by default, gives up a place.
//
// # Re-entry
//
// A claim's owner comes from berth.WithOwner, or from the context of Do, Within or Context.
// Without an owner, the claim is its own owner. If the owner already holds the name, in any
// process, the claim's [Conflict] decides. The default is FailDeadlock: the call returns
// berth.ErrDeadlock.
//
// The heartbeats of an owner's outermost entry renew the hold, and all other entries share its
// deadline. When the outermost entry is released, the next entry becomes the outermost, with
// the same lease and the same kind of renewal. An owner has at most 100 entries.
//
// ExtendAndWorkThrough adds its lease to the common deadline. The release of that entry takes
// the unused time back, but never the time from the outermost entry's own lease, its renewals
// and [Lock.Extend]. Time is taken back only if all remaining entries belong to the releasing
// node, since another node could not lower its local deadline in time. A detached entry takes
// nothing back.
//
// # Leases
//
// A lock renews by itself every third of its lease, or of the wait lease if that is shorter,
// until it is released or the node is closed. Its local deadline is the start of the last
// request that the server answered, plus the remaining time in that answer, minus a margin of 2
// ms and 1 % of the lease.
//
// The lock's context ends when the local deadline passes, or when the server says that the lock
// is not held. The cause is berth.ErrLost if a renewal was due, berth.ErrExpired at the lock's
// own limit (MaxHold, or the lease under NoRenew), and berth.ErrReleased if the lock was given
// back.
//
// [Lock.Err] and every call of a lock compare the clock themselves, and so do Err and Done of
// the contexts from a Lock, a LockSet, Do or DoAll. If such a context is made from that of
// another hold, Err and Done compare the clock for both holds. Any other context derived from
// one of these ends at the same moment as its parent, or when a timer fires.
//
// # Several names
//
// [Locks.LockAll] locks its names in the same order for all callers. So callers of LockAll that
// hold nothing before never wait for each other in a cycle. LockAll renews the locks that it
// has while it waits for the rest. If one name is not acquired, LockAll releases the others.
//
// # Guarantees
//
// While Redis keeps its data and its clock:
//
//   - at most one owner holds a name;
//   - claims are granted in the order above while their processes send heartbeats;
//   - a running process learns of the loss of its lock before another owner can get the lock;
//   - when a process ends for any reason, its locks come free within the lease plus the time
//     that Extend and ExtendAndWorkThrough have added, except detached locks, and locks without
//     end if the node is in no [node.Swarm];
//   - an acquire that was cancelled, or whose answer was lost, holds nothing for longer
//     than the wait lease;
//   - every grant of a name has a greater fence than all grants before it; a re-entry has the
//     fence of its hold.
//
// # Not guaranteed
//
//   - A process that is suspended past its lease learns of the loss only at its first call
//     after waking. The same is true of a goroutine that does not check its context. Pass
//     [Lock.Fence] to the system that the lock protects, and refuse smaller fences there;
//     package fence has guards.
//   - If Redis loses writes (by a flush, a failover, a restart without its data) or its clock
//     jumps forward, two owners may hold a lock until the older holder's next heartbeat, for at
//     most one lease.
//   - After [node.Operator.Release] two owners may be inside until the old holder learns of the
//     release.
//   - A lock does not detect deadlocks over several names. A caller who locks one name while
//     holding another, except by LockAll, may wait in a cycle until the wait ends.
//   - An owner is only a text: any caller with the same owner can enter too.
//
// # When calls fail
//
// Every script can be repeated, and a repeated claim gets the same answer. A call that the
// server did not answer or did not run (LOADING, CLUSTERDOWN, READONLY and the like) is
// repeated: a call of Lock until its wait ends, other calls within node.Config.Retry. Other
// errors of the server, such as OOM or NOPERM, end a call at once. When the caller's context
// ends, Lock returns at once; the node removes the claim in the background, and Close of the
// node waits for the removal.
//
// A lost wake-up delays a grant but does not change the order: the reply to the next heartbeat
// has the same news. A waiting claim that the server has forgotten gets its old place back,
// even after a flush. After a failed Release the lock ends with its lease, and Release may be
// called again.
//
// # Errors
//
// Match errors with errors.Is against the sentinels of package berth. A claim that was not
// granted gives ErrNotAcquired, with ErrBusy if other claims were the reason, ErrDeadlock if
// its own owner was, and ErrTooManyEntries if the owner has 100 entries. An ended lock gives
// ErrLost or ErrExpired, which match ErrNotHeld, or ErrReleased. A refused value gives
// ErrInvalidConfig. A *berth.AcquireError has the reason and, with DetailedErrors, the holders
// and waiters. A *berth.ConfigError has the field.
//
// docs/semantics.md lists the guarantees and the effects of every failure.
package qlock
