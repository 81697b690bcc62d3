// Package torture uses all three primitives from several processes, each of them by nodes that
// carry all three, while a nemesis breaks the network, the server and the processes, and then reads what each of
// them has written down: was ever more held than there is, was anybody passed, was
// anything lost. `make torture` runs it and prints a table of faults against
// guarantees; docs/why-trust.md has ours.
//
// The way through it: a run is rounds (round_test.go), each on one topology, with
// worker processes (worker_test.go; their program is in the folder worker, their
// order in job) and faults (nemesis_test.go). Each worker writes a history (folder
// history); the checker (folder checker) reads them all, and an audit
// (audit_test.go) looks at what is left on the server. Broken variants of the
// library, which the checker must catch, are in mutant_test.go; broken_test.go builds
// the one program that plays them all.
package torture
