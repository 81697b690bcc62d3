package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/embedded"
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

// slowly is a director that takes its time over the first report.
type slowly struct {
	takes time.Duration
	last  report
}

func (s *slowly) Write(p []byte) (int, error) {
	time.Sleep(s.takes)
	s.takes = 0
	return len(p), json.Unmarshal(p, &s.last)
}

// TestAWorkerIsLateWhereverItStandsStill has a worker stand still in the middle of a report.
// There a busy machine takes the processor away, for the report wakes its reader.
func TestAWorkerIsLateWhereverItStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &slowly{takes: time.Second}
		w := &worker{out: json.NewEncoder(out)}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		w.live(ctx)
		require.Equal(t, time.Second-aliveEvery, out.last.Late)
	})
}

func TestLatenessIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lateness
		l.stop() // nothing was started
		require.Zero(t, l.worst())
		l.start()
		time.Sleep(time.Second)
		l.stop()
		require.Zero(t, l.worst(), "each beat was on time")
		l.beat(time.Millisecond)
		time.Sleep(3 * time.Millisecond)
		l.beat(time.Millisecond)
		require.Equal(t, 2*time.Millisecond, l.worst())
	})
}

// TestAnActIsPlayedAgain plays one on a server on which it was played before.
func TestAnActIsPlayedAgain(t *testing.T) {
	server, err := embedded.StartListening("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	var out bytes.Buffer
	for range 2 {
		facts, err := once(context.Background(), withWorkers("good", &out), poolAct, server)
		require.NoError(t, err)
		require.NotEmpty(t, facts)
		for _, f := range facts {
			require.True(t, f.ok, f.text)
		}
	}
}

func TestARoundIsALine(t *testing.T) {
	require.Equal(t, "pool, round 2: all is as promised", verdict("pool", 2, []fact{{true, "x"}}, nil))
	require.Equal(t, "pool, round 2: not as promised: y", verdict("pool", 2, []fact{{true, "x"}, {false, "y"}}, nil))
	require.Equal(t, "pool, round 2: spoilt: worker 3: lost", verdict("pool", 2, nil, errors.New("demo: worker 3: lost")))
}

func TestNothingIsWatchedAtItsEnd(t *testing.T) {
	server, err := embedded.StartListening("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out bytes.Buffer
	Watched(ctx, withWorkers("good", &out), server)
	require.Empty(t, strings.TrimSpace(out.String()))
}

func TestASlowerPlan(t *testing.T) {
	slow := semaphorePlan.slower(3)
	require.Equal(t, 3*semaphorePlan.askEvery, slow.askEvery)
	require.Equal(t, 3*semaphorePlan.order(2).Work, slow.order(2).Work)
	require.Equal(t, semaphorePlan.lease, slow.lease)
}

func TestADemoThatCannotBePlayedFails(t *testing.T) {
	var out, errs bytes.Buffer
	a := app.New(&out, &errs)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.Equal(t, 1, app.CodeOf(play(ctx, a, false)))
}
