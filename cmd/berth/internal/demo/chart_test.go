package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func picture(s *story, now time.Duration) string {
	lines := chart(s, now, 70, paint(false))
	return "\n" + strings.Join(lines[:len(lines)-2], "\n") + "\n"
}

func TestThePictureOfAStory(t *testing.T) {
	s := good().story
	require.Equal(t, `
worker 1    ███████                                           finished
worker 2     ██████████████████████████                       finished
worker 3     ░░░░░░███✗·········                              killed
worker 4      ░░░░░░░░░░░░░░░░░░██████                        finished
            |0s   |1s    |2s    |3s   |4s    |5s    |6s
`, picture(s, 4500*time.Millisecond))
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

func TestColorsAreOptional(t *testing.T) {
	require.Equal(t, "x", paint(false)(red, "x"))
	require.Equal(t, "\x1b[31mx\x1b[0m", paint(true)(red, "x"))
	require.Equal(t, "  ", paint(true)(red, "  "), "nothing to be seen")
	require.Equal(t, "x", paint(true)("", "x"))
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

func TestTheLegendIsBrokenWhereThereIsNoRoom(t *testing.T) {
	require.Equal(t, []string{
		"░ waits   abc has that proxy   ~ it rests   ✗ killed",
		"· its lease runs out",
	}, legend(newStory(poolPlan).legend(), 59, paint(false)))
}

func TestWrap(t *testing.T) {
	require.Equal(t, []string{"one two", "three", "four"}, wrap("one two three four", 8))
	require.Equal(t, []string{""}, wrap("", 8))
}
