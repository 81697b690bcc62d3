package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/test/harness"
)

const digest = "digest"

// digest is the job of a node of its own, closed when the test ends.
func (w *world) digest(cfg node.Config, of once.Config, edits ...func(*rueidis.ClientOption)) *once.Job {
	w.Helper()
	of.Lease = cfg.Lease
	return once.New(w.node(cfg, edits...), digest, of)
}

// onceServant is a child that runs a name once in each hour. It takes
//
//	do  run order.Name, which takes order.By and then writes its period and its fence to the file
//	    order.Path; wait where somebody else is at it
type onceServant struct{ node *node.Node }

// manyAttempts are more than a test kills.
var manyAttempts = once.Config{Every: time.Hour, Attempts: 1000, Wait: true}

func (c *onceServant) carryOut(ctx context.Context, o order, a *answer) error {
	result, err := once.New(c.node, o.Name, manyAttempts).Do(ctx, func(_ context.Context, run *once.Run) error {
		<-time.After(o.By) // it heeds no context
		file, err := os.OpenFile(o.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		_, err = fmt.Fprintf(file, "%s %d\n", run.Period(), run.Fence())
		return err
	})
	a.Got, a.Fence, a.Claim = string(result.Status), result.Fence, result.Period.String()
	return err
}

// clocked is a world of locks on a server of its own, whose clock can be set.
func clocked(t *testing.T) (*world, *harness.Deployment) {
	t.Helper()
	t.Parallel()
	d := harness.Single(t)
	w := newWorld(t, d.Servers()[0])
	w.kind = keyspace.Lock
	return w, d
}

// An office is a server whose clock goes as the test says, and processes that run a name once in each
// hour of that clock.
type office struct {
	*world
	d      *harness.Deployment
	path   string        // of what they write down
	middle time.Duration // by what the clock is ahead, so that no hour ends by itself
	hour   int
	staff  []*child
	random *rand.Rand
	// kept are the fences of the runs whose success the server has confirmed, by period.
	kept map[string][]int64
}

// brief is the lease of processes that are killed and stopped.
const brief = 500 * time.Millisecond

func newOffice(t *testing.T) *office {
	t.Helper()
	w, d := clocked(t)
	o := &office{
		world: w, d: d, path: filepath.Join(t.TempDir(), "successes"),
		middle: untilHalf(), random: rand.New(rand.NewPCG(21, 0)), kept: map[string][]int64{},
	}
	o.Relies(brief)
	for range 3 {
		o.staff = append(o.staff, o.spawnAs(spec{Lease: brief, Once: true}))
	}
	return o
}

// next is the next hour, by the server's clock alone.
func (o *office) next() {
	o.Helper()
	o.hour++
	o.d.SetClock(o, o.middle+time.Duration(o.hour)*time.Hour)
}

// untilHalf is how long it is until the middle of an hour.
func untilHalf() time.Duration {
	now := time.Now()
	return now.Truncate(time.Hour).Add(3 * time.Hour / 2).Sub(now)
}

// some is a time below so many milliseconds.
func (o *office) some(most int) time.Duration {
	return time.Duration(o.random.IntN(most*1000)) * time.Microsecond
}

// ask has all of them do the hour.
func (o *office) ask() []<-chan answer {
	o.Helper()
	asked := make([]<-chan answer, len(o.staff))
	for i, c := range o.staff {
		asked[i] = c.send(order{Do: "do", Name: digest, By: o.some(60), Path: o.path})
	}
	return asked
}

// hear takes all answers, but that of one who was killed, -1 for nobody. It reports whether one of them says
// that the hour is done: a lease that is brief may end in each run, as the machine has others to run.
func (o *office) hear(asked []<-chan answer, killed int) (done bool) {
	o.Helper()
	for i, from := range asked {
		if i == killed {
			o.staff[i] = o.spawnAs(spec{Lease: brief, Once: true})
			continue
		}
		a := o.staff[i].hear(from)
		done = done || a.Err == "" && (a.Got == string(once.Ran) || a.Got == string(once.Done))
		if a.Got == string(once.Ran) && a.Err == "" {
			o.kept[a.Claim] = append(o.kept[a.Claim], a.Fence)
		}
	}
	return done
}

// done requires that the server knows a success of the hour that it is.
func (o *office) done() (period string) {
	o.Helper()
	last, err := once.New(o.nodeOn(o.admin, node.Config{}), digest, manyAttempts).Last(o.Within(patience))
	require.NoError(o, err)
	require.NotNil(o, last.Success)
	now := time.UnixMilli(o.now())
	require.False(o, now.Before(last.Success.Period.Start) || !now.Before(last.Success.Period.End),
		"%s is not what it is at %s", last.Success.Period, now.UTC())
	return last.Success.Period.String()
}

// successes are the fences of all runs that have done what there was to do, by period, in their order.
func (o *office) successes() map[string][]int64 {
	o.Helper()
	text, err := os.ReadFile(o.path)
	require.NoError(o, err)
	all := map[string][]int64{}
	for line := range strings.Lines(string(text)) {
		var period string
		var fence int64
		_, err := fmt.Sscan(line, &period, &fence)
		require.NoError(o, err)
		all[period] = append(all[period], fence)
	}
	return all
}

// At some moment of each hour something happens to one of the processes, or the server comes back
// without what it was told in that hour, as a replica that had fallen behind would. In every hour it is
// done; only where the server has lost that is a second success confirmed; and whatever runs twice, what
// is confirmed last has the greatest fence.
func TestEachHourIsDoneWhateverHappens(t *testing.T) {
	hours := 8 * amount.Times()
	o := newOffice(t)
	lost := map[string]bool{}
	for hour := range hours {
		o.next()
		one, killed := o.random.IntN(len(o.staff)), -1
		if hour%4 == 3 {
			o.server.Snapshot(o)
		}
		asked := o.ask()
		<-time.After(o.some(80)) // a random phase; no verdict goes by it
		switch hour % 4 {
		case 1:
			o.staff[one].kill()
			killed = one
		case 2:
			o.staff[one].stop()
			for i, from := range asked { // the others have done it, also if its lease had to end for that
				if i != one {
					asked[i] = again(o.staff[i].hear(from))
				}
			}
			o.staff[one].signal(syscall.SIGCONT)
		case 3:
			o.server.Restore(o)
			o.hear(asked, killed)
			asked = o.ask()
		}
		for tries := 0; !o.hear(asked, killed); tries++ {
			require.Less(t, tries, 20, "nobody gets it done")
			asked, killed = o.ask(), -1
		}
		if period := o.done(); hour%4 == 3 {
			lost[period] = true
		}
	}
	successes := o.successes()
	require.Len(t, successes, hours)
	twice := 0
	for period, fences := range successes {
		// Those that were confirmed, in the order in which they did what there was to do.
		kept := slices.DeleteFunc(slices.Clone(fences), func(f int64) bool { return !slices.Contains(o.kept[period], f) })
		require.Len(t, kept, len(o.kept[period]))
		require.True(t, slices.IsSorted(kept), "confirmed in %s: %d", period, kept)
		require.True(t, len(kept) <= 1 || lost[period], "confirmed in %s: %d", period, kept)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(fences))), len(fences), "two runs under one fence in %s", period)
		if len(kept) > 0 {
			require.Equal(t, slices.Max(fences), kept[len(kept)-1], "in %s: %d, confirmed %d", period, fences, kept)
		}
		if len(fences) > 1 {
			twice++
		}
	}
	t.Logf("%d hours, done twice in %d", hours, twice)
}

