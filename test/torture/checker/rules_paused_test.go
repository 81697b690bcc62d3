package checker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A name is paused from 10 to 110 or 111, and somebody is granted it then.
const pausedStory = `
	10 w1 invoke pause#1 lasts=100
	11 w1 ok pause#1
	50 w2 invoke acquire#1
	52 w2 ok acquire#1 fence=51`

// Pauses: each story but the first differs in what decides.
func TestRulesOfPauses(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		broken     []string
	}{
		{"granted during a pause", pausedStory, []string{Paused}},
		{"granted before", `
			10 w1 invoke pause#1 lasts=100
			15 w1 ok pause#1
			10 w2 invoke acquire#1
			30 w2 ok acquire#1 fence=12`, nil},
		{"granted at its end", `
			10 w1 invoke pause#1 lasts=40
			11 w1 ok pause#1
			40 w2 invoke acquire#1
			52 w2 ok acquire#1 fence=50`, nil},
		{"of another name", strings.ReplaceAll(pausedStory, "acquire#1", "acquire#1 name=lock/other"), nil},
		{"it was not answered", `
			10 w1 invoke pause#1 lasts=100
			11 w1 unknown pause#1
			50 w2 invoke acquire#1
			52 w2 ok acquire#1 fence=51
			fault stopped 9 12`, nil},
		{"it was ended before", pausedStory + `
			40 w3 invoke unpause#1
			41 w3 ok unpause#1`, nil},
		{"it was ended since", pausedStory + `
			60 w3 invoke unpause#1
			61 w3 ok unpause#1`, []string{Paused}},
		{"an older call that was not answered may have ended it", pausedStory + `
			5 w3 invoke unpause#1
			7 w3 unknown unpause#1
			fault stopped 4 8`, nil},
		{"an older call that was answered has not", pausedStory + `
			5 w3 invoke unpause#1
			6 w3 ok unpause#1`, []string{Paused}},
		{"a shorter one was set since", pausedStory + `
			20 w3 invoke pause#1 lasts=10
			21 w3 ok pause#1`, nil},
		{"a re-entry", `
			1 w2 invoke acquire#1
			3 w2 ok acquire#1 fence=2
			10 w1 invoke pause#1 lasts=100
			11 w1 ok pause#1
			50 w2 invoke reenter#2
			52 w2 ok reenter#2 fence=2`, nil},
		{"the server has lost it", pausedStory + `
			fault flush 30 40 amnesia`, nil},
		{"the clock was ahead", pausedStory + `
			500 w3 invoke acquire#9 name=lock/z
			501 w3 ok acquire#9 fence=900 name=lock/z`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.broken, rulesOf(Check(story(t, tc.text))))
		})
	}
}
