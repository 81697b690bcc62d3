// Package semaphore is a counting semaphore that processes share over Redis or
// Valkey, first come, first served.
//
//	n, err := node.New(redis, node.Config{}) // one for all that the process holds
//	defer n.Close(ctx)
//
//	gpu := semaphore.New(n, "gpu", 4, semaphore.Config{})
//	permit, err := gpu.Acquire(ctx, nil) // waits in line
//	defer permit.Release(ctx)
//
// Package node has what concerns a process and all that it holds: namespace, label, leases,
// retries, events, Close, and the calls for operators. A [Semaphore] is one name with a
// capacity; the same name is the same semaphore in every process. A [Permit] is what a
// granted claim holds. An [Operator] has the one call for operators that only semaphores
// have. Package inspect shows who holds and who waits.
//
// [New] has no error: each call returns what is wrong with the arguments of New, and so does
// Check of the node.
//
// # Model
//
// Every acquire is a claim of its own. One script on the server decides what becomes
// of the claim, by the server's clock:
//
//	           nobody ahead, and it fits
//	asked for ───────────────────────────────────────► held ◄──► detached
//	    │                                               ▲   Detach, Resume
//	    │ else       first in line, and it fits         │ own call
//	    └──► waiting ──────────────────────────────► granted
//
// A hold or a wait ends by Release, by a cancel, at its deadline, or by
// [node.Operator.Release]. The same script grants the freed place to the first in line.
//
// A waiting claim has a place and a liveness deadline. The place comes from its
// ticket and never moves. The deadline is the wait lease, node.Config.Lease, after the
// last heartbeat of its process. A hand-off keeps the deadline until the claimant's
// next call, so a grant to a dead process costs at most the wait lease. For the same
// reason a longer Lease, and berth.Forever, begin with that next call.
//
// # Options and defaults
//
// A field of [AcquireOptions] that is zero in a call is taken from Config.Defaults, then
// from the built-in values. A call says berth.Forever for a MaxWait or MaxHold without
// bound, and NoDefaults to go by its own fields and the built-in values alone.
//
// # Names
//
// A name is valid UTF-8 of 1 to 512 bytes, without braces and without characters
// that cannot be seen, such as control characters. keyspace.CheckName has the rule.
// Names are compared byte by byte. Package qlock says with what care text that strangers
// choose becomes part of a name.
//
// # Order
//
// Claims of one priority are granted in the order of their tickets. Nobody passes
// the first in line: while a heavy claim waits there, lighter ones behind it wait
// too. A higher priority stands ahead of all lower ones, however long those have
// waited.
//
// # Leases
//
// A permit renews by itself at a third of its lease, or of the wait lease where that
// is shorter, until it is released or the node is closed. Its local deadline is
// the start of the last request that the server answered, plus the time left that
// the server named, less 2 ms and 1 % of the lease. The permit's context ends when
// that deadline passes, or when the server says that the permit is not held. The
// cause is berth.ErrLost if a renewal was due, berth.ErrExpired at a limit of its own
// (MaxHold, or the lease under NoRenew), and berth.ErrReleased if the permit was
// given back. [Permit.Err] and every call of a permit look at the clock themselves,
// and so do Err and Done of the contexts that a Permit or Do gives. Such a context that
// is made from another one looks at the clock for both holds. Any other context that is
// made from one of these does not look itself: it ends in the same moment as that one, or
// when a timer fires.
//
// # What is promised
//
// While Redis keeps its data and its clock:
//
//   - never more weight is held than the capacity;
//   - claims are granted in the order above, as long as their processes are heard of;
//   - a running process learns that its permit is lost before another claim can have
//     the place;
//   - when a process ends, in whatever way, its places come free within the lease;
//     detached permits and those without end excepted;
//   - an acquire that was cancelled, or whose answer was lost, holds nothing for
//     longer than the wait lease;
//   - fences rise with every grant of a name.
//
// # What is not promised
//
//   - A process that is suspended past its lease learns of it at its first call after
//     it has woken. So does a goroutine that does not look at its context. Hand
//     [Permit.Fence] to whatever the permit protects, and refuse smaller fences there.
//   - When Redis loses writes (a flush, a failover, a restart without its data) or its
//     clock jumps forward, two claims may hold one place until the older holder's next
//     heartbeat, at most for a lease.
//   - After [node.Operator.Release] two claims may hold one place until the old holder has
//     heard of it.
//   - A permit is not reentrant. A second claim of the same owner waits like any other;
//     at capacity 1 it waits until its wait ends.
//   - A semaphore is no rate limiter: it bounds what is held at one time, not how often.
//
// # When calls fail
//
// Every script can be repeated, and the same claim gets the same answer. A call that
// the server did not answer or did not run (LOADING, CLUSTERDOWN, READONLY and the
// like) is repeated: an Acquire until its wait ends, other calls within node.Config.Retry.
// Other errors of the server, such as OOM or NOPERM, end a call at once. When the
// caller's context ends, an Acquire returns at once; the node removes the rest of
// the claim in the background, and Close of the node waits for that.
//
// A lost wake-up costs time, not order: the reply to the next heartbeat also ends the
// wait. A waiting claim that the server has forgotten gets its old place back, also
// after a flush. When a Release has failed, the permit ends with its lease, and
// Release may be called again.
//
// # Errors
//
// Match errors with errors.Is against the sentinels of package berth:
// berth.ErrNotAcquired if the claim did not get its permit, with berth.ErrBusy if others
// were in the way; berth.ErrNotHeld if the permit has ended, with berth.ErrLost or
// berth.ErrExpired; berth.ErrInvalidConfig if a value was refused; berth.ErrAbsent from
// [Operator.Resize] if no capacity is stored. A *berth.AcquireError has the reason and
// the counts, a *berth.ConfigError the field.
//
// docs/semantics.md has the guarantees and what happens in every failure.
package semaphore
