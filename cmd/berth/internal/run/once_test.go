//go:build unix

package run

import (
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

// onceArgs run a command once in each period, a leap year so that no test meets the end of one.
func onceArgs(flags ...string) []string {
	return append([]string{"run", "--once", "gpu", "--every", "8784h", "--offset", middle()}, flags...)
}

// middle is an offset by which it is now the middle of a period, the same for all tests.
var middle = sync.OnceValue(func() string {
	const year = 8784 * time.Hour
	now := time.Duration(time.Now().Unix()) * time.Second
	return ((now + year/2) % year).String()
})

// lastRun is what is known of the runs.
func lastRun(t *testing.T, s *embedded.Server) once.Last {
	t.Helper()
	redis, err := s.Client()
	require.NoError(t, err)
	defer redis.Close()
	jobs, err := once.New(redis, qlock.Config{})
	require.NoError(t, err)
	last, err := jobs.Last(t.Context(), "gpu")
	require.NoError(t, err)
	return last
}

func TestACommandRunsOnceInAPeriod(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	first := apptest.Spawn(t, s.URL(), onceArgs("--", "sh", "-c", `echo "$BERTH_NAME $BERTH_ATTEMPT $BERTH_FENCE"`)...)
	done := lastRun(t, s).Success
	require.NotNil(t, done)
	require.Equal(t, apptest.Outcome(0, "gpu 1 "+strconv.FormatInt(done.Fence, 10)+"\n", ""), first)
	require.Contains(t, done.Label, "/sh/")

	again := apptest.Spawn(t, s.URL(), onceArgs("--", "sh", "-c", "echo twice")...)
	require.Equal(t, 0, again.Code)
	require.Empty(t, again.Out)
	require.Equal(t, `berth: "gpu" is done for the period from `+done.Period.String()+" by "+done.Label+"; the command did not run\n", again.Err)

	strict := apptest.Spawn(t, s.URL(), onceArgs("--strict", "--", "true")...)
	require.Equal(t, apptest.Outcome(77, "", again.Err), strict)
	require.Equal(t, done, lastRun(t, s).Run, "and nothing was written")
}

func TestTheOutcomeIsThatOfTheCommand(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for attempt, code := range []int{7, 9} {
		r := apptest.Spawn(t, s.URL(), onceArgs("--attempts", "2", "--", "sh", "-c", "exit "+strconv.Itoa(code))...)
		require.Equal(t, apptest.Outcome(code, "", ""), r)
		last := lastRun(t, s)
		require.Nil(t, last.Success)
		require.Equal(t, once.Failed, last.Run.Outcome)
		require.Equal(t, attempt+1, last.Run.Attempt)
		require.Equal(t, "exit code "+strconv.Itoa(code), last.Run.Error)
	}
	r := apptest.Spawn(t, s.URL(), onceArgs("--attempts", "2", "--", "true")...)
	require.Equal(t, 75, r.Code)
	require.Contains(t, r.Err, "attempts of the period used up: 2 of 2")
	r = apptest.Spawn(t, s.URL(), onceArgs("--attempts", "3", "--", t.TempDir())...)
	require.Equal(t, 126, r.Code, "before anything waits")
	require.Equal(t, 2, lastRun(t, s).Run.Attempt)
}

func TestWhoComesMeanwhileLeavesOrWaits(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), append(onceArgs(), apptest.LockArgs("polite")[3:]...))
	held := apptest.HoldersOf(t, s, keyspace.Lock, "gpu")
	require.Len(t, held, 1)
	require.Equal(t, r.claim, held[0].ID)
	late := apptest.Spawn(t, s.URL(), onceArgs("--", "true")...)
	require.Equal(t, 0, late.Code)
	require.Contains(t, late.Err, `berth: "gpu" is being done for the period from `)
	require.Contains(t, late.Err, " by "+held[0].Label)
	strict := apptest.Spawn(t, s.URL(), onceArgs("--strict", "--", "true")...)
	require.Equal(t, 77, strict.Code)
	impatient := apptest.Spawn(t, s.URL(), onceArgs("--wait", "12s", "--", "true")...)
	require.Equal(t, 75, impatient.Code)
	require.Contains(t, impatient.Err, "timed out")

	next := apptest.Command(t, s.URL(), onceArgs("--wait", "1h", "--", "true")...)
	require.NoError(t, next.Start())
	require.Eventually(t, func() bool { return queueLength(t, s) == 1 }, apptest.Patience, 10*time.Millisecond)
	r.signal(syscall.SIGTERM)
	require.Equal(t, "got terminated", r.line())
	require.Equal(t, 3, r.end(), "the command's own code")
	require.NoError(t, next.Wait(), "it takes over")
	last := lastRun(t, s)
	require.Equal(t, 2, last.Success.Attempt)
	requireUnlocked(t, s.URL())
}

func TestARunWhoseLockIsReleasedByForceHasFailed(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), append(onceArgs("--lease", "1h"), apptest.LockArgs("polite")[3:]...))
	require.Zero(t, apptest.Call(t, s.URL(), "lock", "release", "gpu", "--force").Code)
	require.Equal(t, "got terminated", r.line())
	require.Equal(t, 76, r.end())
	require.Contains(t, r.errs.String(), `the lock "gpu", fence `+r.fence+`, was released by somebody else`)
	last := lastRun(t, s)
	require.Nil(t, last.Success)
	require.Equal(t, once.Failed, last.Run.Outcome)
}

func TestWhatOnceRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ flags, says string }{
		{"--once a", "--every is missing"},
		{"--once a --every 10ms", "invalid --every: 10ms is no whole number of milliseconds from 20ms on"},
		{"--once a --every 1h --offset 1h", "invalid --offset: 1h0m0s is not below Every, 1h0m0s"},
		{"--once a --every 1h --attempts 0", "invalid --attempts: 0 is below 1"},
		{"--once a --every 1h --try", "invalid --try: --once does not wait"},
		{"--once a --every 1h --owner b", "invalid --owner: it is not for --once"},
		{"--once a{ --every 1h", "invalid --once: must have none of {}"},
		{"--once a --every 1h --lock b", "invalid --once: with --sem, --lock or --pool there are two"},
		{"--lock a --every 1h", "invalid --every: it is for --once"},
		{"--pool a --strict", "invalid --strict: it is for --once"},
	} {
		args := append(append([]string{"run"}, strings.Fields(test.flags)...), "--", "true")
		r := apptest.Call(t, apptest.Nobody, args...)
		require.Equal(t, 64, r.Code, test.flags)
		require.Contains(t, r.Err, test.says)
	}
}

func TestWhoComesAtTheEdgeOfAPeriodIsTold(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	now := time.Duration(time.Now().Unix()) * time.Second
	r := apptest.Spawn(t, s.URL(), "run", "--once", "gpu", "--every", "8784h", "--offset", (now % (8784 * time.Hour)).String(), "--", "true")
	require.Equal(t, 0, r.Code)
	require.Contains(t, r.Err, `warning: "gpu" came `)
}
