package checker

import (
	"fmt"
	"strings"
	"testing"
)

// A name is paused from 10 to 110 or 111, and somebody is granted it then.
const pausedStory = `
	10..11 w1 ok pause#1 lasts=100
	50..52 w2 ok acquire#1 fence=51`

// Pauses: each story but the first differs in what decides.
func TestRulesOfPauses(t *testing.T) {
	tell(t, []tale{
		{"granted during a pause", pausedStory, []string{Paused}},
		{"granted before", `
			10..15 w1 ok pause#1 lasts=100
			10..30 w2 ok acquire#1 fence=12`, nil},
		{"granted at its end", `
			10..11 w1 ok pause#1 lasts=40
			40..52 w2 ok acquire#1 fence=50`, nil},
		{"of another name", strings.ReplaceAll(pausedStory, "acquire#1", "acquire#1 name=lock/other"), nil},
		{"it was not answered", `
			10..11 w1 unknown pause#1 lasts=100
			50..52 w2 ok acquire#1 fence=51
			fault stopped 9 12`, nil},
		{"it was ended before", pausedStory + "\n40..41 w3 ok unpause#1", nil},
		{"it was ended since", pausedStory + "\n60..61 w3 ok unpause#1", []string{Paused}},
		{"an older call that was not answered may have ended it", pausedStory + `
			5..7 w3 unknown unpause#1
			fault stopped 4 8`, nil},
		{"an older call that was answered has not", pausedStory + "\n5..6 w3 ok unpause#1", []string{Paused}},
		{"a shorter one was set since", pausedStory + "\n20..21 w3 ok pause#1 lasts=10", nil},
		{"a re-entry", `
			1..3 w2 ok acquire#1 fence=2
			10..11 w1 ok pause#1 lasts=100
			50..52 w2 ok reenter#2 fence=2`, nil},
		{"the server has lost it", pausedStory + "\nfault flush 30 40 amnesia", nil},
		{"the clock was ahead", pausedStory + "\n500..501 w3 ok acquire#9 name=lock/z fence=900", nil},
	})
}

// A hold of a lease of 100 ms is wanted from 20 on, and lives on without knowing it.
const wantedStory = `
	1..3 w1 ok acquire#1 lease=100 fence=2 claim=a
	20..21 w2 ok want#1 claim=a
	60 w1 alive of#1
	100 w1 alive of#1
	130 w1 alive of#1
	200 w1 alive of#1
	270 w1 alive of#1
	340 w1 alive of#1
	410 w1 alive of#1`

// Wants: each story but the first differs in what decides.
func TestRulesOfWants(t *testing.T) {
	tell(t, []tale{
		{"never told", wantedStory, []string{Wanted}},
		{"told", wantedStory + "\n131 w1 wanted of#1", nil},
		{"told too late", wantedStory + "\n411 w1 wanted of#1", []string{Wanted}},
		{"of another hold", strings.ReplaceAll(wantedStory, "want#1 claim=a", "want#1 claim=b"), nil},
		{"all of the name", strings.NewReplacer("want#1 claim=a", "want#1").Replace(wantedStory), []string{Wanted}},
		{"all of the name, but before it came", strings.NewReplacer(
			"20..21 w2 ok want#1 claim=a", "2..21 w2 ok want#1").Replace(wantedStory), nil},
		{"it was refused", strings.ReplaceAll(wantedStory, "ok want", "fail want"), nil},
		{"it was not answered", strings.ReplaceAll(wantedStory, "ok want", "unknown want") + "\nfault cut 19 22", nil},
		{"it was extended", wantedStory + "\n25..26 w1 ok extend#2 of#1", nil},
		{"the server has lost it", wantedStory + "\nfault flush 30 40 amnesia", nil},
		{"nobody wants it", `
			1..3 w1 ok acquire#1 fence=2 claim=a
			20 w1 alive of#1
			21 w1 wanted of#1`, []string{Wanted}},
		{"it was wanted only later", `
			1..3 w1 ok acquire#1 fence=2 claim=a
			20 w1 alive of#1
			21 w1 wanted of#1
			25..26 w2 ok want#1 claim=a`, []string{Wanted}},
		{"the name was, before it came", `
			1..2 w2 ok want#1
			5..6 w1 ok acquire#1 fence=5 claim=a
			20 w1 alive of#1
			21 w1 wanted of#1`, []string{Wanted}},
		{"the name was, and nobody knows by when", `
			1..2 w2 unknown want#1
			5..6 w1 ok acquire#1 fence=5 claim=a
			20 w1 alive of#1
			21 w1 wanted of#1
			fault cut 0 3`, nil},
	})
}

