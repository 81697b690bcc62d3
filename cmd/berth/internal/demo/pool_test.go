package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
)

// goodPool is the evidence of a pool with the workers of the plan in which all is
// well.
func goodPool() (*evidence, allocator.Inspection) {
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
	return &evidence{story: s}, allocator.Inspection{Resources: 3, Free: 3}
}

func TestFactsOfAGoodPool(t *testing.T) {
	e, found := goodPool()
	hold(t, e.poolFacts(found),
		"Never did two have the same proxy at once; up to 3 were at work.",
		"All 8 were granted a place in the order in which they asked; 2 of them had to wait.",
		"Worker 4 came for cleo, as worker 3 before, and got the same proxy, though proxy-a had been free for longer.",
		"Worker 6 found that proxy in use and got another one; worker 8 then got this one for cleo, though proxy-c had been free for longer.",
		"Worker 4 was answered 429 and let its proxy rest for 900 ms: nobody had it in that time, and 2.0 ms after it worker 7 had it.",
		"Worker 2 was killed; its lease ended 739 ms later, and 2.0 ms after that worker 6 had its proxy. Nobody had to clean up.",
		"Everything was given back: nothing is held, nobody waits.",
		"The pool is whole, and its 3 proxies are free.",
	)
}

func TestEveryFactOfThePoolCanBeWrong(t *testing.T) {
	const two, kept, changed, rest, dead, left = 0, 2, 3, 4, 5, 7
	type evidenceOf = func(e *evidence, turns []*turn, found *allocator.Inspection)
	on := func(breaks func(turns []*turn)) evidenceOf {
		return func(_ *evidence, turns []*turn, _ *allocator.Inspection) { breaks(turns) }
	}
	a, b, c := proxyKeys[0], proxyKeys[1], proxyKeys[2]
	for _, test := range []struct {
		fact   int
		text   string
		breaks evidenceOf
	}{
		{two, "workers 1 and 5 had proxy-a at once", on(func(t []*turn) { t[4].granted = ms(149) })},
		{two, "workers 4 and 7 had proxy-c at once", on(func(t []*turn) { t[3].leaving = nil })},
		{two, "2 were at work at once, with 3 proxies", on(func(t []*turn) { t[4].granted = nil })},
		{
			kept, "worker 4 got proxy-a, and not the one that is bound to cleo, proxy-c",
			on(func(t []*turn) { t[3].resource = a }),
		},
		{
			kept, "no other proxy had been free for longer when worker 4 got proxy-c",
			on(func(t []*turn) { t[0].gone = ms(410) }),
		},
		{kept, "worker 4 got proxy-c before it was free", on(func(t []*turn) { t[2].gone = ms(520) })},
		{kept, "nobody came for cleo before worker 4", on(func(t []*turn) { t[2].customer = "eve" })},
		{kept, "worker 4 was never granted a proxy", on(func(t []*turn) { t[3].granted = nil })},
		{changed, "worker 6 got proxy-c, which rested", on(func(t []*turn) { t[5].resource = c })},
		{
			changed, "worker 6 was never granted a proxy, or nobody came before",
			on(func(t []*turn) { t[5].granted = nil }),
		},
		{
			changed, "worker 8 got proxy-c, and not the one that is bound to cleo, proxy-b",
			on(func(t []*turn) { t[7].resource = c }),
		},
		{
			rest, "worker 7 was granted proxy-c 10 ms before its rest was over",
			on(func(t []*turn) { t[6].handed = ms(1590) }),
		},
		{
			rest, "worker 7 was granted proxy-c 255 ms after its rest was over: not within 253ms",
			func(e *evidence, t []*turn, _ *allocator.Inspection) {
				t[6].handed, e.late = ms(1856), 3*time.Millisecond
			},
		},
		{rest, "nobody waited for proxy-c, so its rest shows nothing", on(func(t []*turn) { t[6].queued = nil })},
		{rest, "worker 4 let nothing rest", on(func(t []*turn) { t[3].rest = 0 })},
		{dead, "worker 2 was not killed while it had a proxy", on(func(t []*turn) { t[1].killed = nil })},
		{dead, "was never granted to one that waited", on(func(t []*turn) { t[5].resource, t[7].resource = c, c })},
		{
			dead, "worker 6 was granted proxy-b 10 ms before the lease of worker 2 ended",
			on(func(t []*turn) { t[5].handed = ms(1089) }),
		},
		{
			dead, "worker 6 was granted proxy-b 251 ms after the lease of worker 2 had ended: not within 250ms",
			on(func(t []*turn) { t[5].handed = ms(1352) }),
		},
		{
			dead, "that is more than the lease, 1s",
			on(func(t []*turn) { t[1].over, t[1].overBy, t[5].handed = ms(1361), ms(1361), ms(1362) }),
		},
		{
			left, "the pool is not whole: a hole; a ring",
			func(_ *evidence, _ []*turn, found *allocator.Inspection) {
				found.Problems = []string{"a hole", "a ring"}
			},
		},
		{
			left, "the pool has 2 proxies, and not 3",
			func(_ *evidence, _ []*turn, found *allocator.Inspection) { found.Resources = 2 },
		},
		{
			left, "of 3 proxies only 2 are free",
			func(_ *evidence, _ []*turn, found *allocator.Inspection) { found.Free = 2 },
		},
	} {
		t.Run(test.text, func(t *testing.T) {
			e, found := goodPool()
			require.Equal(t, []string{a, b, c}, proxyKeys)
			test.breaks(e, e.story.turns, &found)
			wrong(t, e.poolFacts(found)[test.fact], test.text)
		})
	}
}

func TestABusyMachineMayGiveAProxyBackLate(t *testing.T) {
	e, _ := goodPool()
	e.story.turns[3].gone, e.story.turns[6].handed = ms(780), ms(1700)
	f := e.story.letRest(0)
	require.True(t, f.ok, f.text)
	e.story.turns[5].handed, e.late = ms(1152), 2*time.Millisecond
	require.True(t, e.story.cameBack(e.late).ok)
}

func TestThePictureOfAPool(t *testing.T) {
	e, _ := goodPool()
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

func TestTheTellingOfAPool(t *testing.T) {
	e, _ := goodPool()
	d := &director{story: e.story}
	turns := e.story.turns
	require.Equal(t, "asks, and gets proxy-a at once", d.entrance(turns[0]))
	require.Equal(t, "asks, and gets proxy-c again at once", d.entrance(turns[3]))
	require.Equal(t, "gets proxy-b and not proxy-c, after 344 ms in line", d.entrance(turns[5]))
	require.Equal(t, "is answered 429, and lets proxy-c rest for 900 ms", turns[3].farewell())
	require.Equal(t, "has done its work and gives proxy-a back", turns[0].farewell())
	require.Equal(t, "has done its work and gives its place back", (&turn{}).farewell())
	require.Equal(t, "  1.20 s   5 6     worker 7 for dora asks", sentence(e.story, 1200*time.Millisecond, turns[6], "asks"))
}
