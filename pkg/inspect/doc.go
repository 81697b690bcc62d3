// Package inspect reads what Berth stores, and explains it: who holds, who waits, for how long, and why a name
// stands still.
//
// # Model
//
// A [Reader] reads one namespace with plain Redis commands. A reading changes nothing: no script runs, nothing is swept,
// and an expired claim is left out by the server's clock. A name is read by a few commands. If the name changes between
// them, it is read again, three times in all, and then says that it is Moving. Whatever a caller sees was so a moment ago;
// readings of several names are of several moments.
//
//   - A name has holds and waiting claims. [Process] says how far a claim's renewals tell whether its process lives. A
//     claim that should have been seen by now is overdue.
//   - An [Explanation] says why a name stands still: its reasons, its blockers (holds and waits in the way), and a
//     forecast, the next change that comes by itself. It has words for a person and fields for a program.
//   - A [Cycle] is a set of claims that wait for holds of each other. An actor (an owner, or less surely a node or a
//     label) joins its waits with its holds. A name that one reading puts into a cycle is a suspect until a second reading agrees.
//
// Redis does not show that a process has died, only that its renewals have stopped. Redis does not know for how long a caller
// is ready to wait either.
package inspect
