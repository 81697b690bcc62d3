//go:build unix

package run

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// queueLength is how many claims wait for the lock gpu.
func queueLength(t *testing.T, s *embedded.Server) int {
	t.Helper()
	return apptest.Waiting(t, s, keyspace.Lock, "gpu")
}

// lockHolder is the one entry of the lock gpu.
func lockHolder(t *testing.T, s *embedded.Server) berth.Holder {
	t.Helper()
	holders := apptest.HoldersOf(t, s, keyspace.Lock, "gpu")
	require.Len(t, holders, 1)
	return holders[0]
}

func TestTheCommandUnderALockFindsItsHoldInTheEnvironment(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), apptest.LockArgs("polite"))
	holder := lockHolder(t, s)
	require.Equal(t, holder.ID, r.claim)
	require.Equal(t, strconv.FormatInt(holder.Fence, 10), r.fence)
	require.Equal(t, 5*time.Second, holder.Lease)
	require.False(t, holder.NoRenew)
	require.True(t, strings.HasSuffix(holder.Label, "/run.test/"+strconv.Itoa(r.cmd.Process.Pid)), holder.Label)
	r.signal(syscall.SIGTERM)
	require.Equal(t, "got terminated", r.line())
	require.Equal(t, 3, r.end(), "the command's own code")
	require.Empty(t, r.errs.String())
	requireUnlocked(t, s.URL())
}

func TestTheOptionsOfALockAreItsClaims(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), apptest.LockArgs("polite", "--lease", "1h", "--no-renew", "--max-hold", "2h", "--access", "random"))
	holder := lockHolder(t, s)
	require.Equal(t, time.Hour, holder.Lease)
	require.Equal(t, 2*time.Hour, holder.MaxHold)
	require.True(t, holder.NoRenew)
	require.Greater(t, holder.Left, 59*time.Minute, "the whole lease from the start")

	late := apptest.Spawn(t, s.URL(), apptest.LockArgs("polite", "--priority", "7", "--wait", "12s")...)
	require.Equal(t, 75, late.Code)
	next := apptest.Command(t, s.URL(), apptest.LockArgs("polite", "--priority", "7")...)
	require.NoError(t, next.Start())
	require.Eventually(t, func() bool { return queueLength(t, s) == 1 }, apptest.Patience, 10*time.Millisecond)
	for _, waiter := range apptest.WaitersOf(t, s, keyspace.Lock, "gpu") {
		require.Equal(t, 7, waiter.Priority)
	}
	require.NoError(t, next.Process.Signal(syscall.SIGTERM))
	require.Error(t, next.Wait())
	r.signal(syscall.SIGINT)
	require.Equal(t, "got interrupt", r.line(), "and no SIGTERM before it")
	require.Equal(t, 3, r.end())
}

// TestALockIsHandedOnByTheAccessOfEach has three commands wait: the last in first
// out one that came last passes the other such one, and not the one in the queue.
func TestALockIsHandedOnByTheAccessOfEach(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	locks := apptest.LocksOf(t, s, node.Config{})
	first, err := locks.Lock(context.Background(), "gpu", nil)
	require.NoError(t, err)
	fences := make(chan string, 3)
	for i, o := range [][]string{{"lifo", "third"}, {"lifo", "second"}, {"queued", "first"}} {
		cmd := apptest.Command(t, s.URL(), "run", "--lock", "gpu", "--access", o[0], "--", "sh", "-c", "echo $BERTH_FENCE "+o[1])
		go func() {
			out, err := cmd.Output()
			if err != nil {
				out = []byte(err.Error())
			}
			fences <- string(out)
		}()
		require.Eventually(t, func() bool { return queueLength(t, s) == i+1 }, apptest.Patience, 10*time.Millisecond)
	}
	require.NoError(t, first.Release(context.Background()))
	last := first.Fence()
	order := make(map[string]string)
	for range 3 {
		words := strings.Fields(<-fences)
		require.Len(t, words, 2)
		order[words[1]] = words[0]
	}
	for _, place := range []string{"first", "second", "third"} {
		fence, err := strconv.ParseInt(order[place], 10, 64)
		require.NoError(t, err)
		require.Greater(t, fence, last, place)
		last = fence
	}
}

