package berthgocron_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	berthgocron "github.com/berth-go/berth/contrib/gocron"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

const digest = "digest"

// hourly is the Config of most tests, waiting that with which a replica waits.
var (
	hourly  = once.Around(time.Hour, 0)
	waiting = once.Config{Every: hourly.Every, Offset: hourly.Offset, Wait: true}
)

// attempts is the Config of a job that is begun so often at most.
func attempts(most int) once.Config {
	cfg := hourly
	cfg.Attempts = most
	return cfg
}

// locker is that of a new process.
func (w *world) locker(cfg once.Config) *berthgocron.Locker {
	w.t.Helper()
	return berthgocron.NewLocker(w.node(), cfg)
}

// last is what is known of the job.
func (w *world) last() once.Last {
	w.t.Helper()
	last, err := once.New(w.node(), digest, hourly).Last(context.Background())
	require.NoError(w.t, err)
	return last
}

// job has a scheduler run a job by the name digest.
func (w *world) job(s gocron.Scheduler, cron string, f any, opts ...gocron.JobOption) {
	w.t.Helper()
	_, err := s.NewJob(gocron.CronJob(cron, false), gocron.NewTask(f), append(opts, gocron.WithName(digest))...)
	require.NoError(w.t, err)
}

func TestAShortJobRunsOnOneReplica(t *testing.T) {
	apart := []time.Duration{0, -11 * time.Second, time.Millisecond, 10 * time.Second}
	for _, row := range []struct {
		cron  string
		cfg   once.Config
		lets  time.Duration
		runs  int
		ahead []time.Duration // the clocks, on both sides of the server's
	}{
		{"0 * * * *", hourly, 3 * time.Hour, 3, apart},
		{"0 * * * *", hourly, 4 * time.Hour, 4, []time.Duration{-29 * time.Minute, 29 * time.Minute}}, // nearly half a period
		{"0 * * * *", waiting, 3 * time.Hour, 3, apart},
		{"30 * * * *", once.Around(time.Hour, 30*time.Minute), 3 * time.Hour, 3, apart},
		{"*/5 * * * *", once.Around(5*time.Minute, 0), time.Hour, 12, apart},
		{"17 2 * * *", once.Around(24*time.Hour, 2*time.Hour+17*time.Minute), 2 * time.Hour, 1, apart},
		{"50 0,2 * * 6", once.Around(time.Minute, 0), 3 * time.Hour, 2, apart},
	} {
		t.Run(fmt.Sprintf("%s every %s", row.cron, row.cfg.Every), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				runs := map[time.Time]int{}
				for _, ahead := range row.ahead {
					l := w.locker(row.cfg)
					w.job(w.replica(ahead, gocron.WithDistributedLocker(l)), row.cron, func() {
						w.mu.Lock()
						defer w.mu.Unlock()
						runs[l.Current(digest).Period().Start]++
					})
				}
				time.Sleep(row.lets)
				w.mu.Lock()
				defer w.mu.Unlock()
				require.Equal(t, row.runs, len(runs)) //nolint:testifylint // Len prints all of them
				for period, n := range runs {
					require.Equal(t, 1, n, period)
				}
			})
		})
	}
}

func TestWhoSkipsAJobSaysWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		here, there := w.locker(hourly), w.locker(hourly)
		lock, err := here.Lock(t.Context(), digest)
		require.NoError(t, err)
		_, err = there.Lock(t.Context(), digest)
		require.ErrorIs(t, err, berthgocron.ErrSkipped)
		require.EqualError(t, err, `berth: the job is skipped: "digest" of 2000-01-01T00:30:00Z: running`)
		require.NoError(t, lock.Unlock(t.Context()))
		_, err = w.locker(hourly).Lock(t.Context(), digest)
		require.EqualError(t, err, `berth: the job is skipped: "digest" of 2000-01-01T00:30:00Z: done`)
		_, err = there.Lock(t.Context(), "{}")
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
	})
}

