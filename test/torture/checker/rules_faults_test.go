package checker

import (
	"strings"
	"testing"
)

// A hold of 200 ms is lost 180 ms after an endpoint has begun to move. Its process writes all the time.
const keptStory = `
	0..2 w1 ok acquire#1 lease=200 fence=1 alive=50,100,150,200
	230 w1 ended of#1 is=lost
	fault moved 50 120 keeps=200`

// A wait ends by an error while a server refuses. Its node was answered before.
const refusedStory = `
	0..1 w1 ok look#1 node=a
	20..40 w1 unknown acquire#2 node=a err=MISCONF
	fault refused 10 60 passes`

var drainedWait = strings.ReplaceAll(strings.ReplaceAll(refusedStory, "acquire#2 node=a", "acquire#2 node=a crew=1"), "err=MISCONF", "reason=gone")

// A hold without end is given back, the server loses that, and has it at the end of the fault.
const returnedStory = `
	20..22 w1 ok acquire#1 endless node=a fence=21 claim=x
	23 w1 alive of#1
	30..31 w1 ok release#2 of#1
	fault restart 10 9000 lost=50 amnesia shown=x`

// Each story differs from the first of its rule in what decides.
func TestRulesOfFaults(t *testing.T) {
	tell(t, []tale{
		{"a hold is lost through what it must outlast", keptStory, []string{Kept}},
		{"what it must outlast met another name", keptStory + " names=pool:{x},lock:{y}", []string{Kept}},
		{"what it must outlast met its name", keptStory + " names=pool:{y},lock:{x}", nil},
		{"its lease is shorter", strings.ReplaceAll(keptStory, "lease=200", "lease=199"), nil},
		{"it does not renew", strings.ReplaceAll(keptStory, "lease=200", "lease=200 fixed"), nil},
		{"the machine stood still meanwhile", strings.ReplaceAll(keptStory, " keeps=200", ""), nil},
		{"its node was closed", strings.ReplaceAll(keptStory, "is=lost", "is=lost,closed"), nil},
		{"another fault met it as well", keptStory + "\nfault stopped 130 140 w1", nil},
		{"another fault met somebody else", keptStory + "\nfault stopped 130 140 w2", []string{Kept}},
		{"another fault that nobody may notice", keptStory + "\nfault flushed 130 140 unseen", []string{Kept}},
		{"its process was silent", `
			0..2 w1 ok acquire#1 lease=2000 fence=1 alive=50
			400 w1 ended of#1 is=lost
			fault moved 50 120 keeps=2000`, nil},
		{"it came only afterwards", strings.ReplaceAll(keptStory, "fault moved 50", "fault moved 1"), nil},

		{"a refusal that passes ends a wait", refusedStory, []string{Outlasts}},
		{"its caller had bounded it", strings.ReplaceAll(refusedStory, "acquire#2", "acquire#2 bounded"), nil},
		{"another node was answered", strings.ReplaceAll(refusedStory, "look#1 node=a", "look#1 node=b"), nil},
		{"its node was closed meanwhile", strings.ReplaceAll(refusedStory, "err=MISCONF", "is=closed"), nil},
		{"its grant was lost before it could be confirmed", strings.ReplaceAll(refusedStory, "err=MISCONF", "is=lost"), nil},
		{"its node was drained, and had not heard of that", drainedWait + `
			30 w1 invoke drain#3 crew=1
			41 w1 unknown drain#3 crew=1`, nil},
		{"its wait was ended, and nobody had drained its node", drainedWait, []string{Outlasts}},
		{"another fault", strings.ReplaceAll(refusedStory, " passes", ""), nil},

		{"a lost release stays", returnedStory, []string{Returned}},
		{"it was asked again", strings.ReplaceAll(returnedStory, " shown=x", ""), nil},
		{"its release was not answered", strings.ReplaceAll(returnedStory, "ok release#2", "unknown release#2"), nil},
		{"it has a lease", strings.ReplaceAll(returnedStory, "endless", "lease=60000"), nil},
		{"its node was closed", returnedStory + "\n4000 w1 closed node=a", nil},
		{"its process was killed", returnedStory + "\nfault killed 3000 3000 w1 kills", nil},
	})
}
