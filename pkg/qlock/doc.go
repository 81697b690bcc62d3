// Package qlock is a lock with a line that processes share over Redis or Valkey.
//
//	locks, err := qlock.New(redis, qlock.Config{}) // no I/O
//	defer locks.Close(ctx)
//
//	lock, err := locks.Lock(ctx, "invoice:42", nil) // waits in line
//	defer lock.Release(ctx)
//
// A [Client] stands on a rueidis client of the caller's and is one node: it has
// an id, renews what it holds, and keeps at most one connection more than the
// caller's, for wake-ups. Locks come in any number and have no settings: a lock is
// no more than its name. A [Lock] is what one claim holds. A [LockSet] is what
// [Client.LockAll] holds: several names or none. [Client.Operator] has the calls for
// operators: they look at the locks of a namespace and change them, whoever holds them.
//
// What a call does not say for itself is taken from Config.Defaults, then from the
// default that [LockOptions] names for the field.
//
// # Names
//
// A name is valid UTF-8 of 1 to 512 bytes, without braces and without characters
// that cannot be seen, such as control characters. keyspace.CheckName has the rule,
// and keyspace.CheckNamespace that of Config.Namespace. Names are compared byte by byte.
//
// Treat text that strangers choose, such as a tenant's id or an e-mail address,
// with care before it becomes part of a name. Refuse an empty text and what CheckName
// refuses, bound its length, and put a prefix of your own before it ("order:" + id), so
// that nobody can name what is somebody else's. Or hash the text: a hash always fits, and
// a keyed one hides the text too. Every new name takes memory on the server until
// Config.Linger has passed, so bound how many names a stranger can make. Never use such a
// name as a label of a metric. Listings return owners, labels and metadata as they
// were given: escape them before they reach a terminal or a page.
//
// # Model
//
// Every call is a claim of its own. What became of it is decided by one script
// on the server, by the server's clock:
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
// MaxHold. The lock is held while any of them lives, and whatever ends the last one
// grants it to the first in line in the same script. An entry ends by Release, at
// its deadline, or by force; a wait ends by a cancel as well.
//
// A waiting claim has a place, which it gets when it comes, and apart from it a
// liveness deadline: Config.Lease, the wait lease, counted from the last heartbeat
// of its process. The grant by a hand-off keeps that deadline until the claimant's
// own next call, so that a grant to a process that is gone costs no more than the
// wait lease. The wait lease is also the longest first grant: a longer Lease, and
// berth.Forever, begin with the claimant's next call.
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
// A claim has an owner: that of berth.WithOwner, or of the context of Do, Within
// or Context; without any, it is its own. What happens to a claim whose owner
// holds the name already, in whatever process, is for the claim to say: see
// [Conflict]. Where nothing else is said it is FailDeadlock: berth.ErrDeadlock.
//
// The outermost of an owner's entries decides: its heartbeats renew, and the others
// follow its deadline. When it is released, the next one is the outermost, with the
// same lease and kind. ExtendAndWorkThrough adds its lease to the common deadline.
// When that entry is released, the time that it has not used is taken back, but never
// the time that the outermost entry's own lease, its renewals and [Lock.Extend] give.
// Time is taken back only where all entries that stay are of the node that releases:
// another node could not lower its local deadline in time. A detached entry takes
// nothing back. An owner has at most 100 entries.
//
// # Leases
//
// A lock renews by itself at a third of its lease (of the wait lease, where that is
// shorter), until it is released or the client is closed. Its local deadline is the
// start of the last request that the server answered, plus the time that the server
// said was left, less a margin of 2 ms and 1 % of the lease. When that deadline passes
// without an answer, or the server says that the lock is not held, the lock's context ends:
// with berth.ErrLost where it should have been renewed, with berth.ErrExpired at a
// limit of its own (MaxHold, or the lease under NoRenew), with berth.ErrReleased
// where somebody gave it back. [Lock.Err] and every call of a lock look at the
// clock themselves.
//
// # Several names
//
// [Client.LockAll] locks its names in one order for all callers, so that calls of
// it that hold nothing before never wait for each other in a circle. What it has is
// renewed while it waits for the rest. If one is not acquired, none stays held.
//
// # Swarm
//
// A hold that does not renew, or has no end, outlives its process. In a [Swarm],
// which is off by default, nodes of a namespace watch each other. A node that has not
// probed for its own ZombieAfter is condemned: its holds, but for detached locks, and its
// waiting claims are removed, and the locks are handed on. Before that the node itself
// ends its handles with berth.ErrLost, and goes on under a new id.
//
// # What is promised
//
// While Redis keeps its data and its clock:
//
//   - never more than one owner holds a name;
//   - the order above, among claims whose processes are heard of;
//   - a process that runs learns that its lock is lost before anybody else can
//     have it;
//   - a process that ends in whatever way has its locks given back within the
//     lease, without anybody calling anything; detached locks and those without
//     end excepted, the latter unless a swarm takes care of them. The lease is
//     longer by what Extend and ExtendAndWorkThrough have added;
//   - an acquire that is cancelled, or whose answer is lost, holds nothing for
//     longer than the wait lease;
//   - fences rise with every grant of a name; a re-entry keeps that of its hold.
//
// # What is not promised
//
//   - A process that is stopped or suspended past its lease learns of it at its
//     first call after it has woken, not before. The same goes for a goroutine
//     that does not look at its context. Hand [Lock.Fence] to whatever the lock
//     protects, and refuse smaller ones there: package fence has guards for that.
//   - When Redis loses writes (a flush, a failover, a restart without its data)
//     or its clock jumps forward, two may hold a lock until the older holder's
//     next heartbeat, at most for a lease.
//   - After [Operator.Release] two may be inside until the old holder has heard of it.
//   - Nothing is known of claims for other names: who locks one name while holding
//     another, other than by LockAll, may wait in a circle until the wait ends.
//   - An owner is a text. Who names the same one enters too.
//
// # When calls fail
//
// Every script can be replayed: a call that the server did not answer, or did
// not run (LOADING, CLUSTERDOWN, READONLY and the like), is repeated, and the
// same claim gets the same answer. A Lock repeats until its wait ends, all
// other calls within Config.Retry. Other answers of the server, such as OOM or
// NOPERM, end a call at once. The end of the caller's context ends the waiting for
// an answer, never the call: a Lock returns at once, and what is left of its
// claim is removed in the background, which [Client.Close] waits for.
//
// A wake-up that is lost costs time, not order: every wait also ends through the
// heartbeat's reply. A waiting claim that the server no longer knows is put back
// at the place that it had, also after a flush. A Release whose call failed leaves
// a lock that ends with its lease, and may be called again.
//
// # Errors
//
// Match what a call returns with errors.Is, against the errors of package berth:
// ErrNotAcquired for a claim that did not get its lock, with ErrBusy where others were in
// the way, ErrDeadlock where its own owner was, and ErrTooManyEntries where the owner has
// 100 entries; ErrNotHeld for a lock that has ended, as ErrLost or ErrExpired;
// ErrInvalidConfig for a value that was refused. The reason is in *berth.AcquireError,
// with who holds and who waits if DetailedErrors is set; the field is in
// *berth.ConfigError.
//
// docs/semantics.md has all of this in full, with what happens in every failure.
package qlock
