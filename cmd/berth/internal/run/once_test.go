//go:build unix

package run

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// onceArgs run a command once in each period, a leap year so that no test meets the end of one.
func onceArgs(flags ...string) []string {
	return append([]string{"run", "--once", "gpu", "--every", "8784h", "--offset", middle(8784 * time.Hour)}, flags...)
}

// began is when these tests began, in whole seconds.
var began = time.Duration(time.Now().Unix()) * time.Second

// middle is an offset by which it is now the middle of a period that lasts so long, the same for all tests.
func middle(every time.Duration) string { return ((began + every/2) % every).String() }

// lastRun is what is known of the runs.
func lastRun(t *testing.T, s *embedded.Server) once.Last {
	t.Helper()
	last, err := once.New(apptest.NodeOf(t, s, node.Config{}), "gpu", once.Config{Every: time.Hour}).Last(t.Context())
	require.NoError(t, err)
	return last
}

// gated is a shell command that ends with 0 once open is called.
func gated(t *testing.T) (args []string, open func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	script := "echo ready $$ $BERTH_NAME $BERTH_CLAIM $BERTH_FENCE; read line < " + path
	return []string{"--", "sh", "-c", script}, func() { require.NoError(t, os.WriteFile(path, []byte("open\n"), 0o600)) }
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

func TestAnotherLengthOfThePeriodIsSaid(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	require.Equal(t, 0, apptest.Spawn(t, s.URL(), "run", "--once", "gpu", "--every", "24h", "--offset", middle(24*time.Hour), "--", "true").Code)
	r := apptest.Spawn(t, s.URL(), onceArgs("--", "true")...)
	require.Equal(t, 0, r.Code)
	require.Contains(t, r.Err, ", which lasts "+text.Human(24*time.Hour)+" and not --every "+text.Human(8784*time.Hour)+", by ")
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
	r := beginWith(t, s.URL(), append(onceArgs("--lease", "1h"), apptest.LockArgs("polite")[3:]...))
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
	require.Contains(t, impatient.Err, "berth: \"gpu\" is neither done nor free: --wait 12s is over\n")

	next := apptest.Command(t, s.URL(), onceArgs("--wait", "1h", "--", "true")...)
	require.NoError(t, next.Start())
	require.Eventually(t, func() bool { return queueLength(t, s) == 1 }, apptest.Patience, 10*time.Millisecond)
	r.ends(syscall.SIGTERM)
	require.NoError(t, next.Wait(), "it takes over")
	last := lastRun(t, s)
	require.Equal(t, 1, last.Success.Attempt, "the first one was stopped")
	requireUnlocked(t, s.URL())
}

func TestACommandThatIsStoppedWithItsBerthHasUsedNoAttempt(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		r := beginWith(t, s.URL(), append(onceArgs("--attempts", "1", "--lease", "1h"), apptest.LockArgs("polite")[3:]...))
		r.signal(sig)
		r.signal(syscall.SIGTERM)
		r.end()
		require.Equal(t, once.Stopped, lastRun(t, s).Run.Outcome, sig)
		requireUnlocked(t, s.URL())
	}
	r := apptest.Spawn(t, s.URL(), onceArgs("--attempts", "1", "--", "true")...)
	require.Equal(t, apptest.Outcome(0, "", ""), r)
}

// Berth stands still past its lease, and its command ends meanwhile.
func TestASuccessCountsThoughBerthStoodStill(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	command, open := gated(t)
	r := beginWith(t, s.URL(), append(onceArgs("--lease", "15s"), command...))
	r.signal(syscall.SIGSTOP)
	open()
	require.Eventually(t, func() bool { return len(apptest.HoldersOf(t, s, keyspace.Lock, "gpu")) == 0 }, apptest.Patience, 10*time.Millisecond)
	r.signal(syscall.SIGCONT)
	require.Equal(t, 0, r.end(), r.errs)
	require.Contains(t, r.errs.String(), "so it is done")
	require.NotNil(t, lastRun(t, s).Success)
}

func TestASuccessThatCouldNotBeKeptIsSaid(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	way := apptest.WayTo(t, s)
	command, open := gated(t)
	r := beginWith(t, way.URL, append(onceArgs("--lease", "1h"), command...))
	way.Block()
	open()
	require.Equal(t, 0, r.end(), r.errs)
	require.Regexp(t, `the command of "gpu" succeeded, and the server could not be told \(.+\): the command may run again in this period\n`, r.errs.String())
}

func TestNobodyBeginsAgainSoonAfterAFailure(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	failing := apptest.Spawn(t, s.URL(), onceArgs("--retry-after", "1h", "--", "sh", "-c", "exit 7")...)
	require.Equal(t, apptest.Outcome(7, "", ""), failing)
	next := apptest.Spawn(t, s.URL(), onceArgs("--", "true")...)
	require.Equal(t, 0, next.Code)
	require.Contains(t, next.Err, `berth: "gpu" has failed, and may not be tried again yet, for the period from `)
	require.Equal(t, 1, lastRun(t, s).Run.Attempt)
}

func TestARecordThatCannotBeReadIsSaid(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	redis, err := s.Client(apptest.Patiently)
	require.NoError(t, err)
	defer redis.Close()
	for field, text := range map[string]string{"run": "garbage", "expires": "zzz"} {
		require.NoError(t, redis.Do(t.Context(), redis.B().Hset().Key("berth:once:{gpu}:state").FieldValue().
			FieldValue("fmt", "1").FieldValue("expires", "1").FieldValue(field, text).Build()).Error())
		r := apptest.Spawn(t, s.URL(), onceArgs("--", "true")...)
		require.NotContains(t, r.Err, "cannot reach")
		require.Contains(t, r.Err, "cannot be read")
		require.NoError(t, redis.Do(t.Context(), redis.B().Del().Key("berth:once:{gpu}:state").Build()).Error())
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