// Another process runs the job each second: who asks once an hour is told of that once in its period.
func TestALockerKeepsTheJobOfAName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		told := 0
		l := berthgocron.NewLocker(w.server.Node(node.Config{Observer: observe.Func(func(e observe.Event) {
			if e.Kind == observe.SettingsDiffer {
				told++
			}
		})}), hourly)
		lock, err := w.locker(once.Config{Every: time.Second}).Lock(t.Context(), digest)
		require.NoError(t, err)
		require.NoError(t, lock.Unlock(t.Context()))
		for range 2 {
			_, err = l.Lock(t.Context(), digest)
			require.ErrorIs(t, err, berthgocron.ErrSkipped)
		}
		require.Equal(t, 1, told)
	})
}

func TestAJobKnowsItsRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.locker(hourly)
		causes := make(chan error, 1)
		w.job(w.replica(0, gocron.WithDistributedLocker(l)), "0 * * * *", func() {
			run := l.Current(digest)
			<-run.Context().Done()
			causes <- context.Cause(run.Context())
		})
		require.Nil(t, l.Current(digest))
		time.Sleep(30 * time.Minute)
		w.server.LoseAll(digest)
		require.ErrorIs(t, <-causes, berth.ErrLost)
		synctest.Wait()
		require.Nil(t, l.Current(digest))
	})
}

func TestAFailureIsToldByTheListener(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l, broken := w.locker(hourly), errors.New("broken")
		outcomes := make(chan error, 1)
		w.job(w.replica(0, gocron.WithDistributedLocker(l)), "0 * * * *", func() error { return <-outcomes },
			gocron.WithEventListeners(gocron.AfterJobRunsWithError(l.Failed)))
		for _, failure := range []error{nil, broken, nil} {
			outcomes <- failure
			time.Sleep(time.Hour)
			last := w.last()
			if failure == nil {
				require.Equal(t, once.Succeeded, last.Run.Outcome)
			} else {
				require.Equal(t, once.Failed, last.Run.Outcome)
				require.Equal(t, "broken", last.Run.Error)
			}
		}
		l.Failed(uuid.Nil, "unknown", broken)
	})
}

// The first run loses its hold and works on, the second begins meanwhile: one of them fails.
func TestAFailureIsNotThatOfARunBeside(t *testing.T) {
	const first, second = 0, 1
	for name, row := range map[string]struct {
		lasts   [2]time.Duration
		fails   int
		outcome once.Outcome // of the second
	}{
		"the older one fails, and ends first": {[2]time.Duration{80 * time.Minute, 40 * time.Minute}, first, once.Succeeded},
		"the older one fails, and ends last":  {[2]time.Duration{90 * time.Minute, 10 * time.Minute}, first, once.Succeeded},
		"the newer one fails, and ends first": {[2]time.Duration{90 * time.Minute, 10 * time.Minute}, second, once.Failed},
		"the newer one fails, and ends last":  {[2]time.Duration{80 * time.Minute, 40 * time.Minute}, second, once.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				l := w.locker(hourly)
				var begun atomic.Int32
				w.job(w.replica(0, gocron.WithDistributedLocker(l)), "0 * * * *", func() error {
					run := int(begun.Add(1)) - 1
					time.Sleep(row.lasts[run])
					if run == row.fails {
						return errors.New("broken")
					}
					return nil
				}, gocron.WithEventListeners(gocron.AfterJobRunsWithError(l.Failed)))
				time.Sleep(30 * time.Minute)
				w.server.LoseAll(digest)
				time.Sleep(110 * time.Minute)
				require.EqualValues(t, 2, begun.Load())
				require.Equal(t, row.outcome, w.last().Run.Outcome)
			})
		})
	}
}

func TestAPanicThatIsRecoveredIsAFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.locker(hourly)
		w.job(w.replica(0, gocron.WithDistributedLocker(l)), "0 * * * *", func() { panic("at the disco") },
			gocron.WithEventListeners(
				gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {}), gocron.AfterJobRunsWithError(l.Failed)))
		time.Sleep(time.Hour)
		last := w.last()
		require.Equal(t, once.Failed, last.Run.Outcome)
		require.Contains(t, last.Run.Error, "at the disco")
	})
}

