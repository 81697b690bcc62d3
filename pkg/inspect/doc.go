// Package inspect reads what Berth stores of semaphores, locks and pools alike: who holds, who waits, for
// how long. It says why one of them stands still, who is in the way, and what comes next by itself, in
// words for a person and in fields for a program; and which claims wait for each other in a cycle. It writes
// nothing and knows no script. What it tells was so a moment ago: others may have moved since.
//
// Nobody can see from Redis that a process has died, only that its renewals have stopped: see
// [Process]. How long a caller is ready to wait is not stored.
package inspect
