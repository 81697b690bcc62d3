// Package berth has the types that all of Berth's primitives share: the errors, the
// owner of a claim, the token of a detached hold, the interfaces of handles, and the
// readings of names and claims.
//
// Berth coordinates processes over Redis or Valkey. A process makes one node, of
// pkg/node, and uses these packages on it:
//
//   - pkg/semaphore: a counting semaphore, first come, first served
//   - pkg/qlock: a lock with a line of waiters, re-entry by owner, and several names at once
//   - pkg/allocator: a pool of named resources with bindings and rests
//   - pkg/once: a job that runs once in each period
//   - pkg/leader: an election
//
// In all of them a claim asks for a name, waits in line, holds a lease, and hands the
// place on to the next claim. This package imports only the standard library.
package berth
