// Package scriptkit is the only way from Go to the Lua scripts. It runs scripts, repeats
// them, reads their replies, and is the one place that turns what a server answers into
// errors. What a script takes and answers is declared by [Script]: a call with another
// number of keys or arguments is refused, and so is an answer with another status.
//
// # How a call is repeated
//
// Every script can be replayed, so a call is repeated when the server answers
// that it did not run it for now, and when nobody answers. The second kind leaves
// doubt, and [Reply.Unanswered] and [Error.MaybeRan] keep it. [Refusals] has the
// answers that pass so; all others are final.
//
// A replica goes on answering READONLY on the connections that lead to it, while the
// address of a managed server, a proxy or a Kubernetes service leads new ones to its
// successor. So where a client of one server (rueidis.ClientModeStandalone) is answered
// READONLY or MASTERDOWN for 0.8 s, a Runner breaks the connections that the
// rueidis client multiplexes, all together, by QUIT; again after 2 s if that did not
// help, then less often, each minute at the least. What else is under way on them is
// answered by an error of the network. Runners of one rueidis client do this
// once for all of them. Options.KeepConnections switches it off. Dedicated connections,
// and those of ClientOption.DisableAutoPipelining that are in use, stay.
//
// Scripts are never marked retryable in rueidis, because then nobody would know
// which of them may have run unanswered. What rueidis does by itself, as of
// v1.0.79:
//
//   - Its cluster client follows MOVED and ASK, for any command. TRYAGAIN,
//     CLUSTERDOWN and LOADING it repeats for retryable commands only; for ours it
//     asks for the slots anew in the background and hands the answer on.
//   - A connection that outlives ClientOption.ConnLifetime while commands are on
//     it has them sent again on another one, whatever they are. They were
//     answered before, unless the server stood still for a second; then a script
//     may run twice and nobody is told. Nothing here needs ConnLifetime.
//   - ErrClosing is answered by a closed client, and also on a connection that a
//     failover replaced. So it is final only when an attempt that starts two
//     seconds after the first one gets it too, and nothing else came in between.
//   - The end of a ctx with a deadline is noticed late if the call is alone on its
//     connection: at that deadline, even if the ctx is cancelled before.
//   - A connection takes 1024 commands. If that many are in flight to a server
//     that does not answer, the next ones wait for room, whatever their ctx says,
//     until the connection is closed: after ClientOption.Dialer.KeepAlive +
//     ConnWriteTimeout, 11 s by default (5000 calls at once to a stopped server
//     took 11.5 s instead of CallTimeout). A shorter ConnWriteTimeout bounds it.
package scriptkit
