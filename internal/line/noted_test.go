package line

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// hand is a clock that a test moves by hand.
type hand time.Duration

func (h *hand) Now() time.Duration { return time.Duration(*h) }

func TestANodeNotesEachOfManyNamesOnceIn30SecondsAndForgetsThemThen(t *testing.T) {
	t.Parallel()
	const names = 3 * fewNoted
	var clock hand
	w := waits{clock: &clock, noted: map[engine.Line]time.Duration{}}
	w.background = func(func(<-chan struct{})) bool { return true }
	due := func() (n int) {
		for range names/mostNoted + 1 {
			members, _ := w.take()
			for shard := range state.Shards {
				n += len(members[shard])
			}
		}
		return n
	}
	for beat := range 12 {
		for i := range names {
			w.add(engine.Line{Kind: keyspace.Sem, Name: strconv.Itoa(i)})
		}
		want := 0
		if beat%3 == 0 {
			want = names
		}
		require.Equal(t, want, due(), "beat %d", beat)
		clock += hand(10 * time.Second)
	}
	for i := range 20 * names {
		w.add(engine.Line{Kind: keyspace.Lock, Name: strconv.Itoa(i)})
		clock += hand(time.Second)
	}
	require.LessOrEqual(t, len(w.noted), fewNoted)
}
