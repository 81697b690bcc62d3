//go:build unix

package run

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/once"
)

// poolArgs are the arguments of a run of a role with a resource of the pool gpu.
func poolArgs(role string, flags ...string) []string {
	args := append([]string{"run", "--pool", "gpu"}, flags...)
	return append(args, "--", os.Args[0], apptest.RolePrefix+role)
}

// says are the arguments of a run whose command says what its resource is.
func says(flags ...string) []string {
	args := append([]string{"run", "--pool", "gpu", "--try"}, flags...)
	return append(args, "--", "sh", "-c", `printf %s "$BERTH_RESOURCE"`)
}

func TestTheCommandFindsItsResourceInTheEnvironment(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a b\xff")
	require.Equal(t, apptest.Outcome(0, "a b\xff", ""), apptest.Spawn(t, s.URL(), says()...))
	r := beginWith(t, s.URL(), poolArgs("polite"))
	info := apptest.Got(pool.Ops.Resource(context.Background(), pool.Name(), "a b\xff"))(t)
	require.Len(t, info.Holders, 1)
	r.is(info.Holders[0], 10*time.Second)
	full := `berth: "gpu" not acquired: full (capacity 1, held 1, waiting 0); 1 resource, 0 free, 1 leased, 0 resting, waiting 0` + "\n"
	require.Equal(t, apptest.Outcome(75, "", full), apptest.Spawn(t, s.URL(), says()...), "it is the only one")
	r.ends(syscall.SIGTERM)
	require.Empty(t, r.errs.String())
	require.Equal(t, 0, apptest.Spawn(t, s.URL(), says()...).Code)
}

func TestTheOptionsOfAnAllocationAreItsClaims(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a")
	r := beginWith(t, s.URL(), poolArgs("polite", "--lease", "1h", "--no-renew", "--max-hold", "2h", "--bind", "anna", "--bind-for", "3h"))
	holder := apptest.HoldersOf(t, s, keyspace.Pool, "gpu")[0]
	require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour}, []time.Duration{holder.Lease, holder.MaxHold})
	require.True(t, holder.NoRenew)
	require.Greater(t, holder.Left, 59*time.Minute, "the whole lease from the start")
	binding := apptest.Got(pool.Binding(context.Background(), "anna"))(t)
	require.Equal(t, "a", binding.Resource)
	require.Greater(t, binding.Left, 2*time.Hour)

	late := apptest.Spawn(t, s.URL(), poolArgs("polite", "--wait", "12s")...).Ends(t, 75)
	require.Regexp(t, `^berth: "gpu" not acquired: timed out after [1-9][\d.]*s \(1 resource, 0 free, 1 leased, 0 resting, waiting 0\)\n$`, late.Err)
	waiter, leave := queued(t, s, keyspace.Pool, poolArgs("polite", "--priority", "7")...)
	require.Equal(t, 7, waiter.Priority)
	leave()
	r.ends(syscall.SIGINT)
}

// A run that says no --lease is taken within the pool's limits, and the longest hold of the pool ends its command.
func TestARunIsWithinTheLimitsOfThePool(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a")
	limits := func(l allocator.Settings) { require.NoError(t, pool.Ops.Set(t.Context(), pool.Name(), "", l)) }
	limits(allocator.Settings{MaxLease: 9 * time.Second})
	require.Equal(t, apptest.Outcome(0, "a", ""), apptest.Spawn(t, s.URL(), says()...))
	limits(allocator.Settings{MaxHold: 6 * time.Second})
	got := apptest.Spawn(t, s.URL(), "run", "--pool", "gpu", "--", "sleep", "60").Ends(t, 76)
	require.NotContains(t, got.Err, "no renewal in time")
}

func TestWhoWaitsForAnEmptyPoolIsToldThatItIs(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	got := apptest.Spawn(t, s.URL(), poolArgs("polite", "--wait", "12s")...).Ends(t, 75)
	require.Regexp(t, `timed out after [1-9][\d.]*s \(the pool is empty, waiting 0\)\n$`, got.Err)
	require.Contains(t, got.Err, "berth: warning: the pool \"gpu\" has no resources; waiting until it has\n", "before it waits")
	got = apptest.Spawn(t, s.URL(), says()...)
	require.Equal(t, apptest.Outcome(75, "", "berth: \"gpu\" not acquired: empty (held 0, waiting 0); the pool is empty, waiting 0\n"), got)
}

