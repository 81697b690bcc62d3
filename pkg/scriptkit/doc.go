// Package scriptkit is the only way from Go to the Lua scripts. It composes
// embedded scripts with their includes, reads their headers and holds the
// bodies to them, runs scripts, repeats them, reads their replies, and is the
// one place that turns what a server answers into errors.
//
// A script is a file at the root of the file system, with a header:
//
//	--[[
//	semaphore_acquire: take weight permits, or join the line.
//	KEYS[1] state (HASH field -> number)    KEYS[2] line (ZSET claim -> place)
//	ARGV[1] claim id    ARGV[2] lease (ms)
//	ARGV[3...] x2: claim id, place
//	RETURNS {"granted", fence, left_ms} | {"queued", ahead, next_ms}
//	  | {"listed", more, claim, ...}
//	REPLAY the same claim gets the same answer    COST O(log n)
//	]]
//	--- @include "lib/now"
//
// Params that share a line stand at least two spaces apart, and " -- " begins a
// remark. A key names its type first in its parentheses, and behind a semicolon
// another one that it may have. "ARGV[3...] x2" are groups of two from there on, any
// number of them. RETURNS names every reply: a status word, then the fields; a
// trailing "..." says that the fields before it repeat.
//
// # What scripts include
//
// The files in folders, at any depth, are no scripts: scripts and other such files
// include them. A file in a folder begins with a comment, and holds includes and
// definitions, but no other code:
//
//	-- The time of the server, in milliseconds.
//	--- @include "lib/int"
//	local second = 1000
//	local function now()
//	  local time = redis.call("TIME")
//	  return int(time[1]) * second + math.floor(time[2] / second)
//	end
//
// The composed script works as if all definitions stood before the script's own code, in
// the order of the files, by where each is first included. But a server takes 400 to 1300
// instructions for each function that a script makes, at every run. So the composed script
// has only the definitions that it needs: those that the script names, and those that a
// needed definition names. And each is made as late as it can be:
//
//   - A value of numbers, text, true, false, nil and operators is not made. It stands, in
//     parentheses, wherever it is named. A definition that is only another name for
//     something, as in local b = a, is not made either.
//   - A function that does nothing but return what is reckoned of its parameters, as int of
//     the example may be, is not made where its calls can do without: what it returns stands
//     in their place, with the arguments in it. Of string.format("%d", n), where n is known, the
//     text stands there.
//   - A function that only one other function needs is made inside of that one, each time
//     when that one runs.
//   - What is left is made right before the first part of the script that needs it; the
//     includes divide the script into parts. So a file may hold all that belongs together,
//     and a script may include behind a return what is seldom needed.
//
// Values of other kinds, tables for example, are made once. If their making reads or
// changes something, mind that this happens late.
//
// A parameter or local variable may have the name of a definition. A definition stays
// where that does not change what its own names mean. Refused is what cannot be kept
// right: to name a definition before it stands, to set it, to begin a statement with a
// value, and to name b of the example where a is a parameter or local variable.
//
// A file names something of each file that it includes; a script may also include a
// file for another file that names it. Two files of one script never define the same
// name. A script includes nothing inside of a block.
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
