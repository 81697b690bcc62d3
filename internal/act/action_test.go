package act

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestWhatCannotBeDoneIsRefusedByTheNameOfItsField(t *testing.T) {
	for field, a := range map[string]Action{
		"verb":        {Verb: "sweep", Kind: keyspace.Sem, Name: "gpu"},
		"kind":        {Verb: Pause, Kind: "queue", Name: "gpu", For: time.Second},
		"name":        {Verb: Pause, Kind: keyspace.Sem, For: time.Second},
		"claim":       {Verb: Release, Kind: keyspace.Sem, Name: "gpu"},
		"for":         {Verb: Pause, Kind: keyspace.Sem, Name: "gpu"},
		"for ":        {Verb: Pause, Kind: keyspace.Sem, Name: "gpu", For: MaxPause + 1},
		"for  ":       {Verb: Rest, Kind: keyspace.Pool, Name: "gpu", Resource: "a", For: -1, Reason: "x"},
		"kind ":       {Verb: Resize, Kind: keyspace.Lock, Name: "gpu", Capacity: 2},
		"kind  ":      {Verb: Rest, Kind: keyspace.Sem, Name: "gpu", Resource: "a"},
		"capacity":    {Verb: Resize, Kind: keyspace.Sem, Name: "gpu"},
		"resource":    {Verb: Rest, Kind: keyspace.Pool, Name: "gpu"},
		"reason":      {Verb: Rest, Kind: keyspace.Pool, Name: "gpu", Resource: "a", For: time.Second},
		"reason ":     {Verb: Unpause, Kind: keyspace.Sem, Name: "gpu", Reason: strings.Repeat("x", 513)},
		"reason  ":    {Verb: Drain, Node: "n", Reason: strings.Repeat("x", 513)},
		"node":        {Verb: Drain},
		"node ":       {Verb: Undrain, Node: "n", Label: "l"},
		"force":       {Verb: Drain, Node: "n", ForceAfter: time.Minute},
		"force-after": {Verb: Drain, Node: "n", Force: true},
	} {
		err := a.Check()
		require.ErrorIs(t, err, berth.ErrInvalidConfig, field)
		var wrong *berth.ConfigError
		require.ErrorAs(t, err, &wrong, field)
		require.Equal(t, strings.TrimSpace(field), wrong.Field, err)
	}
}

func TestAnActionSaysBeforeWhatItWillDoAndAfterwardsWhoDidItAndWhy(t *testing.T) {
	sem := func(a Action) Action { a.Kind, a.Name = keyspace.Sem, "gpu"; return a }
	for _, test := range []struct {
		action     Action
		will, told string
	}{
		{
			sem(Action{Verb: Release, Claim: "n.1", Reason: "it hangs"}),
			`Release claim "n.1" of semaphore "gpu" by force. If it holds, the first in line gets what comes free; its process is told, and until it has heard, two may be inside. If it waits, it leaves the line.`,
			`release by "ann": "it hangs"`,
		},
		{
			sem(Action{Verb: Pause, For: 10 * time.Minute}),
			`Pause semaphore "gpu" for 10m00s. Nothing is granted; who holds goes on, who waits keeps its place.`, `pause for 10m00s by "ann"`,
		},
		{
			sem(Action{Verb: Unpause}),
			`End the pause of semaphore "gpu". The first in line gets what is free at once.`, `unpause by "ann"`,
		},
		{
			sem(Action{Verb: Resize, Capacity: 4}),
			`Set the capacity of semaphore "gpu" to 4, until it is idle and forgotten. Less than is held takes nothing away: nothing is granted until enough is given back.`, `resize to 4 by "ann"`,
		},
		{
			sem(Action{Verb: Resize, Capacity: 4, Keep: true}),
			`Set the capacity of semaphore "gpu" to 4, for good. Less than is held takes nothing away: nothing is granted until enough is given back.`, `resize to 4 by "ann"`,
		},
		{
			Action{Verb: Rest, Kind: keyspace.Pool, Name: "mail", Resource: "a@\n", For: time.Minute, Reason: "429"},
			`Let resource "a@\n" of pool "mail" rest for 1m00s: nobody gets it. If it is leased, the rest begins with its release.`, `rest for 1m00s by "ann": "429"`,
		},
		{
			Action{Verb: Rest, Kind: keyspace.Pool, Name: "mail", Resource: "a", For: berth.Forever, Reason: "429"},
			`Let resource "a" of pool "mail" rest until somebody ends it: nobody gets it. If it is leased, the rest begins with its release.`, `rest without end by "ann": "429"`,
		},
		{
			Action{Verb: Rest, Kind: keyspace.Pool, Name: "mail", Resource: "a"}, `End the rest of resource "a" of pool "mail".`, `rest ends by "ann"`,
		},
		{
			Action{Verb: Drain, Label: "worker/*", For: time.Hour, Force: true, ForceAfter: time.Minute},
			`Drain all processes whose label begins with "worker/": new claims are refused within 5 s, what they wait for is cancelled, what they hold is asked back. What is left after 1m00s is ended by force. The drain ends by itself in 1h00m.`,
			`drain all processes whose label begins with "worker/" for 1h00m by "ann"`,
		},
		{
			Action{Verb: Drain, Node: "abc"},
			`Drain node "abc": new claims are refused within 5 s, what they wait for is cancelled, what they hold is asked back. This goes on until nothing is left. The drain lasts until somebody ends it.`,
			`drain node "abc" by "ann"`,
		},
		{
			Action{Verb: Drain, Label: "*"},
			`Drain all processes of the namespace: new claims are refused within 5 s, what they wait for is cancelled, what they hold is asked back. This goes on until nothing is left. The drain lasts until somebody ends it.`,
			`drain all processes of the namespace by "ann"`,
		},
		{
			Action{Verb: Undrain, Label: "abc"}, `End the drain of label "abc": they work again within 5 s.`, `undrain label "abc" by "ann"`,
		},
		{Action{Verb: Undrain, Node: "abc"}, `End the drain of node "abc": they work again within 5 s.`, `undrain node "abc" by "ann"`},
	} {
		require.NoError(t, test.action.Check())
		require.Equal(t, test.will, test.action.Will(Known{}))
		require.Equal(t, test.told, test.action.Told("ann"))
	}
}

func TestWhatStrangersHaveWrittenCannotBeTakenForMoreOfTheSentence(t *testing.T) {
	a := Action{Verb: Rest, Kind: keyspace.Pool, Name: "gpu\" by force.", Resource: "n\n\x1b[2J\u202e\x00\xff", For: time.Second, Reason: "\u202e\x00\x1b"}
	require.NoError(t, a.Check())
	for _, line := range []string{a.Will(Known{}), a.Told("\x1b")} {
		for _, bad := range []string{"\x1b", "\n", "\u202e", "\x00", "\xff"} {
			require.NotContains(t, line, bad)
		}
	}
	require.Contains(t, a.Will(Known{}), `"gpu\" by force."`)
}
