//go:build race

package torture

// raceEnabled says that the workers are built with the race detector too.
const raceEnabled = true
