// Package model runs the semaphore against a plain model of it, as a rapid state
// machine at the level of the API: some processes with leases of their own
// acquire, wait, cancel, release, renew, detach, resume and resize, some die, time
// passes, the server forgets. After every step the two keys of the name are read,
// and what they say is compared with the laws and with the model.
//
// It works in virtual time, where the model knows every deadline to the
// millisecond, and on a real server, where it holds to what one look at the server
// proves whatever the machine was busy with.
//
// Here and below are models only, of semaphores and, in pool, of pools; what tests stand on
// is in internal/testkit. Package fast compares each plain case of a script with the general
// way, on a name and its twin.
package model
