package notice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

func nothing() {}

// world is a notice, and the server that it is read from.
type world struct {
	*notice.Notice
	clock         clock.Clock
	reads, failed atomic.Int64 // how often the notice was read, and the process told that it could not be

	mu     sync.Mutex
	fields map[string]string // guarded by mu, like the others
	own    []string
	slow   time.Duration
	// problem and err are what a read returns.
	problem, err error
	heard        []string
}

// set changes the server, which may be read meanwhile.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// inWorld runs a test in virtual time, with the notice of a process that was made a minute ago. Names may be
// on other servers where apart says so.
func inWorld(t *testing.T, test func(t *testing.T, w *world), apart ...bool) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{fields: map[string]string{}, clock: clock.New()}
		w.Notice = notice.New(notice.Config{
			Clock: w.clock, Label: "worker/7", Kinds: []keyspace.Kind{keyspace.Lock, keyspace.Sem}, Timeout: 3 * time.Second,
			Read: w.read, Apart: slices.Contains(apart, true),
			Failed: func(error) { w.failed.Add(1) },
			Heard: func(field string, why error) {
				w.set(func() { w.heard = append(w.heard, fmt.Sprint(field, " ", why)) })
			},
		})
		defer w.Close()
		time.Sleep(time.Minute)
		test(t, w)
	})
}

func (w *world) read(ctx context.Context, own []string) (notice.Told, error) {
	w.reads.Add(1)
	w.mu.Lock()
	w.own = own
	told, slow := notice.Told{Fields: w.fields, Now: time.Now().UnixMilli(), Problem: w.problem}, w.slow
	w.mu.Unlock()
	select {
	case <-time.After(slow):
		w.mu.Lock()
		defer w.mu.Unlock()
		return told, w.err
	case <-ctx.Done():
		return notice.Told{}, ctx.Err()
	}
}

// says has a field say something, with the server's time as its number.
func (w *world) says(field, text string) {
	w.set(func() { w.fields = map[string]string{field: fmt.Sprintf("%d call %s", time.Now().UnixMilli(), text)} })
}

// inTime is a pause that ends then, as text.
func inTime(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).UnixMilli(), " x") }

func (w *world) pauses(d time.Duration) { w.says(pause, inTime(d)) }

// errSilent is the error of a read that was not answered.
var errSilent = &scriptkit.Error{Repeatable: true, Unavailable: true, Err: errors.New("no answer in time")}

// pause is the field of the pause of locks.
var pause = notice.Pause(keyspace.Lock)

// drains reads, and says whether the process drains then.
func (w *world) drains() bool {
	w.Ask(context.Background())
	return w.Drains()
}

func (w *world) sure() notice.State { return w.Sure(context.Background(), keyspace.Lock) }

func (w *world) current() notice.State { return w.Current(context.Background(), keyspace.Lock) }

func TestTheNoticeIsReadFromTheFirstClaimOnUntilTheEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.Zero(t, w.reads.Load())
		require.Zero(t, w.current().Number)
		require.EqualValues(t, 1, w.reads.Load(), "before the first claim")
		for range 3600 {
			time.Sleep(time.Second)
			before := w.reads.Load()
			w.current()
			require.Equal(t, before, w.reads.Load(), "who asks finds what the goroutine has read")
		}
		require.GreaterOrEqual(t, w.reads.Load(), int64(3600/5))
		require.LessOrEqual(t, w.reads.Load(), int64(3600/4+1))
		w.Close()
		w.Close()
		w.reads.Store(0)
		time.Sleep(time.Minute)
		w.current()
		require.Zero(t, w.reads.Load())
	})
}

func TestAPauseIsKnownWithItsEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		until := time.Now().Add(time.Minute).UnixMilli()
		w.says(pause, fmt.Sprintf("%d moving house", until))
		s := w.current()
		require.Equal(t, time.Now().UnixMilli(), s.Number)
		require.Equal(t, "moving house", s.Reason)
		require.Equal(t, time.Minute, w.Left(s))
		time.Sleep(50 * time.Second)
		require.InDelta(t, 10*time.Second, w.Left(w.current()), float64(ms), "the server tells whole milliseconds")
		time.Sleep(10*time.Second + ms)
		require.Zero(t, w.Left(w.current()), "it ends by itself")
		w.says(pause, "0 ")
		w.Ask(context.Background())
		require.Zero(t, w.Left(w.current()))
		require.Equal(t, time.Now().UnixMilli(), w.current().Number)
	})
}

