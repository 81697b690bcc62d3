package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
)

func ms(n int) moment {
	d := time.Duration(n) * time.Millisecond
	return &d
}

// good is the evidence of a demo with four workers in which all is well: the
// third is killed, and the fourth gets its place.
func good() broken {
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
	return broken{&evidence{story: s}, s.turns, nil}
}

// broken is evidence of which a test breaks something.
type broken struct {
	*evidence
	t     []*turn
	found *allocator.Inspection // of a pool
}

// breaking is how a fact is made wrong, and what it says then.
type breaking struct {
	fact   int
	text   string
	breaks func(b broken)
}

// eachFact requires that all facts of a good story are so, and what they say, and that each can be wrong.
func eachFact(t *testing.T, good func() broken, facts func(b broken) []fact, says []string, wrongs []breaking) {
	t.Helper()
	var texts []string
	for _, f := range facts(good()) {
		require.True(t, f.ok, f.text)
		texts = append(texts, f.text)
	}
	require.Equal(t, says, texts)
	for _, w := range wrongs {
		b := good()
		w.breaks(b)
		wrong(t, facts(b)[w.fact], w.text)
	}
}

// wrong requires that a fact is not so, and what it says.
func wrong(t *testing.T, f fact, says string) {
	t.Helper()
	require.False(t, f.ok, f.text)
	require.Contains(t, f.text, says)
}

