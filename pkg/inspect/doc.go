// Package inspect says why a semaphore, a lock or a pool stands still, who is in the way, and what
// comes next by itself, in words for a person and in fields for a program; and which claims wait for
// each other in a circle. It goes by what one reading of a name tells, writes nothing, and knows no
// script.
//
// Nobody can see from Redis that a process has died, only that its renewals have stopped: see
// [Process]. How long a caller is ready to wait is not stored.
package inspect
