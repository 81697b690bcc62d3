// Package act is what an operator does from a page or from a terminal: release, ask back, pause, unpause, resize, rest, drain. An
// [Action] says first what it will do, and is then a call of the operators of semaphores, locks and pools: the same that
// the command line makes. It leaves an event that says who has done what, and why.
package act
