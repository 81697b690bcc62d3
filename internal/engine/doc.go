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
// # What ends a hold
//
// The local deadline is the start of the request that the server answered last,
// plus the time left that it named, less a margin. When it passes, or the server
// says that the claim is not held, the hold ends with its cause.
//
// # Where to read on
//
//	a claim       machine.go, state.go, rules_*.go, silence.go; claim.go, run.go
//	an acquire    acquire.go, ask.go (attempts), gate.go, flights.go; await.go
//	a push        push.go; deadline.go (a deadline that frees something)
//	a heartbeat   beat.go; call.go (other calls of a holder)
//	a hold        hold.go, do.go, release.go, exchange.go, adopt.go
//	an owner      group.go, groups.go (the entries by which one owner holds one lock)
//	the engine    engine.go, close.go
package engine
