package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func ms(n int) moment {
	d := time.Duration(n) * time.Millisecond
	return &d
}

// good is the evidence of a demo with four workers in which all is well: the
// third is killed, and the fourth gets its place.
func good() *evidence {
	s := newStory(plan{workers: 4, capacity: 2, lease: 2 * time.Second, length: 7 * time.Second})
	*s.turns[0] = turn{worker: 1, asked: ms(0), granted: ms(1), handed: ms(1), fence: 11, leaving: ms(1000), exited: ms(1001)}
	*s.turns[1] = turn{worker: 2, asked: ms(100), granted: ms(101), handed: ms(101), fence: 12, leaving: ms(4000), exited: ms(4001)}
	*s.turns[2] = turn{
		worker: 3, asked: ms(200), queued: ms(201), granted: ms(1003), handed: ms(1001), fence: 13,
		killed: ms(1500), over: ms(3000), overBy: ms(3000), exited: ms(1501), failure: "signal: killed",
	}
	*s.turns[3] = turn{
		worker: 4, asked: ms(300), queued: ms(301), ahead: 1, granted: ms(3012), handed: ms(3010), fence: 14,
		leaving: ms(3900), exited: ms(3901),
	}
	return &evidence{story: s}
}

// hold requires that all facts are so, and what they say.
func hold(t *testing.T, facts []fact, says ...string) {
	t.Helper()
	var texts []string
	for _, f := range facts {
		require.True(t, f.ok, f.text)
		texts = append(texts, f.text)
	}
	require.Equal(t, says, texts)
}

// wrong requires that a fact is not so, and what it says.
func wrong(t *testing.T, f fact, says string) {
	t.Helper()
	require.False(t, f.ok, f.text)
	require.Contains(t, f.text, says)
}

func TestFactsOfAGoodStory(t *testing.T) {
	hold(t, good().facts(),
		"Never more than 2 were inside at once.",
		"All 4 were granted a place in the order in which they asked; 2 of them had to wait.",
		"A place that was given back went to the next in line: 3.0 ms later it was inside (at most 3.0 ms).",
		"Worker 3 was killed; its lease ended 1.50 s later, and 10 ms after that worker 4 had its place. Nobody had to clean up.",
		"Everything was given back: nothing is held, nobody waits.",
	)
}

func TestEveryFactCanBeWrong(t *testing.T) {
	const inside, order, handed, recovery, back = 0, 1, 2, 3, 4
	for _, test := range []struct {
		fact   int
		text   string
		breaks func(e *evidence, t []*turn)
	}{
		{
			inside, "3 were inside at once, with a capacity of 2",
			func(_ *evidence, t []*turn) { t[2].granted = ms(999) },
		},
		{
			inside, "never more than 1 were inside",
			func(_ *evidence, t []*turn) {
				t[0].leaving = ms(50)
				t[2].granted, t[3].granted = nil, nil
			},
		},
		{
			order, "worker 4 was granted a place ahead of worker 3",
			func(_ *evidence, t []*turn) { t[2].fence, t[3].fence = 14, 13 },
		},
		{order, "workers 3 and 4 have the same fence, 13", func(_ *evidence, t []*turn) { t[3].fence = 13 }},
		{
			order, "worker 4 asked and was never granted a place",
			func(_ *evidence, t []*turn) { t[3].granted, t[3].fence = nil, 15 },
		},
		{order, "only 1 had to wait", func(_ *evidence, t []*turn) { t[2].queued = nil }},
		{
			handed, "worker 3 was granted the place of worker 1 3.0 ms too early",
			func(_ *evidence, t []*turn) { t[2].handed = ms(997) },
		},
		{handed, "no place was handed on", func(_ *evidence, t []*turn) { t[2].queued, t[3].queued = nil, nil }},
		{
			recovery, "not within 253ms",
			func(e *evidence, t []*turn) { t[3].handed, e.late = ms(3254), 3*time.Millisecond },
		},
		{
			handed, "worker 4 was granted the place of worker 3 3.0 ms too early",
			func(_ *evidence, t []*turn) { t[3].handed = ms(2997) },
		},
		{
			recovery, "that is more than the lease, 2s",
			func(_ *evidence, t []*turn) {
				t[2].over, t[3].handed, t[3].granted = ms(3501), ms(3502), ms(3503)
			},
		},
		{recovery, "was never granted again", func(_ *evidence, t []*turn) { t[2].overBy = nil }},
		{back, "worker 4 has not ended", func(_ *evidence, t []*turn) { t[3].exited = nil }},
		{back, "worker 4: exit status 1", func(_ *evidence, t []*turn) { t[3].failure = "exit status 1" }},
		{back, "worker 3 was killed and ended well all the same", func(_ *evidence, t []*turn) { t[2].failure = "" }},
		{back, "left behind: 1 held, 0 waiting", func(e *evidence, _ []*turn) { e.holders = 1 }},
		{back, "left behind: 0 held, 1 waiting", func(e *evidence, _ []*turn) { e.waiting = 1 }},
	} {
		t.Run(test.text, func(t *testing.T) {
			e := good()
			test.breaks(e, e.story.turns)
			wrong(t, e.facts()[test.fact], test.text)
		})
	}
}

