package top

// helpLines are all keys.
var helpLines = []string{
	"Everywhere",
	"  up down j k, pgup pgdn space, home end g G   move",
	"  enter opens, esc goes back, c cycles, N nodes, ? help, q or ctrl-c ends",
	"Names",
	"  tab one kind, s another order, / filter, a all names in use",
	"  ! only what is stuck: it stays so until somebody mends it",
	"  > < the next and the last page of all names, . reads it again",
	"A name",
	"  enter all of the selected claim, x the whole explanation, with what mends it",
	"  n the node of the selected claim, with all its claims",
	"What is done: each key asks for what it needs, says what it will do,",
	"and does it when y is typed. It is about what was selected then.",
	"  r release the selected claim     w ask for the selected hold back",
	"  p pause, u unpause the name",
	"  z set a semaphore's capacity     t let the pool's resource rest",
	"  d drain the node of the claim    D end that drain; in the list, the drain above it",
	"A + at an end: something was cut off. WAITED is the longest wait, AGE how",
	"old a row itself is, LEFT what is left of a lease, of a rest, or of a place in",
	"line if nothing is heard of the process.",
	"Dead ones may be among who waits until somebody meets them.",
}

// help draws them.
func help(p paper, height int) []string {
	var lines []string
	for _, line := range helpLines {
		lines = append(lines, p.wrap(line, p.width)...)
	}
	return p.few(lines, height, p.width)
}
