package state

import (
	"fmt"
	"regexp"

	"github.com/berth-go/berth"
)

// The scores of a swarm's probes; see scripts/swarm/open.lua. Below are those of nodes that probe.
const (
	Condemned = Width
	Left      = 2 * Width
)

// swarmFormat is the format of a swarm that this release knows.
const swarmFormat = 2

// Node is what is stored of a node of a swarm; see scripts/swarm/member.lua.
type Node struct {
	Ends  int64 // since when it was dead, if it is condemned (ms), else 0
	Limit int64 // its own zombie limit (ms)
	Label string
}

var nodeText = regexp.MustCompile(`(?s)^\d+ (\d+) (\d+) (.*)$`)

// ParseNode reads it. ok is false for a text that is none.
func ParseNode(text string) (n Node, ok bool) {
	words := nodeText.FindStringSubmatch(text)
	if words == nil || len(words[3]) > MaxText || !numbers(words[1:3], &n.Ends, &n.Limit) {
		return Node{}, false
	}
	n.Label = words[3]
	return n, true
}

// CheckSwarm returns the error of a swarm whose field fmt says a format that this release does not know.
func CheckSwarm(format string) error {
	var number int64
	if numbers([]string{formatText.FindString(format)}, &number) && (number == 0 || number == swarmFormat) {
		return nil
	}
	return IncompatibleSwarm(number)
}

// IncompatibleSwarm is that error.
func IncompatibleSwarm(format int64) error {
	return fmt.Errorf("%w: the swarm has format %d, which this release does not know", berth.ErrIncompatible, format)
}