func TestARunWithAResourceGetsThatOneOrNone(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	got := apptest.Spawn(t, s.URL(), says("--resource", "b")...)
	require.Equal(t, apptest.Outcome(75, "", "berth: \"gpu\" not acquired: empty (held 0, waiting 0); b is absent\n"), got, "nothing has filled the pool yet")

	pool := apptest.Filled(t, s, "gpu", "a", "b", apptest.Wild)
	require.Equal(t, apptest.Outcome(0, "b", ""), apptest.Spawn(t, s.URL(), says("--resource", "b")...))
	require.Equal(t, apptest.Outcome(0, apptest.Wild, ""), apptest.Spawn(t, s.URL(), says("--resource", view.Key(apptest.Wild), "--quoted")...))
	for _, args := range [][]string{says("--resource", "z"), poolArgs("polite", "--resource", "z"), poolArgs("polite", "--resource", "z", "--wait", "2m")} {
		require.Equal(t, apptest.Outcome(67, "", "berth: resource z is not in pool \"gpu\" in namespace \"berth\"\n"), apptest.Spawn(t, s.URL(), args...))
	}

	held := apptest.Got(pool.Allocate(context.Background(), &allocator.AllocateOptions{Resource: "b"}))(t)
	got = apptest.Spawn(t, s.URL(), says("--resource", "b")...)
	require.Equal(t, apptest.Outcome(75, "", "berth: \"gpu\" not acquired: held (waiting 0); b is leased\n"), got)
	require.NoError(t, held.Rest(berth.Forever, "answers\t429"))
	require.NoError(t, held.Release(context.Background()))
	got = apptest.Spawn(t, s.URL(), says("--resource", "b")...).Ends(t, 75)
	require.Contains(t, got.Err, `; b is resting for forever: "answers\t429"`)
	require.Equal(t, apptest.Outcome(0, "a", ""), apptest.Spawn(t, s.URL(), says()...), "others are served")
}

// lane is what the first claim waits for that waits for one resource.
func lane(t *testing.T, pool apptest.Pool) (found berth.Waiter) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, waiter := range apptest.WaitersOf(t, pool.Server, keyspace.Pool, pool.Name()) {
			if found = waiter; waiter.Resource != "" {
				return true
			}
		}
		return false
	}, apptest.Patience, 10*time.Millisecond)
	return found
}

func TestABoundRunWaitsForItsResource(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "gpu", "a", "b")
	require.NoError(t, pool.Bind(ctx, "anna", "a", nil))
	require.NoError(t, pool.Bind(ctx, "ben", "a", nil))
	held := apptest.Got(pool.Allocate(ctx, &allocator.AllocateOptions{Resource: "a"}))(t)
	require.Equal(t, apptest.Outcome(0, "b", ""), apptest.Spawn(t, s.URL(), says("--bind", "ben")...), "by default another one will do")
	require.Equal(t, apptest.Outcome(0, "b", ""), apptest.Spawn(t, s.URL(), says("--bind", "carl", "--bind-wait", "forever")...), "who is bound to nothing takes any")
	require.Equal(t, apptest.Outcome(75, "",
		"berth: \"gpu\" not acquired: held (waiting 0); 2 resources, 1 free, 1 leased, 0 resting, waiting 0; bound: a is leased\n"),
		apptest.Spawn(t, s.URL(), says("--bind", "anna", "--bind-wait", "forever")...))

	ended := make(chan apptest.Result, 1)
	cmd := apptest.Command(t, s.URL(), "run", "--pool", "gpu", "--bind", "anna", "--bind-wait", "1d", "--", "sh", "-c", `printf %s "$BERTH_RESOURCE"`)
	go func() { ended <- apptest.Finish(t, cmd) }()
	waiter := lane(t, pool)
	require.Equal(t, "a", waiter.Resource)
	require.Greater(t, waiter.BindWait, 23*time.Hour)
	require.Less(t, waiter.BindWait, 25*time.Hour) // the reading's time may be from just before the claim came
	require.NoError(t, held.Release(ctx))
	require.Equal(t, apptest.Outcome(0, "a", ""), <-ended)
}

