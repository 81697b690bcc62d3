//go:build !race

package integration

// leastOfBare is how much of a bare loop's speed sixteen waiters must have.
const leastOfBare = 0.7