// What was read counts from the start of the read: a walk that began after it waits longer.
func TestWhatIsKnownCountsForSixSecondsFromTheStartOfItsRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.current()
		start := time.Now()
		w.set(func() { w.slow = 1999 * ms })
		time.Sleep(6 * time.Second) // the second read is under way, or back: it began 4 to 5 s after the first
		w.pauses(time.Hour)
		time.Sleep(ms)
		for s := w.current(); w.Left(s) == 0; s = w.current() {
			require.Less(t, time.Since(start), 6*time.Second+notice.Vouches, "a pause is known 6 s after it was set")
			time.Sleep(ms)
		}
	})
}

func TestANoticeThatCannotBeReadStopsNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.set(func() { w.err = errors.New("NOPERM") })
		w.current()
		require.EqualValues(t, 1, w.failed.Load())
		w.set(func() { w.slow = time.Hour })
		start := time.Now()
		for range 100 {
			w.current()
			time.Sleep(time.Second)
		}
		require.Equal(t, 100*time.Second, time.Since(start), "nobody waits for it")
		require.EqualValues(t, 1, w.failed.Load(), "and it is told once")
		w.set(func() { w.err, w.slow = nil, 0 })
		time.Sleep(8 * time.Second)
		w.pauses(time.Hour)
		w.set(func() { w.slow = time.Hour })
		time.Sleep(10 * time.Second)
		w.current()
		require.EqualValues(t, 2, w.failed.Load())
	})
}

func TestACallerWaitsTwoSecondsAtTheMost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.set(func() { w.slow = time.Hour })
		start := time.Now()
		w.current()
		require.Equal(t, 2*time.Second, time.Since(start))
		ctx, cancel := context.WithTimeout(context.Background(), 300*ms)
		defer cancel()
		w.Ask(ctx)
		require.Equal(t, 2300*ms, time.Since(start), "or as long as its ctx lasts")
	})
}

// A client that was cut off is answered before its next read.
func TestWhoWasGrantedSomethingReadsAfterAReadThatFailed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.sure()
		w.set(func() { w.err = errSilent })
		time.Sleep(notice.Vouches)
		w.pauses(time.Hour)
		time.Sleep(notice.Vouches)
		require.Zero(t, w.Left(w.current()), "a call that may not be answered waits for nothing")
		w.set(func() { w.err = nil })
		require.NotZero(t, w.Left(w.sure()))
		before := w.reads.Load()
		w.sure()
		require.Equal(t, before, w.reads.Load())
	})
}

// Else each grant of a client would wait for it.
func TestALookThatFailsIsMadeOnceInFiveSecondsWhereTheNextOneFailsToo(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		apart bool
		looks int64
	}{
		"no answer":                   {errSilent, false, 50},
		"no answer of another server": {errSilent, true, 1},
		"the user may not read":       {errors.New("NOPERM"), false, 1},
		"the user may not read there": {errors.New("NOPERM"), true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.set(func() { w.err = tt.err })
				w.current()
				w.reads.Store(0)
				for range 50 {
					w.sure()
					time.Sleep(10 * ms)
				}
				require.Equal(t, tt.looks, w.reads.Load())
				w.set(func() { w.err = nil })
				time.Sleep(5 * time.Second)
				w.pauses(time.Hour)
				time.Sleep(5 * time.Second)
				require.NotZero(t, w.Left(w.sure()))
			}, tt.apart)
		})
	}
}

// A server that has lost the notice, or its newest words, ends no pause.
func TestAPauseLastsToItsEndUnlessANewerWordHasAnother(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		lost := 0
		w.Join("a", nothing, func() { lost++ })
		w.Join("b", nothing, func() { lost++ })
		w.Leave("b")
		reads := func() notice.State {
			w.Ask(context.Background())
			return w.current()
		}
		w.says(pause, "0 ")
		old := w.fields
		reads()
		time.Sleep(ms)
		w.pauses(time.Hour)
		paused := reads()
		for i, fields := range []map[string]string{nil, nil, old, nil} {
			w.set(func() { w.fields = fields })
			s := reads()
			require.InDelta(t, time.Hour, w.Left(s), float64(10*ms), i)
			require.Equal(t, paused.Number, s.Number)
			require.Equal(t, "x", s.Reason)
			time.Sleep(ms)
		}
		require.Equal(t, 2, lost, "told of each step back once")

		w.pauses(2 * time.Hour)
		require.InDelta(t, 2*time.Hour, w.Left(reads()), float64(10*ms))
		time.Sleep(ms)
		w.pauses(time.Minute)
		w.set(func() { old = w.fields })
		require.InDelta(t, time.Minute, w.Left(reads()), float64(10*ms), "a newer word makes it shorter, too")
		w.set(func() { w.fields = nil })
		time.Sleep(30 * time.Second)
		require.InDelta(t, 30*time.Second, w.Left(reads()), float64(10*ms))
		time.Sleep(31 * time.Second)
		require.Zero(t, w.Left(reads()), "its own end")
		w.set(func() { w.fields = map[string]string{pause: fmt.Sprint("7 call ", inTime(time.Minute))} })
		require.NotZero(t, w.Left(reads()), "whatever number it has: the server's clock may have gone back")
		w.says(pause, "0 ")
		require.Zero(t, w.Left(reads()))
	})
}