// again is an answer that has been heard already.
func again(a answer) <-chan answer {
	heard := make(chan answer, 1)
	heard <- a
	return heard
}

// The server loses an outcome, as by a failover to one whose clock is behind: the loop wakes up in a period
// that it has done. It does not do it again.
func TestALoopDoesNotDoAgainWhatItKnows(t *testing.T) {
	const every, periods = 300 * time.Millisecond, 6
	w, d := clocked(t)
	var back time.Duration
	forgets := observe.Func(func(e observe.Event) { // right after each run, on its goroutine
		if e.Kind == observe.Ran {
			back -= every / 2
			d.SetClock(t, back)
			w.do("DEL", w.ns+":once:{"+digest+"}:state")
		}
	})
	job := w.digest(node.Config{Lease: safe, Observer: forgets}, once.Config{Every: every})
	ctx, stop := context.WithCancel(w.Within(patience))
	defer stop()
	done := map[string]int{}
	err := job.Run(ctx, func(_ context.Context, run *once.Run) error {
		if done[run.Period().String()]++; done[run.Period().String()] > 1 || len(done) == periods {
			stop()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	for period, times := range done {
		require.Equal(t, 1, times, period)
	}
}

// The clock is put back to before a period while a loop stands in line for it. The loop does not sleep until
// that period would have ended.
func TestALoopGoesOnWhereItsPeriodIsAheadAgain(t *testing.T) {
	w, d := clocked(t)
	middle := untilHalf()
	d.SetClock(t, middle)
	hold, err := w.locker(node.Config{Lease: safe}).Lock(w.Within(patience), digest, nil)
	require.NoError(t, err)
	job := w.digest(node.Config{Lease: safe}, once.Config{Every: time.Hour})
	ctx, stop := context.WithCancel(w.Within(2 * patience))
	defer stop()
	var ran time.Time
	loop := testkit.Begin(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, job.Run(ctx, func(_ context.Context, run *once.Run) error {
			ran = run.Period().Start
			stop()
			return nil
		})
	})
	w.Await("the loop stands in line", func() bool { return len(w.look(digest).inLine()) == 1 })
	d.SetClock(t, middle-time.Hour)
	w.release(hold)
	loop.Fails(w, context.Canceled)
	require.Equal(t, time.Now().Add(middle-time.Hour).Truncate(time.Hour).UTC(), ran)
}

// What a full server refuses is the begin. A run that has begun ends, and others hear of it.
func TestRunsOnAFullServer(t *testing.T) {
	w := private(t).of(keyspace.Lock)
	n := w.node(node.Config{Lease: safe})
	year := once.Config{Every: 8784 * time.Hour, Lease: safe}
	job, other := once.New(n, digest, year), once.New(n, "forgotten", year)
	ctx := w.Within(patience)
	run, _, err := job.Begin(ctx)
	require.NoError(t, err)
	forgotten, _, err := other.Begin(ctx)
	require.NoError(t, err)
	w.do("DEL", w.ns+":once:{forgotten}:state")
	w.fill()
	_, _, err = once.New(n, "another", year).Begin(ctx)
	require.ErrorContains(t, err, "the server is full")
	long := errors.New(string(make([]byte, 512)))
	require.NoError(t, run.End(ctx, long))
	require.NoError(t, forgotten.End(ctx, nil))
	last, err := job.Last(ctx)
	require.NoError(t, err)
	require.Equal(t, long.Error(), last.Run.Error)
	done, err := other.Do(ctx, nothing)
	require.NoError(t, err)
	require.Equal(t, once.Done, done.Status)
	ends, err := w.do("PEXPIRETIME", w.ns+":once:{forgotten}:state").AsInt64()
	require.NoError(t, err)
	require.Positive(t, ends)
	require.Greater(t, w.now()+3*year.Every.Milliseconds(), ends)
	w.drained()
}

func nothing(context.Context, *once.Run) error { return nil }

// The smallest user runs, and one that may not write reads what has become of it.
func TestTheSmallestUsersOfRuns(t *testing.T) {
	w := private(t).of(keyspace.Lock)
	year := once.Config{Every: 8784 * time.Hour}
	ctx := w.Within(patience)
	smallest := w.digest(node.Config{}, year, w.server.SmallestUser(t, w.ns))
	reading := w.node(node.Config{}, w.server.ReadingUser(t, w.ns))
	done, err := smallest.Do(ctx, nothing)
	require.NoError(t, err)
	last, err := once.New(reading, digest, year).Last(ctx)
	require.NoError(t, err)
	require.Equal(t, done.Fence, last.Success.Fence)
	require.Equal(t, last.Success.Fence, last.Run.Fence)
	_, _, err = once.New(reading, "another", year).Begin(ctx)
	require.ErrorContains(t, err, "NOPERM")
}
