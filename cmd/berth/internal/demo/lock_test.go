package demo

import (
	"testing"
	"time"
)

// goodLock is the evidence of a lock with five workers in which all is well: the
// second is killed, and the fourth enters twice.
func goodLock() *evidence {
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
	return &evidence{story: s}
}

func TestFactsOfAGoodLock(t *testing.T) {
	hold(t, goodLock().lockFacts(),
		"Never was more than one inside at once.",
		"All 5 were granted a place in the order in which they asked; 4 of them had to wait.",
		"Each had a higher fence than all before, also after the one that was killed.",
		"A place that was given back went to the next in line: 2.0 ms later it was inside (at most 3.0 ms).",
		"Worker 2 was killed; its lease ended 1.10 s later, and 10 ms after that worker 3 had its place. Nobody had to clean up.",
		"Worker 4 locked a second time what it held, past the line and with the same fence; the next came in when both entries were given back.",
		"Everything was given back: nothing is held, nobody waits.",
	)
}

func TestEveryFactOfTheLockCanBeWrong(t *testing.T) {
	const inside, fences, again = 0, 2, 5
	for _, test := range []struct {
		fact   int
		text   string
		breaks func(t []*turn)
	}{
		{inside, "2 were inside at once, with a capacity of 1", func(t []*turn) { t[4].granted = ms(3590) }},
		{
			fences, "worker 3 came in after worker 2, with a fence that is not higher: 11 after 12",
			func(t []*turn) { t[2].fence = 11 },
		},
		{fences, "14 after 14", func(t []*turn) { t[4].fence = 14 }},
		{again, "worker 4 was not inside a second time", func(t []*turn) { t[3].again = nil }},
		{again, "worker 4 was not inside a second time", func(t []*turn) { t[3].once = nil }},
		{again, "has the fence 16, and not that of its hold, 14", func(t []*turn) { t[3].againFence = 16 }},
		{again, "nobody waited when worker 4 asked again", func(t []*turn) { t[4].queued = ms(3000) }},
		{
			again, "worker 5 was granted the lock before worker 4 had given back both",
			func(t []*turn) { t[4].handed = ms(3301) },
		},
	} {
		t.Run(test.text, func(t *testing.T) {
			e := goodLock()
			test.breaks(e.story.turns)
			wrong(t, e.lockFacts()[test.fact], test.text)
		})
	}
}
