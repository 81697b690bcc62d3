package demo

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNobodyAsksBeforeTheOneBeforeHasAnAnswer(t *testing.T) {
	d := &director{story: newStory(plan{workers: 3, capacity: 2}), next: 1}
	require.True(t, d.answered(), "there is none before the first")
	d.next = 2
	d.story.turns[0].asked = ms(0)
	require.False(t, d.answered())
	d.story.turns[0].granted = ms(1)
	require.True(t, d.answered())
	d.next = 3
	require.False(t, d.answered())
	d.story.turns[1].queued = ms(2)
	require.True(t, d.answered())
}

// TestNobodyLeavesBeforeTwoHaveAsked: else a busy machine has nobody in line.
func TestNobodyLeavesBeforeTwoHaveAsked(t *testing.T) {
	s := newStory(plan{workers: 3})
	require.True(t, untilTwoAsked(s, 1))
	s.turns[1].queued = ms(1)
	require.True(t, untilTwoAsked(s, 1))
	s.turns[2].queued = ms(2)
	for worker := 1; worker <= 3; worker++ {
		require.False(t, untilTwoAsked(s, worker))
	}
}

// told is a view that keeps when what it was told of happened.
type told []time.Duration

func (v *told) tell(at time.Duration, _ *turn, _ string) { *v = append(*v, at) }
func (v *told) draw(time.Duration)                       {}
func (v *told) end()                                     {}

// TestWhatHappenedIsToldInItsOrder has the report of one worker come late, as on a busy
// machine: nothing later is told before.
func TestWhatHappenedIsToldInItsOrder(t *testing.T) {
	begin := time.Now().Add(-time.Hour)
	reports := make(chan report, 10)
	crew := []*member{{number: 1}, {number: 2}}
	view := &told{}
	d := &director{
		plan: plan{workers: 2, order: func(int) order { return order{Work: time.Hour * 2} }}, story: newStory(plan{workers: 2}), stage: &stage{crew: crew}, view: view, reports: reports, next: 3,
	}
	d.story.begin = begin
	says := func(worker, at int, kind kind) {
		moment := begin.Add(*ms(at))
		if kind != alive {
			reports <- report{Kind: kind, At: moment, worker: worker}
		}
		crew[worker-1].heard.Store(moment.UnixNano())
	}
	requireTold := func(moments ...int) {
		t.Helper()
		require.NoError(t, d.step(t.Context()))
		want := told{}
		for _, at := range moments {
			want = append(want, *ms(at))
		}
		require.Equal(t, want, append(told{}, *view...))
	}
	says(2, 100, queued)
	requireTold()
	says(1, 50, alive)
	requireTold()
	says(1, 70, queued)
	says(1, 80, alive)
	requireTold(70)
	says(1, 120, granted)
	says(2, 110, alive)
	requireTold(70, 100)
	crew[0].heard.Store(math.MaxInt64) // both have ended
	crew[1].heard.Store(math.MaxInt64)
	requireTold(70, 100, 120)
}

func TestAllThatHappensIsTold(t *testing.T) {
	d := &director{story: newStory(plan{workers: 1, capacity: 1})}
	require.False(t, d.over())
	d.story.turns[0].exited = ms(1)
	require.True(t, d.over())
	d.pending = []report{{Kind: leaseEnd}}
	require.False(t, d.over())
}
