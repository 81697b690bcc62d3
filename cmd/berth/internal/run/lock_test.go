//go:build unix

package run

import (
	"context"
	"encoding/json"
	"os"
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

func TestTheOptionsOfALockAreItsClaims(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), apptest.LockArgs("polite", "--lease", "1h", "--no-renew", "--max-hold", "2h", "--access", "random"))
	holder := lockHolder(t, s)
	require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour}, []time.Duration{holder.Lease, holder.MaxHold})
	require.True(t, holder.NoRenew)
	require.Greater(t, holder.Left, 59*time.Minute, "the whole lease from the start")

	late := apptest.Spawn(t, s.URL(), apptest.LockArgs("polite", "--priority", "7", "--wait", "12s")...)
	require.Equal(t, 75, late.Code)
	waiter, leave := queued(t, s, keyspace.Lock, apptest.LockArgs("polite", "--priority", "7", "--access", "lifo")...)
	require.Equal(t, 7, waiter.Priority)
	require.Contains(t, apptest.Call(t, s.URL(), "lock", "explain", "gpu").Out, "last come, first served")
	leave()
	r.ends(syscall.SIGINT)
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

func TestSeveralLocksAreTakenAllOrNone(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), apptest.LockArgs("polite", "--lease", "1m"))
	late := apptest.Spawn(t, s.URL(), "run", "--lock", "gpu", "--lock", "disk", "--wait", "12s", "--", "true")
	require.Equal(t, 75, late.Code)
	require.Regexp(t, `^berth: "gpu" not acquired: timed out after [\d.]+s \("gpu" held by \S+/run\.test/\d+ for [\d.m]+s, waiting 0\)\n$`, late.Err)
	require.Equal(t, apptest.Result{}, apptest.Spawn(t, s.URL(), "run", "--lock", "disk", "--try", "--", "true"), "it was given back")
	r.ends(syscall.SIGTERM)
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