func TestEveryFactCanBeWrong(t *testing.T) {
	const inside, order, handed, recovery, back = 0, 1, 2, 3, 4
	eachFact(t, good, broken.facts, []string{
		"Never more than 2 were inside at once.",
		"All 4 were granted a place in the order in which they asked; 2 of them had to wait.",
		"A place that was given back went to the next in line: 3.0 ms later it was inside (at most 3.0 ms).",
		"Worker 3 was killed; its lease ended 1.50 s later, and 10 ms after that worker 4 had its place. Nobody had to clean up.",
		"Everything was given back: nothing is held, nobody waits.",
	}, []breaking{
		{inside, "3 were inside at once, with a capacity of 2", func(b broken) { b.t[2].granted = ms(999) }},
		{
			inside, "never more than 1 were inside",
			func(b broken) { b.t[0].leaving, b.t[2].granted, b.t[3].granted = ms(50), nil, nil },
		},
		{
			order, "worker 4 was granted a place ahead of worker 3",
			func(b broken) { b.t[2].fence, b.t[3].fence = 14, 13 },
		},
		{order, "workers 3 and 4 have the same fence, 13", func(b broken) { b.t[3].fence = 13 }},
		{
			order, "worker 4 asked and was never granted a place",
			func(b broken) { b.t[3].granted, b.t[3].fence = nil, 15 },
		},
		{order, "only 1 had to wait", func(b broken) { b.t[2].queued = nil }},
		{
			handed, "worker 3 was granted the place of worker 1 3.0 ms too early",
			func(b broken) { b.t[2].handed = ms(997) },
		},
		{handed, "no place was handed on", func(b broken) { b.t[2].queued, b.t[3].queued = nil, nil }},
		{recovery, "not within 253ms", func(b broken) { b.t[3].handed, b.late = ms(3254), 3*time.Millisecond }},
		{
			handed, "worker 4 was granted the place of worker 3 3.0 ms too early",
			func(b broken) { b.t[3].handed = ms(2997) },
		},
		{
			recovery, "that is more than the lease, 2s",
			func(b broken) { b.t[2].over, b.t[3].handed, b.t[3].granted = ms(3501), ms(3502), ms(3503) },
		},
		{recovery, "was never granted again", func(b broken) { b.t[2].overBy = nil }},
		{back, "worker 4 has not ended", func(b broken) { b.t[3].exited = nil }},
		{back, "worker 4: exit status 1", func(b broken) { b.t[3].failure = "exit status 1" }},
		{back, "worker 3 was killed and ended well all the same", func(b broken) { b.t[2].failure = "" }},
		{back, "left behind: 1 held, 0 waiting", func(b broken) { b.holders = 1 }},
		{back, "left behind: 0 held, 1 waiting", func(b broken) { b.waiting = 1 }},
	})
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

// goodLock is the evidence of a lock with five workers in which all is well: the
// second is killed, and the fourth enters twice.
func goodLock() broken {
	s := newStory(plan{workers: 5, capacity: 1, lease: 1500 * time.Millisecond, length: 5 * time.Second})
	*s.turns[0] = turn{worker: 1, asked: ms(0), granted: ms(1), handed: ms(1), fence: 11, leaving: ms(700), exited: ms(701)}
	*s.turns[1] = turn{
		worker: 2, asked: ms(120), queued: ms(121), granted: ms(702), handed: ms(701), fence: 12,
		killed: ms(1100), over: ms(2200), overBy: ms(2200), exited: ms(1101), failure: "signal: killed",
	}
	*s.turns[2] = turn{
		worker: 3, asked: ms(240), queued: ms(241), ahead: 1, granted: ms(2212), handed: ms(2210), fence: 13,
		leaving: ms(2900), exited: ms(2901),
	}
	*s.turns[3] = turn{
		worker: 4, asked: ms(360), queued: ms(361), ahead: 2, granted: ms(2902), handed: ms(2901), fence: 14,
		again: ms(2904), againFence: 14, once: ms(3300), leaving: ms(3600), exited: ms(3601),
	}
	*s.turns[4] = turn{
		worker: 5, asked: ms(480), queued: ms(481), ahead: 3, granted: ms(3603), handed: ms(3601), fence: 15,
		leaving: ms(4300), exited: ms(4301),
	}
	return broken{&evidence{story: s}, s.turns, nil}
}

func TestEveryFactOfTheLockCanBeWrong(t *testing.T) {
	const inside, fences, again = 0, 2, 5
	eachFact(t, goodLock, broken.lockFacts, []string{
		"Never was more than one inside at once.",
		"All 5 were granted a place in the order in which they asked; 4 of them had to wait.",
		"Each had a higher fence than all before, also after the one that was killed.",
		"A place that was given back went to the next in line: 2.0 ms later it was inside (at most 3.0 ms).",
		"Worker 2 was killed; its lease ended 1.10 s later, and 10 ms after that worker 3 had its place. Nobody had to clean up.",
		"Worker 4 locked a second time what it held, past the line and with the same fence; the next came in when both entries were given back.",
		"Everything was given back: nothing is held, nobody waits.",
	}, []breaking{
		{inside, "2 were inside at once, with a capacity of 1", func(b broken) { b.t[4].granted = ms(3590) }},
		{
			fences, "worker 3 came in after worker 2, with a fence that is not higher: 11 after 12",
			func(b broken) { b.t[2].fence = 11 },
		},
		{fences, "14 after 14", func(b broken) { b.t[4].fence = 14 }},
		{again, "worker 4 was not inside a second time", func(b broken) { b.t[3].again = nil }},
		{again, "worker 4 was not inside a second time", func(b broken) { b.t[3].once = nil }},
		{again, "has the fence 16, and not that of its hold, 14", func(b broken) { b.t[3].againFence = 16 }},
		{again, "nobody waited when worker 4 asked again", func(b broken) { b.t[4].queued = ms(3000) }},
		{
			again, "worker 5 was granted the lock before worker 4 had given back both",
			func(b broken) { b.t[4].handed = ms(3301) },
		},
	})
}

// goodPool is the evidence of a pool with the workers of the plan in which all is
// well.
func goodPool() broken {
	s := newStory(poolPlan)
	a, b, c := proxyKeys[0], proxyKeys[1], proxyKeys[2]
	for i, t := range []turn{
		{resource: a, asked: ms(0), granted: ms(1), handed: ms(1), leaving: ms(150), gone: ms(151), exited: ms(152)},
		{
			resource: b, asked: ms(100), granted: ms(101), handed: ms(101),
			killed: ms(360), over: ms(1099), overBy: ms(1101), exited: ms(361), failure: "signal: killed",
		},
		{resource: c, asked: ms(200), granted: ms(201), handed: ms(201), leaving: ms(400), gone: ms(401), exited: ms(402)},
		{resource: c, asked: ms(500), granted: ms(501), handed: ms(501), leaving: ms(700), gone: ms(701), exited: ms(702)},
		{resource: a, asked: ms(600), granted: ms(601), handed: ms(601), leaving: ms(2100), gone: ms(2101), exited: ms(2102)},
		{resource: b, asked: ms(760), queued: ms(761), granted: ms(1105), handed: ms(1103), leaving: ms(2000), gone: ms(2001), exited: ms(2002)},
		{resource: c, asked: ms(860), queued: ms(861), ahead: 1, granted: ms(1605), handed: ms(1603), leaving: ms(1700), gone: ms(1701), exited: ms(1702)},
		{resource: b, asked: ms(2150), granted: ms(2151), handed: ms(2151), leaving: ms(2300), gone: ms(2301), exited: ms(2302)},
	} {
		t.worker, t.customer, t.rest = i+1, s.turns[i].customer, s.turns[i].rest
		t.fence = int64(11 + i)
		*s.turns[i] = t
	}
	return broken{&evidence{story: s}, s.turns, &allocator.Inspection{Resources: 3, Free: 3}}
}

func TestEveryFactOfThePoolCanBeWrong(t *testing.T) {
	const two, kept, changed, rest, dead, left = 0, 2, 3, 4, 5, 7
	a, c := proxyKeys[0], proxyKeys[2]
	eachFact(t, goodPool, func(b broken) []fact { return b.poolFacts(*b.found) }, []string{
		"Never did two have the same proxy at once; up to 3 were at work.",
		"All 8 were granted a place in the order in which they asked; 2 of them had to wait.",
		"Worker 4 came for cleo, as worker 3 before, and got the same proxy, though proxy-a had been free for longer.",
		"Worker 6 found that proxy in use and got another one; worker 8 then got this one for cleo, though proxy-c had been free for longer.",
		"Worker 4 was answered 429 and let its proxy rest for 900 ms: nobody had it in that time, and 2.0 ms after it worker 7 had it.",
		"Worker 2 was killed; its lease ended 739 ms later, and 2.0 ms after that worker 6 had its proxy. Nobody had to clean up.",
		"Everything was given back: nothing is held, nobody waits.",
		"The pool is whole, and its 3 proxies are free.",
	}, []breaking{
		{two, "workers 1 and 5 had proxy-a at once", func(b broken) { b.t[4].granted = ms(149) }},
		{two, "workers 4 and 7 had proxy-c at once", func(b broken) { b.t[3].leaving = nil }},
		{two, "2 were at work at once, with 3 proxies", func(b broken) { b.t[4].granted = nil }},
		{
			kept, "worker 4 got proxy-a, and not the one that is bound to cleo, proxy-c",
			func(b broken) { b.t[3].resource = a },
		},
		{
			kept, "no other proxy had been free for longer when worker 4 got proxy-c",
			func(b broken) { b.t[0].gone = ms(410) },
		},
		{kept, "worker 4 got proxy-c before it was free", func(b broken) { b.t[2].gone = ms(520) }},
		{kept, "nobody came for cleo before worker 4", func(b broken) { b.t[2].customer = "eve" }},
		{kept, "worker 4 was never granted a proxy", func(b broken) { b.t[3].granted = nil }},
		{changed, "worker 6 got proxy-c, which rested", func(b broken) { b.t[5].resource = c }},
		{changed, "worker 6 was never granted a proxy, or nobody came before", func(b broken) { b.t[5].granted = nil }},
		{
			changed, "worker 8 got proxy-c, and not the one that is bound to cleo, proxy-b",
			func(b broken) { b.t[7].resource = c },
		},
		{
			rest, "worker 7 was granted proxy-c 10 ms before its rest was over",
			func(b broken) { b.t[6].handed = ms(1590) },
		},
		{
			rest, "worker 7 was granted proxy-c 255 ms after its rest was over: not within 253ms",
			func(b broken) { b.t[6].handed, b.late = ms(1856), 3*time.Millisecond },
		},
		{rest, "nobody waited for proxy-c, so its rest shows nothing", func(b broken) { b.t[6].queued = nil }},
		{rest, "worker 4 let nothing rest", func(b broken) { b.t[3].rest = 0 }},
		{dead, "worker 2 was not killed while it had a proxy", func(b broken) { b.t[1].killed = nil }},
		{dead, "was never granted to one that waited", func(b broken) { b.t[5].resource, b.t[7].resource = c, c }},
		{
			dead, "worker 6 was granted proxy-b 10 ms before the lease of worker 2 ended",
			func(b broken) { b.t[5].handed = ms(1089) },
		},
		{
			dead, "worker 6 was granted proxy-b 251 ms after the lease of worker 2 had ended: not within 250ms",
			func(b broken) { b.t[5].handed = ms(1352) },
		},
		{
			dead, "that is more than the lease, 1s",
			func(b broken) { b.t[1].over, b.t[1].overBy, b.t[5].handed = ms(1361), ms(1361), ms(1362) },
		},
		{
			left, "the pool is not whole: a hole; a ring",
			func(b broken) { b.found.Problems = []string{"a hole", "a ring"} },
		},
		{left, "the pool has 2 proxies, and not 3", func(b broken) { b.found.Resources = 2 }},
		{left, "of 3 proxies only 2 are free", func(b broken) { b.found.Free = 2 }},
	})
}

func TestABusyMachineMayGiveAProxyBackLate(t *testing.T) {
	e := goodPool()
	e.story.turns[3].gone, e.story.turns[6].handed = ms(780), ms(1700)
	f := e.story.letRest(0)
	require.True(t, f.ok, f.text)
	e.story.turns[5].handed, e.late = ms(1152), 2*time.Millisecond
	require.True(t, e.story.cameBack(e.late).ok)
}

func TestThePictureOfAPool(t *testing.T) {
	e := goodPool()
	lines := chart(e.story, 2350*time.Millisecond, 70, paint(false))
	require.Equal(t, `
1 for anna  aa                                                finished
2 for ben     bbbb✗···········                                killed
3 for cleo     cccc                                           finished
4 for cleo          cccc~~~~~~~~~~~~~~~                       finished
5 for anna            aaaaaaaaaaaaaaaaaaaaaaaaa               finished
6 for cleo               ░░░░░bbbbbbbbbbbbbbb                 finished
7 for dora                ░░░░░░░░░░░░░c                      finished
8 for cleo                                      bb            finished
            |0s             |1s              |2s

░ waits   abc has that proxy   ~ it rests   ✗ killed
· its lease runs out
`, "\n"+strings.Join(lines, "\n")+"\n")
}

// TestTheWorkersOfAPoolAskAndLeaveWhenTheirTurnHasCome looks at what must have happened
// before, whatever the clock says.
func TestTheWorkersOfAPoolAskAndLeaveWhenTheirTurnHasCome(t *testing.T) {
	s := newStory(poolPlan)
	for _, step := range []struct {
		happens func()
		may     string // 3 may ask, and -3 leave
	}{
		{func() {}, "1 -1 2 -3 5 6 7 -8"},
		{func() { s.turn(1).gone = ms(1) }, "1 -1 2 3 -3 5 6 7 -8"},
		{func() { s.turn(first).gone = ms(2) }, "1 -1 2 3 -3 4 5 6 7 -8"},
		{func() { s.turn(rested).queued = ms(3) }, "1 -1 2 -2 3 -3 4 5 6 7 -8"},
		{func() { s.turn(moved).granted = ms(4) }, "1 -1 2 -2 3 -3 4 -4 5 6 7 -7 -8"},
		{func() { s.turn(rested).granted = ms(5) }, "1 -1 2 -2 3 -3 4 -4 5 -5 6 7 -7 -8"},
		{func() { s.turn(rested).gone = ms(6) }, "1 -1 2 -2 3 -3 4 -4 5 -5 6 -6 7 -7 -8"},
		{func() { s.turn(moved).gone = ms(7) }, "1 -1 2 -2 3 -3 4 -4 5 -5 6 -6 7 -7 8 -8"},
	} {
		step.happens()
		may := ""
		for worker := 1; worker <= poolPlan.workers; worker++ {
			if poolPlan.due(s, worker) {
				may += fmt.Sprint(" ", worker)
			}
			if !poolPlan.stays(s, worker) {
				may += fmt.Sprint(" ", -worker)
			}
		}
		require.Equal(t, step.may, strings.TrimSpace(may))
	}
}
