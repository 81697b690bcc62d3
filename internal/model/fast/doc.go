// Package fast compares each plain case of a script with the general way. It takes a name through a
// random history. Each call is made on the name, by the scripts as they are, and on a copy of it, its
// twin, by scripts that never take a plain case. Both reply, publish and keep the same, fences too.
//
// It needs a clock that stands still between two steps, as package pool does.
package fast