func TestAShutdownStopsARunAndCountsNoAttempt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.locker(attempts(1))
		s := w.replica(0, gocron.WithDistributedLocker(l))
		w.job(s, "0 * * * *", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			gocron.WithEventListeners(gocron.AfterJobRunsWithError(l.Failed)))
		time.Sleep(30 * time.Minute)
		require.NoError(t, s.Shutdown())
		require.Equal(t, once.Stopped, w.last().Run.Outcome)

		l = w.locker(attempts(1))
		lock, err := l.Lock(t.Context(), digest)
		require.NoError(t, err)
		l.Failed(uuid.Nil, digest, errors.New("broken"))
		require.NoError(t, lock.Unlock(t.Context()))
		_, err = l.Lock(t.Context(), digest)
		require.ErrorIs(t, err, once.ErrUsedUp, "a failure counts")
	})
}

func TestLockSaysWhatCannotBeAndCheckOfTheNodeDoesBefore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for field, cfg := range map[string]once.Config{
			"Every":    once.Around(-time.Hour, 0),
			"Offset":   once.Around(time.Hour, 1),
			"Attempts": attempts(-1),
		} {
			n := w.node()
			l := berthgocron.NewLocker(n, cfg)
			_, checked := n.Check(t.Context())
			_, err := l.Lock(t.Context(), digest)
			for _, err := range []error{checked, err} {
				var refused *berth.ConfigError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, field, refused.Field)
			}
		}
		_, err := berthgocron.NewLocker(nil, hourly).Lock(t.Context(), digest)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
	})
}

// candidate is an Elector of a process of its own that stands for election.
type candidate struct {
	*berthgocron.Elector
	leave context.CancelFunc
	left  <-chan error
}

// candidate stands for election, and lets everything settle.
func (w *world) candidate() *candidate {
	w.t.Helper()
	e := berthgocron.NewElector(w.node(), "scheduler", leader.Config{KeepWhenWanted: true})
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() { left <- e.Run(ctx) }()
	w.t.Cleanup(cancel)
	synctest.Wait()
	return &candidate{e, cancel, left}
}

func (c *candidate) leads() bool { return c.IsLeader(context.Background()) == nil }

func TestTheLeaderRunsAllJobs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ran []string
		all := map[string]*candidate{"first": w.candidate(), "second": w.candidate()}
		for name, c := range all {
			w.job(w.replica(0, gocron.WithDistributedElector(c)), "* * * * *", func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				ran = append(ran, name)
			})
		}
		time.Sleep(2*time.Minute + time.Second)
		all["first"].leave()
		require.ErrorIs(t, <-all["first"].left, context.Canceled)
		time.Sleep(2*time.Minute + time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Equal(t, []string{"first", "first", "second", "second"}, ran)
	})
}

func TestLeadershipThatIsWantedBackIsHandedOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, second := w.candidate(), w.candidate()
		_, err := w.node().Operator().Want(t.Context(), berth.Target{Kind: keyspace.Lock, Name: "scheduler"})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.ErrorIs(t, first.IsLeader(t.Context()), berthgocron.ErrNotLeader)
		require.True(t, second.leads())
	})
}

func TestNobodyStandsWithBadArguments(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for field, e := range map[string]*berthgocron.Elector{
			"node":     berthgocron.NewElector(nil, "scheduler", leader.Config{}),
			"name":     berthgocron.NewElector(w.node(), "{}", leader.Config{}),
			"Priority": berthgocron.NewElector(n, "scheduler", leader.Config{Priority: 1000}),
		} {
			var refused *berth.ConfigError
			require.ErrorAs(t, e.Run(t.Context()), &refused)
			require.Equal(t, field, refused.Field)
		}
		_, err := n.Check(t.Context())
		require.ErrorContains(t, err, "Priority")
	})
}
