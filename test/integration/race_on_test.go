//go:build race

package integration

// leastOfBare is how much of a bare loop's speed sixteen waiters must have: the race
// detector makes the processes' own part of a hand-off several times as long.
const leastOfBare = 0.55
