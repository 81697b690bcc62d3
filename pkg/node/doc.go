// Package node is what a process is to the other processes of a namespace: one id and one label, under which it waits, holds,
// is listed, drains and ends, whatever it locks, limits or leases.
//
// One Node carries all that a process holds: one heartbeat, one subscription, one reader of what operators say, one Close.
// The packages of what is held, qlock, semaphore and allocator, make their part of a Node.
package node
