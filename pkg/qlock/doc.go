// Package qlock is a lock with a line that processes share over Redis or Valkey.
//
//	n, err := node.New(redis, node.Config{}) // one for all that the process holds
//	defer n.Close(ctx)
//
//	locks := qlock.New(n, qlock.Config{})
//	lock, err := locks.Lock(ctx, "invoice:42", nil) // waits in line
//	defer lock.Release(ctx)
//
// Package node has what concerns a process and all that it holds: namespace, label, retries,
// events, Close, and the calls for operators. [Locks] are the locks of a node. A lock is no
// more than its name: it has no settings. A [Lock] is what one claim holds. A [LockSet] is
// what [Locks.LockAll] holds: several names or none. An [Operator] has the one call for
// operators that only locks have. Package inspect shows who holds and who waits.
//
// [New] has no error: each call returns what is wrong with the arguments of New, and so does
// Check of the node.
//
// A field that a call leaves zero comes from Config.Defaults, then from the default
// that [LockOptions] names.
//
// # Names
//
// A name is valid UTF-8 of 1 to 512 bytes, without braces and without characters
// that cannot be seen, such as control characters. keyspace.CheckName has the rule,
// and keyspace.CheckNamespace that of the namespace. Names are compared byte by byte.
//
// Treat text that strangers choose, such as a tenant's id or an e-mail address,
// with care before it becomes part of a name. Refuse an empty text and what CheckName
// refuses, bound its length, and put a prefix of your own before it ("order:" + id), so
// that nobody can name what is somebody else's. Or hash the text: a hash always fits, and
// a keyed one hides the text too. Every new name takes memory on the server until
// node.Config.Linger has passed, so bound how many names a stranger can make. Never use such a
// name as a label of a metric. Listings return owners, labels and metadata as they
// were given: escape them before they reach a terminal or a page.
//
// # Model
//
// Every call is a claim. One script on the server decides about it, by the server's
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
// An owner may hold a name by several entries. Each is a claim with a handle and a
// release of its own; they share the fence and one deadline, each within its own
// MaxHold. The lock is held while any of them lives. The script that ends the last one
// grants the lock to the first in line. An entry ends by Release, at its deadline, or
// by force; a wait also ends by a cancel.
//
// A waiting claim has a place, which it gets when it comes, and a liveness deadline: the
// wait lease, counted from the last heartbeat of its process. The wait lease is
// Config.Lease, or the lease of the node if that is shorter. A grant by a hand-off keeps
// that deadline until the claimant's own next call. So a grant to a process that is gone
// costs no more than the wait lease. No first grant is longer than the wait lease: a longer
// Lease, and berth.Forever, begin with the claimant's next call.
//
// # Order
//
// All claims for a name stand in one line. A higher priority stands ahead of all
// lower ones. Within a priority [Queued] claims are granted in the order in which
// they came; a [Random] one draws its place once and may stand ahead of them;
// [LIFO] ones stand behind the other two, the last come first. Only RequeueEvery, which
// is off by default, gives up a place.
//
// # Re-entry
//
// A claim has an owner: that of berth.WithOwner, or of the context of Do, Within or
// Context. Without any, the claim is its own owner. If the owner holds the name
// already, in any process, the claim's [Conflict] says what happens. The default is
// FailDeadlock: berth.ErrDeadlock.
//
// The outermost entry of an owner decides: its heartbeats renew, and the others follow
// its deadline. When it is released, the next entry becomes the outermost, with the
// same lease and kind. ExtendAndWorkThrough adds its lease to the common deadline. The
// release of that entry takes the unused time back, but never the time that the
// outermost entry's own lease, its renewals and [Lock.Extend] give. Time is taken back
// only if all entries that stay are of the node that releases: another node could not
// lower its local deadline in time. A detached entry takes nothing back. An owner has
// at most 100 entries.
//
// # Leases
//
// A lock renews by itself at a third of its lease (of the wait lease, if that is
// shorter), until it is released or the node is closed. Its local deadline is the
// start of the last request that the server answered, plus the time that the server
// said was left, less a margin of 2 ms and 1 % of the lease. When that deadline passes
// without an answer, or the server says that the lock is not held, the lock's context
// ends: with berth.ErrLost if the lock should have been renewed, with berth.ErrExpired
// at its own limit (MaxHold, or the lease under NoRenew), with berth.ErrReleased if
// somebody gave it back. [Lock.Err] and every call of a lock look at the clock
// themselves, and so do Err and Done of the contexts that a Lock, a LockSet, Do or
// DoAll gives. Such a context that is made from another one looks at the clock for both
// holds. Any other context that is made from one of these does not look itself: it ends in
// the same moment as that one, or when a timer fires.
//
// # Several names
//
// [Locks.LockAll] locks its names in the same order for all callers. So calls of it
// that hold nothing before never wait for each other in a cycle. While it waits for
// the rest, it renews what it has. If one name is not acquired, none stays held.
//
// # Guarantees
//
// While Redis keeps its data and its clock:
//
//   - never more than one owner holds a name;
//   - the order above, among claims whose processes are heard of;
//   - a running process learns that its lock is lost before another owner can have it;
//   - when a process ends, in whatever way, its locks come free within the lease,
//     longer by what Extend and ExtendAndWorkThrough have added; detached locks
//     excepted, and locks without end unless the node is in a [node.Swarm];
//   - an acquire that was cancelled, or whose answer was lost, holds nothing for longer
//     than the wait lease;
//   - fences rise with every grant of a name; a re-entry keeps that of its hold.
//
// # Not guaranteed
//
//   - A process that is suspended past its lease learns of it at its first call after
//     it has woken. So does a goroutine that does not look at its context. Hand
//     [Lock.Fence] to whatever the lock protects, and refuse smaller fences there:
//     package fence has guards for that.
//   - When Redis loses writes (a flush, a failover, a restart without its data)
//     or its clock jumps forward, two may hold a lock until the older holder's
//     next heartbeat, at most for a lease.
//   - After [node.Operator.Release] two may be inside until the old holder has heard of it.
//   - A lock knows nothing of claims for other names. A caller who locks one name while
//     holding another, other than by LockAll, may wait in a cycle until the wait ends.
//   - An owner is a text. Whoever names the same text enters too.
//
// # When calls fail
//
// Every script can be repeated, and the same claim gets the same answer. A call that
// the server did not answer or did not run (LOADING, CLUSTERDOWN, READONLY and the
// like) is repeated: a Lock until its wait ends, other calls within node.Config.Retry. Other
// errors of the server, such as OOM or NOPERM, end a call at once. When the caller's
// context ends, a Lock returns at once; the node removes the rest of the claim in the
// background, and Close of the node waits for that.
//
// A lost wake-up costs time, not order: the reply to the next heartbeat also ends the
// wait. A waiting claim that the server has forgotten gets its old place back, also
// after a flush. When a Release has failed, the lock ends with its lease, and Release
// may be called again.
//
// # Errors
//
// Match errors with errors.Is against the sentinels of package berth: ErrNotAcquired if
// the claim did not get its lock, with ErrBusy if others were in the way, ErrDeadlock
// if its own owner was, and ErrTooManyEntries if the owner has 100 entries; ErrNotHeld
// if the lock has ended, with ErrLost or ErrExpired; ErrInvalidConfig if a value was
// refused. A *berth.AcquireError has the reason, and who holds and who waits if
// DetailedErrors is set. A *berth.ConfigError has the field.
//
// docs/semantics.md has the guarantees and what happens in every failure.
package qlock