func TestALockOfABerthThatIsKilledComesFreeWithItsLease(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), apptest.LockArgs("stubborn", "--lease", "15s"))
	r.signal(syscall.SIGKILL)
	lock, err := apptest.LocksOf(t, s, node.Config{}).Lock(context.Background(), "gpu", nil)
	require.NoError(t, err)
	fence, err := strconv.ParseInt(r.fence, 10, 64)
	require.NoError(t, err)
	require.Greater(t, lock.Fence(), fence)
}

func TestALockThatAnOperatorReleasesEndsTheCommand(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), apptest.LockArgs("polite", "--lease", "1h"))
	require.Equal(t, apptest.Outcome(0, "gpu: 1 claim released\n", ""), apptest.Call(t, s.URL(), "lock", "release", "gpu", "--force"))
	require.Equal(t, "got terminated", r.line())
	require.Equal(t, 76, r.end())
	require.Contains(t, r.errs.String(), `"gpu": somebody else has released it: SIGTERM sent`)
	require.Contains(t, r.errs.String(), `the lock "gpu", fence `+r.fence+`, was released by somebody else`)
}

// said is what a command finds in its environment, "none" for what is not set.
type said struct{ name, fence, fences, owner string }

// environment runs a command that says what it finds, under flags.
func environment(t *testing.T, s *embedded.Server, flags ...string) said {
	t.Helper()
	cmd := apptest.Command(t, s.URL(), append(append([]string{"run"}, flags...), "--", "sh", "-c",
		`printf '%s|%s|%s|%s' "${BERTH_NAME-none}" "${BERTH_FENCE-none}" "${BERTH_FENCES-none}" "${BERTH_OWNER-none}"`)...)
	cmd.Env = append(cmd.Env, "BERTH_NAME=outer", "BERTH_FENCE=1", "BERTH_FENCES={}")
	got := apptest.Finish(t, cmd)
	require.Equal(t, apptest.Outcome(0, got.Out, ""), got)
	parts := strings.Split(got.Out, "|")
	require.Len(t, parts, 4)
	return said{parts[0], parts[1], parts[2], parts[3]}
}

func TestTheNumberOfOneLockIsNotThatOfSeveral(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	one := environment(t, s, "--lock", "gpu", "--owner", "job 7")
	require.Equal(t, "gpu", one.name)
	require.Equal(t, "job 7", one.owner)
	require.JSONEq(t, `{"gpu": "`+one.fence+`"}`, one.fences)

	several := environment(t, s, "--lock", "gpu", "--lock", "disk")
	require.Equal(t, said{"none", "none", several.fences, "none"}, several, "nor those of an outer berth")
	var fences map[string]string
	require.NoError(t, json.Unmarshal([]byte(several.fences), &fences))
	require.Len(t, fences, 2)
	require.Greater(t, fences["gpu"], one.fence, "16 digits each")
	require.Len(t, fences["disk"], 16)
}

// pair begins a run under the locks disk and gpu; its command says nothing of them.
func pair(t *testing.T, s *embedded.Server, flags ...string) *running {
	t.Helper()
	return beginWith(t, s.URL(), slices.Insert(apptest.LockArgs("polite", flags...), 1, "--lock", "disk"))
}

func TestTheLossOfOneLockEndsTheCommandOfSeveral(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := pair(t, s, "--lease", "1h")
	require.Zero(t, apptest.Call(t, s.URL(), "lock", "release", "disk", "--force").Code)
	require.Equal(t, "got terminated", r.line())
	require.Equal(t, 76, r.end())
	require.Contains(t, r.errs.String(), `berth: "disk", "gpu": somebody else has released it: SIGTERM sent`)
	require.Regexp(t, `the lock "disk", fence \d{16}, was released by somebody else while the command ran\n$`, r.errs.String())
	requireUnlocked(t, s.URL())
}

func TestSeveralLocksAreTakenAllOrNone(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), apptest.LockArgs("polite", "--lease", "1m"))
	late := apptest.Spawn(t, s.URL(), "run", "--lock", "gpu", "--lock", "disk", "--wait", "12s", "--", "true")
	require.Equal(t, 75, late.Code)
	require.Regexp(t, `^berth: "gpu" not acquired: timed out after [\d.]+s \("gpu" held by \S+/run\.test/\d+ for [\d.m]+s, waiting 0\)\n$`, late.Err)
	require.Equal(t, apptest.Result{}, apptest.Spawn(t, s.URL(), "run", "--lock", "disk", "--try", "--", "true"), "it was given back")
	r.signal(syscall.SIGTERM)
	require.Equal(t, "got terminated", r.line())
	require.Equal(t, 3, r.end())
	require.Equal(t, apptest.Result{}, apptest.Spawn(t, s.URL(), "run", "--lock", "gpu", "--lock", "disk", "--try", "--", "true"))
	requireUnlocked(t, s.URL())
}

