// Package semaphore provides a counting semaphore that processes share over Redis or Valkey,
// first come, first served.
//
//	n, err := node.New(redis, node.Config{}) // one for all that the process holds
//	defer n.Close(ctx)
//
//	gpu := semaphore.New(n, "gpu", 4, semaphore.Config{})
//	permit, err := gpu.Acquire(ctx, nil) // waits in line
//	defer permit.Release(ctx)
//
// Package node configures a process and all its holds: namespace, label, leases, retries,
// events, Close, and the calls for operators. A [Semaphore] is one name with a capacity; the
// same name is the same semaphore in every process. A [Permit] is the handle of a granted
// claim. [Operator] has Resize, the only operator's call that is specific to semaphores.
// Package inspect lists holders and waiters.
//
// [New] returns no error: bad arguments of New are returned by each call of the Semaphore, and
// by Check of the node.
//
// # Model
//
// Every acquire makes a new claim. One script on the server decides about the claim, by the
// server's clock:
//
//	           nobody ahead, and it fits
//	asked for ───────────────────────────────────────► held ◄──► detached
//	    │                                               ▲   Detach, Resume
//	    │ else       first in line, and it fits         │ own call
//	    └──► waiting ──────────────────────────────► granted
//
// A hold or a wait ends by Release, by cancellation, at its deadline, or by
// [node.Operator.Release]. The script that ends a hold grants the freed place to the first in
// line.
//
// A waiting claim has a place, which comes from its ticket and never moves, and a liveness
// deadline: the wait lease (node.Config.Lease) after the last heartbeat of its process. A
// waiting claim that is granted keeps this deadline until its process calls next, so a grant to
// a dead process costs at most the wait lease. No first grant, at once or by a hand-off, is
// longer than the wait lease: a longer Lease, or berth.Forever, begins with the next call of the
// process.
//
// # Options and defaults
//
// A zero field of a call's [AcquireOptions] takes its value from Config.Defaults, then from the
// built-in defaults. To remove the limit of a default MaxWait or MaxHold, a call sets
// berth.Forever. To skip Config.Defaults, a call sets NoDefaults.
//
// # Names
//
// A name is valid UTF-8 of 1 to 512 bytes, without braces and without invisible characters such
// as control characters; see keyspace.CheckName. Names are compared byte by byte. Before users'
// text becomes part of a name, read the section Names of package qlock.
//
// # Order
//
// Claims of one priority are granted in the order of their tickets. No claim passes the first
// in line: while a heavy claim is first, lighter claims behind it wait too. A claim of a higher
// priority stands ahead of all claims of lower priorities, however long they have waited.
//
// # Leases
//
// A permit renews by itself every third of its lease, or of the wait lease if that is shorter,
// until it is released or the node is closed. Its local deadline is the start of the last
// request that the server answered, plus the remaining time in that answer, minus a margin of 2
// ms and 1 % of the lease.
//
// The permit's context ends when the local deadline passes, or when the server says that the
// permit is not held. The cause is berth.ErrLost if a renewal was due, berth.ErrExpired at the
// permit's own limit (MaxHold, or the lease under NoRenew), and berth.ErrReleased if the permit
// was given back.
//
// [Permit.Err] and every call of a permit compare the clock themselves, and so do Err and Done
// of the contexts from a Permit or Do. If such a context is made from that of another hold, Err
// and Done compare the clock for both holds. Any other context derived from one of these ends
// at the same moment as its parent, or when a timer fires.
//
// # Guarantees
//
// While Redis keeps its data and its clock:
//
//   - the weights of all holds never exceed the capacity;
//   - claims are granted in the order above while their processes send heartbeats;
//   - a running process learns of the loss of its permit before another claim can get the
//     place;
//   - when a process ends for any reason, its places come free within the lease, except those
//     of detached permits and of permits without end;
//   - an acquire that was cancelled, or whose answer was lost, holds nothing for
//     longer than the wait lease;
//   - every grant of a name has a greater fence than all grants before it.
//
// # Not guaranteed
//
//   - A process that is suspended past its lease learns of the loss only at its first call
//     after waking. The same is true of a goroutine that does not check its context. Pass
//     [Permit.Fence] to the system that the permit protects, and refuse smaller fences there.
//   - If Redis loses writes (by a flush, a failover, a restart without its data) or its clock
//     jumps forward, two claims may hold one place until the older holder's next heartbeat, for
//     at most one lease.
//   - After [node.Operator.Release] two claims may hold one place until the old holder learns
//     of the release.
//   - A permit is not reentrant. A second claim of the same owner waits like any other claim;
//     at capacity 1 it waits for itself until its wait ends.
//   - A semaphore is not a rate limiter: it limits how much is held at one time, not how often.
//
// # When calls fail
//
// Every script can be repeated, and a repeated claim gets the same answer. A call that the
// server did not answer or did not run (LOADING, CLUSTERDOWN, READONLY and the like) is
// repeated: an Acquire until its wait ends, other calls within node.Config.Retry. Other errors
// of the server, such as OOM or NOPERM, end a call at once. When the caller's context ends,
// Acquire returns at once; the node removes the claim in the background, and Close of the node
// waits for the removal.
//
// A lost wake-up delays a grant but does not change the order: the reply to the next heartbeat
// has the same news. A waiting claim that the server has forgotten gets its old place back,
// even after a flush. After a failed Release the permit ends with its lease, and Release may be
// called again.
//
// # Errors
//
// Match errors with errors.Is against the sentinels of package berth. A claim without a permit
// gives berth.ErrNotAcquired, with berth.ErrBusy if other claims were the reason. An ended
// permit gives berth.ErrLost or berth.ErrExpired, which match berth.ErrNotHeld, or
// berth.ErrReleased. A refused value gives berth.ErrInvalidConfig. [Operator.Resize] gives
// berth.ErrAbsent if no capacity is stored. A *berth.AcquireError has the reason and the
// counts, a *berth.ConfigError the field.
//
// docs/semantics.md lists the guarantees and the effects of every failure.
package semaphore
