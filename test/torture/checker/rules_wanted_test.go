package checker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A hold of a lease of 100 ms is wanted from 20 on, and lives on without knowing it.
const wantedStory = `
	1 w1 invoke acquire#1 lease=100
	3 w1 ok acquire#1 fence=2 claim=a lease=100
	20 w2 invoke want#1 claim=a
	21 w2 ok want#1 claim=a
	60 w1 alive of#1
	100 w1 alive of#1
	130 w1 alive of#1
	200 w1 alive of#1
	270 w1 alive of#1
	340 w1 alive of#1
	410 w1 alive of#1`

// Wants: each story but the first differs in what decides.
func TestRulesOfWants(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		broken     []string
	}{
		{"never told", wantedStory, []string{Wanted}},
		{"told", wantedStory + `
			131 w1 wanted of#1`, nil},
		{"told too late", wantedStory + `
			411 w1 wanted of#1`, []string{Wanted}},
		{"of another hold", strings.ReplaceAll(wantedStory, "claim=a\n\t2", "claim=b\n\t2"), nil},
		{"all of the name", strings.NewReplacer("want#1 claim=a", "want#1").Replace(wantedStory), []string{Wanted}},
		{"all of the name, but before it came", strings.NewReplacer(
			"20 w2 invoke want#1 claim=a", "2 w2 invoke want#1", "want#1 claim=a", "want#1").Replace(wantedStory), nil},
		{"it was refused", strings.ReplaceAll(wantedStory, "ok want", "fail want"), nil},
		{"it was not answered", strings.ReplaceAll(wantedStory, "ok want", "unknown want") + `
			fault cut 19 22`, nil},
		{"it was extended", wantedStory + `
			25 w1 invoke extend#2 of#1
			26 w1 ok extend#2 of#1`, nil},
		{"the server has lost it", wantedStory + `
			fault flush 30 40 amnesia`, nil},
		{"nobody wants it", `
			1 w1 invoke acquire#1
			3 w1 ok acquire#1 fence=2 claim=a
			20 w1 alive of#1
			21 w1 wanted of#1`, []string{Wanted}},
		{"it was wanted only later", `
			1 w1 invoke acquire#1
			3 w1 ok acquire#1 fence=2 claim=a
			20 w1 alive of#1
			21 w1 wanted of#1
			25 w2 invoke want#1 claim=a
			26 w2 ok want#1 claim=a`, []string{Wanted}},
		{"the name was, before it came", `
			1 w2 invoke want#1
			2 w2 ok want#1
			5 w1 invoke acquire#1
			6 w1 ok acquire#1 fence=5 claim=a
			20 w1 alive of#1
			21 w1 wanted of#1`, []string{Wanted}},
		{"the name was, and nobody knows by when", `
			1 w2 invoke want#1
			2 w2 unknown want#1
			5 w1 invoke acquire#1
			6 w1 ok acquire#1 fence=5 claim=a
			20 w1 alive of#1
			21 w1 wanted of#1
			fault cut 0 3`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.broken, rulesOf(Check(story(t, tc.text))))
		})
	}
}