// grantedAgo is a lock that has been held for a while.
type grantedAgo struct {
	berth.Hold
	ago time.Duration
}

func (g grantedAgo) Granted() time.Time { return time.Now().Add(-g.ago) }

func TestTheBoundOfSeveralLocksIsThatOfTheFirst(t *testing.T) {
	t.Parallel()
	o := &runOptions{lease: time.Minute, maxHold: 2 * time.Hour, grace: 10 * time.Minute}
	limited := o.limited(clock.New(), []berth.Hold{grantedAgo{ago: 0}, grantedAgo{ago: time.Hour}})
	require.True(t, limited(55*time.Minute), "at the end of the first, less the grace")
	require.False(t, limited(45*time.Minute))
}

func TestALockThatIsLostWhileAnotherIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	_, err := apptest.LocksOf(t, s, node.Config{}).Lock(context.Background(), "gpu", nil)
	require.NoError(t, err)
	got := apptest.Spawn(t, s.URL(), "run", "--lock", "disk", "--lock", "gpu", "--max-hold", "1s", "--", "true")
	require.Equal(t, 75, got.Code)
	require.Regexp(t, `^berth: "disk" not acquired: lost again before the command could start: .*\n$`, got.Err)
}

func TestANestedRunOfTheSameOwnerEntersItsLock(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	nested := func(flags string) apptest.Result {
		script := `"$0" run --lock gpu --lease 1m ` + flags + ` -- sh -c 'echo "$BERTH_NAME $BERTH_FENCE $BERTH_OWNER"'; code=$?; echo "$BERTH_FENCE"; exit $code`
		return apptest.Spawn(t, s.URL(), "run", "--lock", "gpu", "--lease", "1m", "--owner", "job 7", "--", "sh", "-c", script, os.Args[0])
	}
	for _, conflict := range []string{"work", "extend"} {
		got := nested(`--owner "$BERTH_OWNER" --conflict ` + conflict)
		require.Zero(t, got.Code, got.Err)
		lines := strings.Split(got.Out, "\n")
		require.Equal(t, "gpu "+lines[1]+" job 7", lines[0], "a re-entry keeps the fence")
	}
	own := nested(`--owner "$BERTH_OWNER"`)
	require.Equal(t, 75, own.Code)
	require.Contains(t, own.Err, "would wait for its own owner")
	stranger := nested("--try")
	require.Equal(t, 75, stranger.Code)
	require.Contains(t, stranger.Err, `"gpu" not acquired: held`, "BERTH_OWNER alone does not let it in")
	requireUnlocked(t, s.URL())
}

func TestListingsShowTheOwnerAndTheMeta(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	require.Zero(t, apptest.Call(t, s.URL(), "pool", "add", "gpu", "a").Code)
	flags := []string{"--lease", "1h", "--owner", "job 7", "--meta", "job=7", "--meta", "note=a=b, c", "--meta", "empty="}
	meta := map[string]string{"job": "7", "note": "a=b, c", "empty": ""}
	holder := func(h berth.Holder) {
		t.Helper()
		require.Equal(t, "job 7", h.Owner)
		require.Equal(t, meta, h.Meta)
	}
	beginWith(t, s.URL(), apptest.LockArgs("polite", flags...))
	holder(lockHolder(t, s))
	begin(t, s.URL(), "polite", flags...)
	holder(apptest.HoldersOf(t, s, keyspace.Sem, "gpu")[0])
	beginWith(t, s.URL(), append(append([]string{"run", "--pool", "gpu"}, flags...), "--", os.Args[0], apptest.RolePrefix+"polite"))
	for _, kind := range []string{"sem", "lock", "pool"} {
		got := apptest.Call(t, s.URL(), kind, "show", "gpu", "--json")
		require.Contains(t, got.Out, `"note": "a=b, c"`, kind)
		require.Contains(t, got.Out, `"owner": "job 7"`, kind)
	}
}