// The node of w1 is drained, by 50. It has held a pool's resource since before, with a lease of 100 ms, and gives it back in time;
// nothing is granted to it then.
const drainedStory = `
	1..3 w1 ok acquire#1 crew=1 name=pool/x lease=100 fence=2
	20..50 w1 ok drain#2 crew=1 bounded
	30 w1 alive of#1 name=pool/x
	40..41 w1 ok release#3 of#1 name=pool/x
	60..61 w1 fail acquire#4 crew=1 reason=draining`

// Drains: each story but the first differs in what decides.
func TestRulesOfDrains(t *testing.T) {
	granted := strings.NewReplacer("fail acquire#4", "ok acquire#4", "reason=draining", "fence=60").Replace(drainedStory)
	believed := strings.Replace(drainedStory, "40..41 w1 ok", "160 w1 alive of#1 name=pool/x\n165..166 w1 ok", 1)
	waited := `
		1..3100 w1 fail acquire#1 crew=1 reason=draining
		20..2000 w1 ok drain#2 crew=1 bounded`
	tell(t, []tale{
		{"all is given back", drainedStory, nil},
		{"something is granted", granted, []string{Drained}},
		{"a kind that was not drained is granted", strings.Replace(granted, "acquire#4", "acquire#4 name=sem/y", 1), []string{Drained}},
		{"to another node", strings.Replace(granted, "acquire#4 crew=1", "acquire#4 crew=2", 1), nil},
		{"by another process", strings.Replace(granted, "w1 ok acquire#4", "w2 ok acquire#4", 1), nil},
		{"the drain has failed", strings.Replace(granted, "ok drain", "unknown drain", 1), nil},
		{"the drain was taken back", granted + "\n55..56 w1 ok stop-drain#5 crew=1", nil},
		{"the drain is taken back later", granted + "\n65..66 w1 ok stop-drain#5 crew=1", []string{Drained}},
		{"the server has lost the drain", granted + "\nfault flush 30 40 amnesia", nil},
		{"something is held", believed, []string{Drained}},
		{"something may be held", strings.Replace(believed, "160 w1 alive", "152 w1 alive", 1), nil},
		{"something is held that was extended", believed + "\n25..26 w1 ok extend#5 of#1 name=pool/x", nil},
		{"something is held that the server has lost", believed + "\nfault flush 30 40 amnesia", nil},
		{"somebody waits on", waited + works(0, 4000), []string{Drained}},
		{"somebody waits on in a process that was stopped", waited + works(0, 1500) + works(2500, 4000), nil},
		{"somebody waited", strings.Replace(waited, "3100", "2900", 1) + works(0, 4000), nil},
		{"nobody has asked for it", strings.ReplaceAll(drainedStory, "drain#2 crew=1", "drain#2 crew=2"), []string{Drained}},
		{"nobody has asked for it yet", `
			1..2 w1 fail acquire#1 crew=1 reason=draining
			3..9 w1 ok drain#2 crew=1`, []string{Drained}},
		{"what is held is wanted back by it", drainedStory + "\n31 w1 wanted of#1 name=pool/x", nil},
		{"what is held is wanted back before", drainedStory + `
			10 w1 alive of#1 name=pool/x
			11 w1 wanted of#1 name=pool/x`, []string{Wanted}},
		{"a wait was ended by it", `
			1..30 w1 unknown acquire#1 crew=1 reason=gone
			20..50 w1 ok drain#2 crew=1 bounded`, nil},
		{"a wait was ended by nobody", "1..30 w1 unknown acquire#1 crew=1 reason=gone", []string{Unharmed}},
	})
}

// works has a process write something all the time.
func works(from, to int) string {
	var b strings.Builder
	for at := from; at <= to; at += 30 {
		fmt.Fprintf(&b, "\n%d w1 trouble", at)
	}
	return b.String()
}

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
