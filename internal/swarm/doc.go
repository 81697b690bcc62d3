// Package swarm lets the nodes of a namespace watch each other, so that what a
// dead node holds ends before its leases do. It knows nodes and names, and no
// locks: what a name holds, and how a claim is ended, it is given as a [Line].
//
// # Model
//
//	          Start                 no probe confirmed before the horizon,
//	outside ---------> in the swarm ---------------------------------------+
//	   ^                 |    ^                    or found condemned      |
//	   |      Stop       |    |                                            v
//	   +-----------------+    +-------- first probe ------- a new id <- Replace
//
// A node in the swarm probes every ProbeEvery. On the server its probe is a
// deadline like any other: once ZombieAfter has passed since the last one, the
// node is dead, and no later probe revives it. ZombieAfter is the node's own, and
// travels with each probe: that of whoever looks on plays no part. Whoever flushes
// condemns a dead node first, in one script that looks at the deadline again; only
// then are its claims removed, each by a script that compares the claim's node. A condemned id
// is remembered for 24 hours, and never probes again.
//
// # The horizon
//
// The node knows the same deadline from its side: the start of its last confirmed
// probe, plus ZombieAfter, less the margin of heartbeat.Margin. When that horizon
// passes, the node is replaced by one with a new id, at that moment, whatever is in
// flight. So its handles have ended before anybody may flush what they stand for.
// The horizon is in force from before the first probe is sent until it is known
// that the node has left, or that no probe of its ever ran.
//
// # A list that is lost
//
// The list of nodes lies in one slot, what they hold in others, so the server may lose
// a node and keep its holds. One without end says on the server that its node is in
// the swarm, and with which ZombieAfter: from when a probe of the node was confirmed
// until the node is about to leave, see [Swarm.Limit] and Config.Leaving. A flush that
// finds one of a node that is not in the list enters the node as if it had probed now.
// So it has its own ZombieAfter to probe, by the server's clock, and is then condemned
// like any other. Whoever finds out by its own probe that the list was lost looks for
// such holds with its next flush; else one looks with its first flush, and once an
// hour.
//
// # Calls that are not answered
//
// Calls of one node are sent one after the other. A probe that was not answered
// may still run when the node has left; so leave then puts down a tombstone with
// the number of the run that has ended, and probes of it count nothing. Where it
// cannot be learned whether the node has left, its handles must end: it is
// replaced.
package swarm
