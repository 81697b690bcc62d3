package once_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// hourlyAt fires at some minutes of each hour.
func hourlyAt(minutes ...int) once.Config {
	return once.Config{Schedule: schedule(func(t time.Time) time.Time {
		for start := t.Truncate(hour); ; start = start.Add(hour) {
			for _, m := range minutes {
				if m := start.Add(time.Duration(m) * time.Minute); m.After(t) {
					return m
				}
			}
		}
	})}
}

// threes has periods of half an hour, a minute, and half an hour.
var threes = hourlyAt(20, 21, 22)

func TestALoopWithAScheduleRunsAtItsMoments(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		began, _ := n.loop(threes, takes(time.Second, nil))
		w.Until(81*time.Minute + 10*time.Second)
		require.Equal(t, []time.Duration{20 * time.Minute, 21 * time.Minute, 22 * time.Minute, 80 * time.Minute, 81 * time.Minute}, *began)
		require.Empty(t, n.Told(observe.Missed))
	})
}

// Nobody runs at the moment: the run is made up for within the period.
func TestALoopThatComesAfterTheMomentRunsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Until(45 * time.Minute)
		began, _ := w.node().loop(hourlyAt(20), takes(0, nil))
		w.Until(80 * time.Minute)
		require.Equal(t, []time.Duration{45 * time.Minute, 80 * time.Minute}, *began)
	})
}

func TestPeriodsOfOtherLengthsAreReckonedAsTheScheduleSays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		due := func() time.Duration { return time.UnixMilli(w.Int("HGET", record, "due")).Sub(w.Began) }
		w.Until(20 * time.Minute)
		n.ran(threes, errMine)
		require.Equal(t, 20*time.Minute+30*time.Second, due(), "at the end of its own period")
		w.Until(21 * time.Minute)
		n.ran(threes, nil) // the period of a minute
		require.Equal(t, 51*time.Minute, due(), "at the end of the next one, which is longer")
		require.Equal(t, 80*time.Minute+30*time.Second, time.UnixMilli(w.Int("PEXPIRETIME", record)).Sub(w.Began))
		w.Until(30 * time.Minute)
		n.ran(threes, errMine)
		require.Equal(t, 51*time.Minute, due())
		w.Until(81 * time.Minute)
		require.Equal(t, 2, n.ran(threes, nil).Missed, "the one that failed, and that of 01:20")
	})
}

// A run begins between the look of a call and its script, in a period before.
func TestACallThatDoesNotKnowTheLastRunAsksAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		w.Until(20 * time.Minute)
		a.ran(threes, nil)
		w.Until(22 * time.Minute)
		b.OnCommand(on("once_begin", link.Pass, func() {
			start := w.Began.Add(20*time.Minute + 30*time.Second).UnixMilli()
			w.Do("HSET", record, "run", fmt.Sprintf("%d %d 2 1 %d %d 0 0 failed n 0:", start, start+60_000, start, start+1))
		}))
		require.Equal(t, 1, b.ran(threes, nil).Missed)
		require.Equal(t, 2, b.Count("once_begin"))
	})
}

// The clocks go ten minutes ahead of what an older release of the data says: what one has done the other does not do again.
func TestSchedulesThatDifferShareTheirMoments(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.node(), w.node(), w.node()
		for at := 20 * time.Minute; at < 2*hour; at += hour {
			w.Until(at)
			a.ran(hourlyAt(20), nil)
			w.Until(at + 10*time.Minute)
			b.finds(hourlyAt(30), once.Done)
			c.finds(once.Daily("01:00", ""), once.Done)
		}
		told := b.Told(observe.SettingsDiffer)
		require.Len(t, told, 2, "once in a period")
		require.Equal(t, "Schedule 2026-01-01T00:00:00Z to 2026-01-01T01:00:00Z, stored 2025-12-31T23:50:00Z to 2026-01-01T00:50:00Z", told[0].Detail)
		w.Until(2*hour + 5*time.Minute)
		b.ran(hourlyAt(30), nil) // the next moment is another one, for both
		a.finds(hourlyAt(20), once.Done)
		w.Until(2*hour + 55*time.Minute)
		b.finds(hourlyAt(30), once.Done)
		a.ran(hourlyAt(20), nil)
	})
}
