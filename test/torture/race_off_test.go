//go:build !race

package torture

var raceFlags []string