func TestABusyMachineMayBeLate(t *testing.T) {
	e := good()
	e.story.turns[3].handed, e.late = ms(3054), 5*time.Millisecond
	require.True(t, e.facts()[3].ok)
}

// TestABusyMachineMayKnowTheEndOfALeaseBadly has much time pass between the death
// of a worker and the answer that says what is left of its lease.
func TestABusyMachineMayKnowTheEndOfALeaseBadly(t *testing.T) {
	for _, granted := range []int{3001, 3100} {
		e := good()
		e.story.turns[2].overBy, e.story.turns[3].handed = ms(3090), ms(granted)
		for _, f := range e.facts() {
			require.True(t, f.ok, f.text)
		}
	}
}

// TestABusyMachineMayGiveBackLate has a worker stopped between its saying so and
// its giving back: the place of the dead comes free first.
func TestABusyMachineMayGiveBackLate(t *testing.T) {
	s := newStory(plan{workers: 5, capacity: 2, lease: 2 * time.Second, length: 7 * time.Second})
	*s.turns[0] = turn{worker: 1, granted: ms(1), handed: ms(1), fence: 11, leaving: ms(2900), gone: ms(3200), exited: ms(3201)}
	*s.turns[1] = turn{
		worker: 2, granted: ms(2), handed: ms(2), fence: 12,
		killed: ms(1500), over: ms(3000), overBy: ms(3000), exited: ms(1501), failure: "signal: killed",
	}
	*s.turns[2] = turn{worker: 3, queued: ms(301), granted: ms(3012), handed: ms(3010), fence: 13, leaving: ms(3900), gone: ms(3901), exited: ms(3902)}
	*s.turns[3] = turn{worker: 4, queued: ms(401), granted: ms(3202), handed: ms(3199), fence: 14, leaving: ms(3950), gone: ms(3951), exited: ms(3952)}
	*s.turns[4] = turn{worker: 5, queued: ms(501), granted: ms(3903), handed: ms(3901), fence: 15, leaving: ms(3990), gone: ms(3991), exited: ms(3992)}
	for _, f := range (&evidence{story: s}).facts() {
		require.True(t, f.ok, f.text)
	}
	s.turns[2].handed = ms(3254)
	wrong(t, s.recovered(0), "254 ms after that worker 3 had its place: not within 250ms")
}

func TestATextFlowsIntoANarrowTerminal(t *testing.T) {
	text := "one two three\nfour\n\n  command --with a-long-flag\n\nfive six\n"
	require.Equal(t, strings.TrimSpace(text), flow(text, 13), "what fits stays as it is")
	require.Equal(t, "one two\nthree four\n\n  command --with a-long-flag\n\nfive six", flow(text, 11))
	for _, a := range acts() {
		for _, text := range []string{a.about, a.next} {
			require.Equal(t, strings.TrimSpace(text), flow(text, 80))
			for line := range strings.Lines(flow(text, 60)) {
				require.LessOrEqual(t, len(strings.TrimSpace(line)), 60)
			}
		}
	}
}

func TestShort(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0.4 ms": 412 * time.Microsecond,
		"23 ms":  23400 * time.Microsecond,
		"1.87 s": 1874 * time.Millisecond,
	} {
		require.Equal(t, want, short(d))
	}
}

func TestTheLastTwoStayUntilBothAreInside(t *testing.T) {
	s := newStory(semaphorePlan)
	stay := func() (all []int) {
		for worker := 1; worker <= semaphorePlan.workers; worker++ {
			if semaphorePlan.stays(s, worker) {
				all = append(all, worker)
			}
		}
		return all
	}
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8}, stay())
	for _, turn := range s.turns[1:] {
		turn.queued = ms(1)
	}
	require.Equal(t, []int{7, 8}, stay())
	s.turn(3).over = ms(2)
	require.Equal(t, []int{7, 8}, stay(), "worker 7 would leave its place to worker 8, and nobody needed the dead one's")
	s.turn(8).granted = ms(3)
	require.Empty(t, stay())
}
