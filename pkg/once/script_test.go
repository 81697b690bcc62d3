package once_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/scripts/composed"
)

// The words that begin.go knows are those of the scripts.
func TestTheStatusesAreThoseOfTheScripts(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("begin.go")
	require.NoError(t, err)
	known := map[string]bool{}
	for _, constant := range regexp.MustCompile(`(?m)^\tstatus\w+ += "(\w+)"$`).FindAllStringSubmatch(string(source), -1) {
		known[constant[1]] = true
	}
	told := map[string]bool{}
	for _, name := range []string{"once_begin", "once_end"} {
		for _, reply := range composed.Library().Script(name).Returns {
			told[reply.Status] = true
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(known)))
}

func TestWhatIsKnownIsForgottenAtTheEndOfThePeriodAfterTheNext(t *testing.T) {
	const period = 6 * time.Minute
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		expires := func() time.Duration { return time.UnixMilli(w.Int("PEXPIRETIME", record)).Sub(w.Began) }
		w.Advance(time.Minute)
		n.ran(once.Config{Every: period}, nil)
		require.Equal(t, 3*period, expires())
		w.Until(3 * time.Minute)
		_, err := n.job(waiting(once.Config{Every: 2 * time.Minute})).Do(t.Context(), takes(3*period, nil))
		require.NoError(t, err)
		require.Equal(t, 3*period+4*time.Minute+4*time.Minute, expires(), "a run that took longer, by its own settings")
		w.Until(5 * period)
		require.Equal(t, once.Last{}, n.last())
		require.Empty(t, slices.DeleteFunc(w.Keys(), func(key string) bool { return !strings.Contains(key, "once") }))
	})
}

func TestWhatIsKnownIsNeverForgottenEarlierThanItWasToBe(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.ran(once.Config{Every: 24 * hour}, nil)
		at := w.Int("PEXPIRETIME", record)
		w.Until(2 * hour)
		n.ran(hourly, nil)
		require.Equal(t, at, w.Int("PEXPIRETIME", record))
	})
}

func TestLastSaysWhatBecameOfTheRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		require.Equal(t, once.Last{}, b.last())
		first := a.ran(hourly, nil)
		last := b.last()
		require.Equal(t, first.Info, *last.Success)
		require.Equal(t, last.Success, last.Run)
		w.Until(hour)
		call := a.start(t.Context(), hourly, takes(time.Minute, fmt.Errorf("%s\xff", strings.Repeat("é", 300))))
		last = b.last()
		require.Equal(t, once.Begun, last.Run.Outcome)
		require.Zero(t, last.Run.Took())
		require.Equal(t, first.Info, *last.Success)
		call.Granted(hour + time.Minute)
		last = b.last()
		require.Equal(t, once.Failed, last.Run.Outcome)
		require.Equal(t, strings.Repeat("é", 256), last.Run.Error)
		require.Equal(t, time.Minute, last.Run.Took())
		require.Equal(t, w.Began.Add(hour).UTC(), last.Run.Begun)
	})
}

func TestAnErrorAndALabelMayBeAnyBytes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for _, text := range []string{"", " ", "7:x", "a b\nc", "1 2 3 4 5 6 7 8 done x 3:"} {
			run, _, err := n.job(once.Config{Every: hour, Attempts: 100}).Begin(t.Context())
			require.NoError(t, err)
			require.NoError(t, run.End(t.Context(), fmt.Errorf("%s", text)))
			require.Equal(t, text, n.last().Run.Error)
		}
	})
}

// It comes while a call is on its way to the script, so that the look before does not see it.
func TestWhatANewerReleaseKeepsIsLeftAlone(t *testing.T) {
	for _, field := range []string{"fmt 2", "run damaged", "success damaged"} {
		inWorldOf(t, field, func(t *testing.T, w *world) {
			n := w.node()
			var before map[string]string
			meets := func(script string) {
				n.OnCommand(func(c link.Command) link.Fate {
					if c.Name == script {
						w.Do(append([]string{"HSET", record}, strings.Fields(field)...)...)
						before = w.kept()
					}
					return link.Pass
				})
			}
			n.ran(hourly, nil)
			w.Until(hour)
			run, _, err := n.job(hourly).Begin(t.Context())
			require.NoError(t, err)
			old := w.kept()
			meets("once_end")
			requireLeft := func(err error) {
				want := state.ErrDamaged
				if field == "fmt 2" {
					want = berth.ErrIncompatible
				}
				require.ErrorIs(t, err, want)
				require.NotEmpty(t, before)
				require.Equal(t, before, w.kept())
			}
			requireLeft(run.End(t.Context(), nil))
			_, err = n.job(hourly).Last(t.Context())
			requireLeft(err)

			w.Do("HSET", record, "fmt", old["fmt"], "run", old["run"], "success", old["success"])
			w.Until(2 * hour)
			before = nil
			meets("once_begin")
			_, err = n.job(hourly).Do(t.Context(), never(t))
			requireLeft(err)
		})
	}
}

// The server's clock was put back since the run: its period lies ahead.
func TestWhatLiesFarAheadCountsAsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.ran(hourly, nil)
		ahead := func(by time.Duration) {
			start := w.Began.Add(by).UnixMilli()
			text := fmt.Sprintf("%d %d 1 1 %d %d 0 0 done n 0:", start, start+hour.Milliseconds(), start, start)
			w.Do("HSET", record, "run", text, "success", text, "expires", fmt.Sprint(start+1e12))
		}
		ahead(w.Now() + hour + time.Minute)
		n.finds(hourly, once.Done)
		ahead(w.Now() + hour + time.Minute + ms)
		r := n.ran(hourly, nil)
		require.Equal(t, 1, r.Attempt)
		require.Equal(t, r.Fence, n.last().Success.Fence)
		require.Equal(t, w.Began.Add(3*hour).UnixMilli(), w.Int("PEXPIRETIME", record))
		ahead(2 * hour)
		n.ran(hourly, errMine)
		require.Nil(t, n.last().Success)
	})
}
