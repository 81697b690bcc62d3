package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/torture/history"
)

// The node of w1 is drained, by 50. It has held a pool's resource since before, with a lease of 100 ms, and gives it back in time;
// nothing is granted to it then.
const drainedStory = `
	1 w1 invoke acquire#1 crew=1 name=pool/x lease=100
	3 w1 ok acquire#1 fence=2 name=pool/x lease=100
	20 w1 invoke drain#2 crew=1 bounded
	30 w1 alive of#1 name=pool/x
	40 w1 invoke release#3 of#1 name=pool/x
	41 w1 ok release#3 of#1 name=pool/x
	50 w1 ok drain#2
	60 w1 invoke acquire#4 crew=1
	61 w1 fail acquire#4 reason=draining`

// Drains: each story but the first differs in what decides.
func TestRulesOfDrains(t *testing.T) {
	granted := strings.NewReplacer("fail acquire#4 reason=draining", "ok acquire#4 fence=60").Replace(drainedStory)
	believed := strings.NewReplacer("40 w1 invoke release#3", "160 w1 alive of#1 name=pool/x\n165 w1 invoke release#3", "41 w1 ok release#3",
		"166 w1 ok release#3").Replace(drainedStory)
	waited := `
		1 w1 invoke acquire#1 crew=1
		20 w1 invoke drain#2 crew=1 bounded
		2000 w1 ok drain#2
		3100 w1 fail acquire#1 reason=draining`
	for _, tc := range []struct {
		name, text string
		broken     []string
	}{
		{"all is given back", drainedStory, nil},
		{"something is granted", granted, []string{Drained}},
		{"a kind that was not drained is granted", strings.NewReplacer("acquire#4 crew=1", "acquire#4 crew=1 name=sem/y", "fence=60",
			"fence=60 name=sem/y").Replace(granted), []string{Drained}},
		{"to another node", strings.Replace(granted, "acquire#4 crew=1", "acquire#4 crew=2", 1), nil},
		{"by another process", strings.NewReplacer("w1 invoke acquire#4", "w2 invoke acquire#4", "w1 ok acquire#4",
			"w2 ok acquire#4").Replace(granted), nil},
		{"the drain has failed", strings.Replace(granted, "ok drain", "unknown drain", 1), nil},
		{"the drain was taken back", granted + `
			55 w1 invoke stop-drain#5 crew=1
			56 w1 ok stop-drain#5`, nil},
		{"the drain is taken back later", granted + `
			65 w1 invoke stop-drain#5 crew=1
			66 w1 ok stop-drain#5`, []string{Drained}},
		{"the server has lost the drain", granted + `
			fault flush 30 40 amnesia`, nil},
		{"something is held", believed, []string{Drained}},
		{"something may be held", strings.Replace(believed, "160 w1 alive", "152 w1 alive", 1), nil},
		{"something is held that was extended", believed + `
			25 w1 invoke extend#5 of#1 name=pool/x
			26 w1 ok extend#5 of#1 name=pool/x`, nil},
		{"something is held that the server has lost", believed + `
			fault flush 30 40 amnesia`, nil},
		{"somebody waits on", waited + works(0, 4000), []string{Drained}},
		{"somebody waits on in a process that was stopped", waited + works(0, 1500) + works(2500, 4000), nil},
		{"somebody waited", strings.Replace(waited, "3100", "2900", 1) + works(0, 4000), nil},
		{"nobody has asked for it", strings.ReplaceAll(drainedStory, "drain#2 crew=1", "drain#2 crew=2"), []string{Drained}},
		{"nobody has asked for it yet", `
			1 w1 invoke acquire#1 crew=1
			2 w1 fail acquire#1 reason=draining
			3 w1 invoke drain#2 crew=1
			9 w1 ok drain#2`, []string{Drained}},
		{"what is held is wanted back by it", drainedStory + `
			31 w1 wanted of#1 name=pool/x`, nil},
		{"what is held is wanted back before", drainedStory + `
			10 w1 alive of#1 name=pool/x
			11 w1 wanted of#1 name=pool/x`, []string{Wanted}},
		{"a wait was ended by it", `
			1 w1 invoke acquire#1 crew=1
			20 w1 invoke drain#2 crew=1 bounded
			30 w1 unknown acquire#1 reason=gone
			50 w1 ok drain#2`, nil},
		{"a wait was ended by nobody", `
			1 w1 invoke acquire#1 crew=1
			30 w1 unknown acquire#1 reason=gone`, []string{Unharmed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run := story(t, tc.text)
			slices.SortStableFunc(run.Events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
			require.Equal(t, tc.broken, rulesOf(Check(run)))
		})
	}
}

// works has a process write something all the time.
func works(from, to int) string {
	var b strings.Builder
	for at := from; at <= to; at += 30 {
		fmt.Fprintf(&b, "\n%d w1 trouble", at)
	}
	return b.String()
}
