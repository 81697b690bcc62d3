package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

func picture(s *story, now time.Duration) string {
	lines := chart(s, now, 70, paint(false))
	return "\n" + strings.Join(lines[:len(lines)-2], "\n") + "\n"
}

func TestThePictureGrowsWithTheStory(t *testing.T) {
	s := newStory(plan{workers: 3, capacity: 2, length: 7 * time.Second})
	*s.turns[0] = turn{worker: 1, asked: ms(0), granted: ms(1), fence: 1}
	*s.turns[1] = turn{worker: 2, asked: ms(300), queued: ms(301)}
	require.Equal(t, `
worker 1    ███████                                           inside
worker 2      ░░░░░                                           waits
worker 3
            |0s   |1s    |2s    |3s   |4s    |5s    |6s
`, picture(s, 900*time.Millisecond))
}

func TestALongerStoryHasACoarserScale(t *testing.T) {
	s := good().story
	require.Equal(t, `
worker 1    ██                                                finished
worker 2    ██████                                            finished
worker 3    ░░✗··                                             killed
worker 4    ░░░░░█                                            finished
            |0s   |4s   |8s    |12s  |16s  |20s   |24s  |28s
`, picture(s, 30*time.Second))
}

func TestASentenceSaysWhoIsInside(t *testing.T) {
	s := good().story
	require.Equal(t, "  1.20 s   2 3     worker 4 waits", sentence(s, 1200*time.Millisecond, s.turns[3], "waits"))
	require.Equal(t, "  9.00 s   -       worker 1 rests", sentence(s, 9*time.Second, s.turns[0], "rests"))
}

func TestALiveViewDrawsOverItself(t *testing.T) {
	var out strings.Builder
	s := good().story
	v := &live{out: &out, story: s, width: 70, paint: paint(false)}
	v.tell(time.Second, s.turns[0], strings.Repeat("is happy ", 20))
	v.draw(time.Second)
	height := strings.Count(out.String(), "\n")
	require.Equal(t, height, v.height)
	for _, line := range strings.Split(strings.ReplaceAll(out.String(), clearLine, ""), "\n") {
		require.LessOrEqual(t, len([]rune(strings.TrimPrefix(line, "\r"))), 70)
	}
	out.Reset()
	for i := range 2 * remembered {
		v.tell(time.Duration(i)*time.Second, s.turns[0], "is happy")
	}
	v.end()
	require.Equal(t, height, strings.Count(out.String(), "\n"), "it never grows")
	require.Contains(t, out.String(), fmt.Sprintf("\x1b[%dA", height))
	require.NotContains(t, out.String(), "  5.00 s")
	require.Contains(t, out.String(), "  6.00 s")
	require.Contains(t, out.String(), " 11.00 s")
}

// TestALivePictureFitsItsTerminal draws it in the narrowest terminal that has one, and
// in wider ones: a line too many, or too long, would scroll it.
func TestALivePictureFitsItsTerminal(t *testing.T) {
	for _, p := range []plan{semaphorePlan, lockPlan, poolPlan} {
		for width := 59; width <= 120; width++ {
			var out strings.Builder
			s := newStory(p)
			for i, worker := range s.turns {
				worker.asked, worker.queued, worker.killed = ms(i), ms(i), ms(900)
			}
			v := &live{out: &out, story: s, width: width, paint: paint(false)}
			v.tell(time.Second, s.turns[0], strings.Repeat("is happy ", 20))
			v.draw(time.Minute)
			require.LessOrEqual(t, v.height, Height)
			for _, line := range strings.Split(strings.ReplaceAll(out.String(), clearLine, ""), "\n") {
				require.LessOrEqual(t, len([]rune(strings.TrimPrefix(line, "\r"))), width, line)
			}
		}
	}
}