func TestManyPromptsAreTwoReads(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.current()
		w.reads.Store(0)
		w.set(func() { w.slow = 100 * ms })
		for range 10_000 {
			w.Prompt()
		}
		synctest.Wait()
		for range 10_000 {
			w.Prompt()
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 2, w.reads.Load(), "one under way, and one behind it")
	})
}

func TestWhoAsksIsAnsweredByAReadThatBeganLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.current()
		w.set(func() { w.slow = 100 * ms })
		w.Prompt()
		time.Sleep(50 * ms)
		w.says("l:worker/7", "0 drain")
		require.True(t, w.drains())
	})
}

func TestWhoDrains(t *testing.T) {
	for name, tt := range map[string]struct {
		field  string
		drains bool
	}{
		"its label":          {"l:worker/7", true},
		"the begin of it":    {"l:work*", true},
		"all":                {"l:*", true},
		"another label":      {"l:worker", false},
		"another begin":      {"l:worker/7/*", false},
		"its node":           {"n:b", true},
		"the node it was":    {"n:a", true},
		"another node":       {"n:c", false},
		"what nobody writes": {"x:worker/7", false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				calls := 0
				w.Join("a", func() { calls++ }, nothing)
				w.Join("b", func() { require.True(t, w.Drains()); calls++ }, nothing)
				w.says(tt.field, "0 drain")
				time.Sleep(time.Minute)
				w.current() // the first claim of a process that was there when it was said
				require.Equal(t, tt.drains, w.Drains())
				if !tt.drains {
					require.Zero(t, calls)
					return
				}
				require.Equal(t, 2, calls)
				w.set(func() { w.fields = nil }) // a flush
				require.True(t, w.drains())
				w.says(tt.field, "0 stop")
				require.False(t, w.drains())
				w.set(func() {
					require.Equal(t, []string{tt.field + " berth: drained by " + notice.Target(tt.field).String(), tt.field + " <nil>"}, w.heard)
				})
			})
		})
	}
}

// Its own clock says when it works again, also where the server has forgotten the drain, or does not answer.
func TestADrainEndsByItself(t *testing.T) {
	for name, after := range map[string]func(w *world){
		"as it was said":         func(*world) {},
		"forgotten":              func(w *world) { w.set(func() { w.fields = nil }) },
		"reads fail":             func(w *world) { w.set(func() { w.err = errSilent }) },
		"reads are not answered": func(w *world) { w.set(func() { w.slow = time.Hour }) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				calls := 0
				w.Join("a", func() { calls++ }, nothing)
				w.current()
				w.says("l:work*", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli(), " drain moving\nhouse"))
				require.True(t, w.drains())
				require.EqualError(t, w.Draining(), `berth: drained by label "work*": moving\nhouse`)
				require.ErrorIs(t, w.Draining(), berth.ErrDraining)
				after(w)
				time.Sleep(time.Minute - ms)
				require.True(t, w.Drains())
				time.Sleep(2 * ms)
				require.False(t, w.Drains())
				time.Sleep(5*time.Second + 2*time.Second)
				w.set(func() { require.Len(t, w.heard, 2) })
				require.Equal(t, 1, calls)
				w.set(func() { w.err, w.slow = nil, 0 })
				w.says("l:work*", "0 drain")
				require.True(t, w.drains())
				require.Equal(t, 2, calls)
			})
		})
	}
}

