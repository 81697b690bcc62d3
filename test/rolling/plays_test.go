package rolling

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/scriptkit"
)

type play = func(w *world, a, b *process)

// unread is the play without what is read by Go. The scripts of a mutant have another format than
// the Go code beside them, which a whole release would have changed as well.
func unread(p play) play {
	return func(w *world, a, b *process) {
		w.unread = true
		p(w, a, b)
	}
}

// read has each of the processes read what there is.
func (w *world) read(look func(p *process), by ...*process) {
	if w.unread {
		return
	}
	for _, p := range by {
		look(p)
	}
}

// plays are all plays, by primitive and what they are about.
var plays = map[string]map[string]play{"semaphore": semaphorePlays, "lock": lockPlays, "pool": poolPlays}

// The previous release and today's work on one name: what one has made the other
// serves, hands on, renews, sweeps and restores.
func TestThePreviousReleaseAndTodaysWorkTogether(t *testing.T) {
	was := previous(t)
	for primitive, those := range plays {
		for about, play := range those {
			for direction, sides := range map[string][2]*scriptkit.Library{
				"today beside " + was.version: {nil, was.library}, was.version + " beside today": {was.library, nil},
			} {
				t.Run(primitive+"/"+about+"/"+direction, func(t *testing.T) {
					t.Parallel()
					require.Empty(t, perform(t, sides[0], sides[1], play))
				})
			}
		}
	}
}
