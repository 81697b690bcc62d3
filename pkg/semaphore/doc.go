// Package semaphore is a counting semaphore that processes share over Redis or
// Valkey, first come, first served.
//
//	sems, err := semaphore.New(redis, semaphore.Config{}) // no I/O
//	defer sems.Close(ctx)
//
//	gpu, err := sems.Semaphore("gpu", 4)
//	permit, err := gpu.Acquire(ctx, nil) // waits in line
//	defer permit.Release(ctx)
//
// A [Client] stands on a rueidis client of the caller's and is one node: it has
// an id, renews what it holds, and keeps at most one connection more than the
// caller's, for wake-ups. A [Semaphore] is one name with a capacity; the same
// name is the same semaphore in every process. A [Permit] is what a claim holds.
//
// # Model
//
// Every acquire is a claim of its own. What became of it is decided by one
// script on the server, by the server's clock:
//
//	           nobody ahead, and it fits
//	asked for ───────────────────────────────────────► held ◄──► detached
//	    │                                               ▲   Detach, Resume
//	    │ else       first in line, and it fits         │ own call
//	    └──► waiting ──────────────────────────────► granted
//
// Each of them ends by Release, by a cancel, at its deadline, or by ReleaseByID;
// what comes free goes to the first in line in the same script.
//
// A waiting claim has a place, which comes from its ticket and never moves, and
// apart from it a liveness deadline: Config.Lease, the wait lease, counted from
// the last heartbeat of its process. The grant by a hand-off keeps that deadline
// until the claimant's own next call, so that a grant to a process that is gone
// costs no more than the wait lease. The wait lease is also the longest first
// grant: a longer Lease, and berth.Forever, begin with the claimant's next call.
//
// # Order
//
// Claims of one priority are granted in the order of their tickets, and the
// first in line is never passed: where it is heavy, those behind it wait, even
// if they would fit. A higher priority stands ahead of all lower ones, however
// long those have waited. See [AcquireOptions].
//
// # Leases
//
// A permit renews by itself at a third of its lease (of the wait lease, where
// that is shorter), until it is released or the client is closed. Its local
// deadline is the start of the last request that the server answered, plus the
// time that the server said was left, less a margin of 2 ms and 1 % of the lease.
// When that passes without an answer, or the server says that the permit is not
// held, its context ends: with berth.ErrLost where it should have been renewed,
// with berth.ErrExpired at a limit of its own (MaxHold, or the lease under
// NoRenew), with berth.ErrReleased where somebody gave it back. [Permit.Err] and
// every call of a permit look at the clock themselves.
//
// # What is promised
//
// While Redis keeps its data and its clock:
//
//   - never more is held than the capacity, by weight;
//   - the strict order above, among claims whose processes are heard of;
//   - a process that runs learns that its permit is lost before anybody else can
//     have the place;
//   - a process that ends in whatever way has its places given back within the
//     lease, without anybody calling anything; detached permits and those
//     without end excepted;
//   - an acquire that is cancelled, or whose answer is lost, holds nothing for
//     longer than the wait lease;
//   - fences rise with every grant of a name.
//
// # What is not promised
//
//   - A process that is stopped or suspended past its lease learns of it at its
//     first call after it has woken, not before. The same goes for a goroutine
//     that does not look at its context. Hand [Permit.Fence] to whatever the
//     permit protects, and refuse smaller ones there.
//   - When Redis loses writes (a flush, a failover, a restart without its data)
//     or its clock jumps forward, two may hold one place until the older holder's
//     next heartbeat, at most for a lease.
//   - After ReleaseByID two may be inside until the old holder has heard of it.
//   - A permit is not reentrant: a claim that its own owner's permit stands in
//     the way of waits like any other, on capacity 1 until the wait ends.
//   - It is no rate limiter: it bounds what is held at one time, not how often.
//
// # When calls fail
//
// Every script can be replayed: a call that the server did not answer, or did
// not run (LOADING, CLUSTERDOWN, READONLY and the like), is repeated, and the
// same claim gets the same answer. An Acquire repeats until its wait ends, all
// other calls within Config.Retry. Other answers of the server, such as OOM or
// NOPERM, end a call at once. The end of the caller's context ends the waiting for
// an answer, never the call: an Acquire returns at once, and what is left of its
// claim is removed in the background, which [Client.Close] waits for.
//
// A wake-up that is lost costs time, not order: every wait also ends through the
// heartbeat's reply. A waiting claim that the server no longer knows is put back
// at the place that it had, also after a flush. A Release whose call failed leaves
// a permit that ends with its lease, and may be called again.
//
// # Errors
//
// What a call returns is matched with errors.Is, against the sentinels that this
// package shares with package berth: [ErrNotAcquired] for a claim that did not
// get its permit, with [ErrBusy] where others were in the way; [ErrNotHeld] for a
// permit that has ended, as [ErrLost] or [ErrExpired]; [ErrInvalidConfig] for a
// value that was refused. One is its own: [ErrAbsent] for a Resize of a semaphore that
// nobody has used. The reason and the counts are in *berth.AcquireError,
// the field in *berth.ConfigError.
//
// docs/semantics.md has all of this in full, with what happens in every failure.
package semaphore
