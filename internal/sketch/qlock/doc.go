// Package qlock is the sketch of pkg/qlock: a lock with a line over Redis or
// Valkey, queued or random, with reentrancy by strategy. Signatures only;
// deleted when that package lands.
package qlock
