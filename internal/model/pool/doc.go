// Package pool runs the scripts of a pool of resources against a plain model of it, as
// a rapid state machine: some nodes acquire, release, renew, swap, repeat their calls
// and mix them up, resources are added, removed, replaced, rested and bound, time
// passes, the server forgets. After every step all keys of the pool are read, and what
// they say is compared with the model, to the millisecond, and with the laws.
//
// It needs a clock that stands still between two steps: that of a bubble of
// testing/synctest for the embedded server, and [Clock] for a real one.
package pool