// What one operator makes longer, or shorter, counts.
func TestTheLastWordOfADrainCounts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Join("a", nothing, nothing)
		for i, last := range []time.Duration{time.Minute, time.Hour, time.Second, 0} {
			until := int64(0)
			if last > 0 {
				until = time.Now().Add(last).UnixMilli()
			}
			w.says("n:a", fmt.Sprint(until, " drain"))
			require.True(t, w.drains(), i)
			time.Sleep(2 * time.Second)
			require.Equal(t, last != time.Second, w.Drains(), i)
		}
		w.set(func() { w.fields["l:*"] = fmt.Sprintf("%d x 1 drain over", time.Now().UnixMilli()) })
		w.says("n:a", "0 stop")
		require.False(t, w.drains(), "a drain that is over is none")
	})
}

// However long the first read takes.
func TestWhoStartsLaterUnderTheLabelIsNotDrained(t *testing.T) {
	for _, slow := range []time.Duration{0, 1999 * ms} {
		t.Run(slow.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				before := time.Now().Add(-time.Minute - ms).UnixMilli()
				w.set(func() {
					w.fields, w.slow = map[string]string{"l:worker/7": fmt.Sprintf("%d call 0 drain", before)}, slow
				})
				w.current()
				require.False(t, w.Drains())
			})
		})
	}
}

// What an operator says to a node that was replaced is about the process; the node itself is forgotten.
func TestANodeThatHasLeftIsNotToldToDrain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		told := 0
		w.Join("a", func() { told++ }, nothing)
		w.Join("b", func() { told += 10 }, nothing)
		w.Leave("a")
		w.says("n:a", "0 drain")
		w.current()
		require.True(t, w.Drains())
		require.Equal(t, 10, told)
	})
}

// Each field is set and stopped by itself: who stops one drain stops no other.
func TestAProcessDrainsWhileOneFieldSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Join("a", nothing, nothing)
		now := time.Now().UnixMilli()
		for _, c := range []struct {
			node, label string
			drains      bool
		}{{"drain", "drain", true}, {"stop", "drain", true}, {"drain", "stop", true}, {"stop", "stop", false}} {
			now++
			w.set(func() {
				w.fields = map[string]string{"n:a": fmt.Sprint(now, " x 0 ", c.node), "l:work*": fmt.Sprint(now, " x 0 ", c.label)}
			})
			require.Equal(t, c.drains, w.drains(), "%v", c)
		}
	})
}

// It is neither a pause without end nor the end of one.
func TestADamagedPauseIsToldAndChangesNothing(t *testing.T) {
	for _, until := range []string{"99999999999999999999", "9999999999999999", "-1", "x"} {
		t.Run(until, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.says(pause, until+" forged")
				require.Zero(t, w.Left(w.current()))
				w.says(pause, fmt.Sprintf("%d moving", time.Now().Add(time.Hour).UnixMilli()))
				w.Ask(context.Background())
				known := w.current()
				w.says(pause, until+" forged")
				for range 3 {
					w.Ask(context.Background())
				}
				require.Equal(t, time.Hour, w.Left(w.current()))
				require.Equal(t, known.Number, w.current().Number)
				require.EqualValues(t, 2, w.failed.Load(), "each time once")
				w.says(pause, "0 ")
				w.Ask(context.Background())
				require.Zero(t, w.Left(w.current()))
			})
		})
	}
}

func TestAForgedPauseIsNoLongerThanAPauseMayBe(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.says(pause, "999999999999999 forged")
		require.Equal(t, notice.MostPause, w.Left(w.current()))
	})
}

func TestANoticeThatIsNotReadWholeCountsAndIsToldOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Join("a", nothing, nothing)
		w.set(func() { w.problem = errors.New("crowded") })
		w.says("n:a", "0 drain")
		for range 3 {
			w.Ask(context.Background())
		}
		require.True(t, w.Drains())
		require.EqualValues(t, 1, w.failed.Load())
		require.Equal(t, []string{"l:worker/7", pause, "pause:sem", "n:a"}, w.own)
	})
}

func TestAFieldThatBerthHasNotWrittenIsDamaged(t *testing.T) {
	require.Zero(t, notice.Read(""), "it is not there")
	for _, text := range []string{"7", "x call 0 drain", "7 call 0", "-7 call 0 drain", "9999999999999999 call 0 drain"} {
		require.Equal(t, notice.Field{Damaged: true}, notice.Read(text), text)
	}
	for _, until := range []string{"x", "-1", "99999999999999999999"} {
		require.Equal(t, notice.Field{Number: 7, Damaged: true}, notice.Read("7 call "+until+" drain"), "an operator may write over it")
	}
	require.Equal(t, notice.Field{Number: 7, Until: 8, What: "a reason\nof two lines "}, notice.Read("7 call 8 a reason\nof two lines "))
}
