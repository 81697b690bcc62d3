// Package berth holds what a user meets in all of Berth's primitives: the
// errors, the owner of a claim, the token of a detached hold, the shape that every
// handle shares, and what readings tell of names and claims.
//
// Berth coordinates processes over Redis or Valkey. A process makes one node, of
// pkg/node, and on it what it needs: pkg/semaphore is a strict-FIFO counting semaphore,
// pkg/qlock a lock with a line, re-entry by owner, and several names at once,
// pkg/allocator a pool of named resources with soft binding and rests,
// pkg/once a job that runs once in each period, pkg/leader an election.
//
// All follow one course: a claim asks for a name, waits in line, holds a
// lease, and hands on. This package imports nothing but the standard library.
package berth