func TestAResourceRestsAfterTheCommand(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a", "b")
	require.Equal(t, "a", apptest.Spawn(t, s.URL(), says("--cooldown", "1h")...).Out)
	self := apptest.Command(t, s.URL()).Path
	got := apptest.Spawn(t, s.URL(), "run", "--pool", "gpu", "--", self, "pool", "rest", "gpu", "b", "--for", "2h", "--reason", "answers 429")
	require.Equal(t, apptest.Outcome(0, "gpu: b is leased, and rests for 2h00m when it comes back\n", ""), got)
	for resource, least := range map[string]time.Duration{"a": 59 * time.Minute, "b": 119 * time.Minute} {
		info := apptest.Got(pool.Ops.Resource(context.Background(), pool.Name(), resource))(t)
		require.Equal(t, allocator.Resting, info.State)
		require.GreaterOrEqual(t, info.Left, least)
	}
	got = apptest.Spawn(t, s.URL(), says()...).Ends(t, 75)
	require.Equal(t, "berth: \"gpu\" not acquired: resting (capacity 2, held 0, waiting 0); 2 resources, 0 free, 0 leased, 2 resting, waiting 0\n", got.Err)
}

func TestAKeyThatNoEnvironmentCanHaveStartsNoCommand(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "gpu", "a\x00b")
	got := apptest.Spawn(t, s.URL(), says()...)
	require.Equal(t, apptest.Outcome(126, "", "berth: resource \"a\\x00b\" of \"gpu\" has a NUL byte, which BERTH_RESOURCE cannot have\n"), got)
	require.Empty(t, apptest.HoldersOf(t, s, keyspace.Pool, "gpu"), "it was given back")
}

// onceArgs run a command once in each period, a leap year so that no test meets the end of one.
func onceArgs(flags ...string) []string {
	return append([]string{"run", "--once", "gpu", "--every", "8784h", "--offset", middle(8784 * time.Hour)}, flags...)
}

// began is when these tests began, in whole seconds.
var began = time.Duration(time.Now().Unix()) * time.Second

// middle is an offset by which it is now the middle of a period that lasts so long, the same for all tests.
func middle(every time.Duration) string { return ((began + every/2) % every).String() }

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

	again := apptest.Spawn(t, s.URL(), onceArgs("--", "sh", "-c", "echo twice")...).Ends(t, 0)
	require.Empty(t, again.Out)
	require.Equal(t, `berth: "gpu" is done for the period from `+done.Period.String()+" by "+done.Label+"; the command did not run\n", again.Err)

	strict := apptest.Spawn(t, s.URL(), onceArgs("--strict", "--", "true")...)
	require.Equal(t, apptest.Outcome(77, "", again.Err), strict)
	require.Equal(t, done, lastRun(t, s).Run, "and nothing was written")
}

func TestAnotherLengthOfThePeriodIsSaid(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Spawn(t, s.URL(), "run", "--once", "gpu", "--every", "24h", "--offset", middle(24*time.Hour), "--", "true").Ends(t, 0)
	require.Contains(t, apptest.Spawn(t, s.URL(), onceArgs("--", "true")...).Ends(t, 0).Err,
		", which lasts "+text.Human(24*time.Hour)+" and not --every "+text.Human(8784*time.Hour)+", by ")
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
	r := apptest.Spawn(t, s.URL(), onceArgs("--attempts", "2", "--", "true")...).Ends(t, 75)
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
	late := apptest.Spawn(t, s.URL(), onceArgs("--", "true")...).Ends(t, 0)
	require.Contains(t, late.Err, `berth: "gpu" is being done for the period from `)
	require.Contains(t, late.Err, " by "+held[0].Label)
	apptest.Spawn(t, s.URL(), onceArgs("--strict", "--", "true")...).Ends(t, 77)
	impatient := apptest.Spawn(t, s.URL(), onceArgs("--wait", "12s", "--", "true")...).Ends(t, 75)
	require.Contains(t, impatient.Err, "berth: \"gpu\" is neither done nor free: --wait 12s is over\n")

	next := apptest.Command(t, s.URL(), onceArgs("--wait", "1h", "--", "true")...)
	require.NoError(t, next.Start())
	require.Eventually(t, func() bool { return apptest.Waiting(t, s, keyspace.Lock, "gpu") == 1 }, apptest.Patience, 10*time.Millisecond)
	r.ends(syscall.SIGTERM)
	require.NoError(t, next.Wait(), "it takes over")
	require.Equal(t, 1, lastRun(t, s).Success.Attempt, "the first one was stopped")
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
	way := apptest.WayTo(t, apptest.Server(t))
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
	next := apptest.Spawn(t, s.URL(), onceArgs("--", "true")...).Ends(t, 0)
	require.Contains(t, next.Err, `berth: "gpu" has failed, and may not be tried again yet, for the period from `)
	require.Equal(t, 1, lastRun(t, s).Run.Attempt)
}

func TestARecordThatCannotBeReadIsSaid(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	redis := apptest.Got(s.Client(apptest.Patiently))(t)
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
