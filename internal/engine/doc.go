// Package engine is the course that every claim takes, whatever it is for: ask,
// wait in line, hold a lease, give it back. It keeps the promises about time and
// wake-ups once for all primitives; what differs between them is their scripts.
//
// # A claim
//
//	asking --> waiting --> granted --> ended
//	   \___________________/  ^          ^
//	    \________________________________/
//
// Its state on this side only moves forward. The engine knows a claim before its
// first script is sent, because a wake-up may overtake the reply. The scripts of
// one claim are sent one after the other: two in flight may run in either order.
//
// # What ends a wait
//
// A push says that a hand-off has granted the claim. It may be lost, late or
// false, so it never sets a deadline, and the heartbeat's reply brings the same
// news. A push is believed when the claim's own last answered call is at most
// half a wait lease old; else one confirming call is sent before the wait ends.
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
package engine
