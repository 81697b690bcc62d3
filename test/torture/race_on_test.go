//go:build race

package torture

// raceFlags have the workers built with the race detector too.
var raceFlags = []string{"-race"}
