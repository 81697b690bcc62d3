// Package engine is the course that every claim takes, whatever it is for: ask,
// wait in line, hold a lease, give it back. It keeps the promises about time and
// wake-ups once for all primitives; what differs between them is their [Scripts].
//
// # A claim
//
//	asking --> waiting --> granted --> held --> ended
//	   \__________________/   ^         |--> detached
//	                                    '--> loose --> ended
//
// A claim's phase only moves forward, and every phase but detached may end at once. What a
// claim knows, and how that changes, is a pure machine: machine.go has the table of what
// each event does in each phase, state.go what is known, and rules_*.go and silence.go what
// each rule does. The machine sends nothing, and has no clock and no lock. [Claim] guards
// it, and Engine.on does what the effects of an event say.
//
// The engine knows a claim before its first script is sent, because a push may overtake the
// reply. The scripts of one claim are sent one after the other, since two in flight may run
// in either order; only heartbeats are sent beside them. An attempt that counts as unanswered
// is waited for no longer: from there on a removal leaves a tombstone.
//
// # What ends a wait
//
// A push says that a hand-off has granted the claim. It may be lost, late or
// false, so it never sets a deadline, and the heartbeat's reply brings the same
// news. A push is believed when the claim's own last answered call is at most half a wait
// lease old, unless the claim was asked for or restored again, or its hold has a limit of its
// own or a lease shorter than the wait lease; else one confirming call is sent before the
// wait ends.
//
// A claim that the server no longer knows (a flush, a failover, a server that
// stood still for longer than the lease) is restored with the ticket and the
// place that it had.
//
// A grant that ends before the caller has the handle ends no wait: what is left of it is given
// back, and another claim asks for the same.
//
// # What ends a hold
//
// The local deadline is the start of the request that the server answered last,
// plus the time left that it named, less a margin. When it passes, or the server
// says that the claim is not held, the hold ends with its cause.
//
// # Goroutines
//
// Close waits for all of them. In a node there are:
//
//   - one for the heartbeat's timing, from the first lease on, and one for the subscription,
//     from the first wait on, both until Close;
//   - one for each flush of heartbeats in flight, until its last answer or its longest lease;
//     the flush adds one for each further node of a cluster, one for each name whose waiting
//     claims are restored, and one each 10 s that asks for the cluster's nodes;
//   - one that loads the heartbeat's scripts, with the first claim;
//   - at most one sweep in flight for each name with waiting claims;
//   - at most one that notes in the registry for which names claims wait;
//   - one for each acquire, release, renewal or confirmation in flight whose ctx can end, until
//     its answer or CallTimeout; at most 64 of them are kept for the next calls, until Close.
//     An acquire that waits for the gate uses its caller's;
//   - one for each removal of a claim that left, within CallTimeout + CleanupTimeout;
//   - in Close and ReleaseAll one for each server, and one for each release under way;
//   - of locks: one for each lock that a LockAll with NoRenew has while it waits; one for a
//     swarm's probes and one for its flushes, until Stop or Close;
//   - of pools: one for each pool with a Source or an Open, and one more while the Source is
//     asked; as many as CheckHealth was told, and one.
//
// # Words
//
// Beside those of docs/architecture.md:
//
//   - ask, attempt: an acquire; one sending of it
//   - own call: a call by the claim's node, in a mode: beat, renew, detach, extend
//   - confirmed: a grant that needs no own call first
//   - event, rule: what happens to a claim; what that changes in a phase
//   - effects, action: what an event leads to; one part of it that the engine does
//   - news, snapshot: what tells which of two pieces of news is newer; what was known when a call was sent
//   - silence: a claim's unanswered calls since its last answer
//   - gift, timing: what a grant gives; how long it lasts, as far as is known
//   - gate, door, window: what calls of waiting claims pass before they are sent; one kind's; how much may be in flight
//   - clocked: of a context that compares the clock itself, and does not wait for a timer
//   - entry, outermost: a claim by which an owner holds a lock; the first one
//   - group, stem: all entries of an owner; the field of what they share
//   - version: of a group; counts the sending and the answer of each release of an entry
//   - ceiling: the most that a handle is believed in while another entry's release is unanswered
//   - least, floor: the nearest that a group's common deadline can be; the nearest that a release from here can bring it
//   - sooner, furthest: the earliest deadline that has come nearer; the furthest that was set
//
// # Where to read on
//
//	a claim       machine.go, state.go, rules_*.go, silence.go; claim.go, run.go
//	an acquire    acquire.go, ask.go (attempts), doors.go, flights.go; await.go, stands.go
//	a push        push.go; deadline.go (a deadline that frees something)
//	a heartbeat   beat.go; call.go (other calls of a holder)
//	a hold        hold.go, context.go, do.go, release.go, exchange.go, adopt.go
//	an owner      group.go, groups.go (the entries by which one owner holds one lock)
//	the engine    engine.go, close.go, giveback.go
package engine
