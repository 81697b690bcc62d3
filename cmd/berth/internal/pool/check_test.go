//go:build unix

package pool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

// checked runs pool check as a process of its own: it sees to signals.
func checked(t *testing.T, url string, args ...string) apptest.Result {
	t.Helper()
	return apptest.Spawn(t, url, append([]string{"pool", "check", "proxies"}, args...)...)
}

func TestAPoolIsCheckedByACommand(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "leased", "good", "bad", "mute", "also good", "nul\x00")
	held, err := pool.Allocate(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, "leased", held.Resource())
	got := checked(t, s.URL(), "--workers", "2", "--rest", "1d", "--exec",
		`echo "$BERTH_POOL/$BERTH_RESOURCE"; case $BERTH_RESOURCE in *good) ;; bad) echo first >&2; echo "answers	429 " >&2; echo >&2; exit 3;; *) kill -9 $$;; esac`)
	require.Equal(t, 1, got.Code, got.Err)
	require.Equal(t, "berth: of pool \"proxies\" in namespace \"berth\" 3 resources have failed\n", got.Err)
	lines := strings.Split(got.Out, "\n")
	require.Equal(t, "proxies: 5 checked, 2 healthy, 3 failed, 1 skipped", lines[0])
	require.Regexp(t, `^RESOURCE +REASON$`, lines[2])
	require.Regexp(t, `(?m)^bad +"exit status 3: answers\\t429"$`, got.Out)
	require.Regexp(t, `(?m)^mute +exit status 137$`, got.Out)
	require.Regexp(t, `(?m)^"nul\\x00" +it has a NUL byte, which BERTH_RESOURCE cannot have$`, got.Out)
	require.Len(t, lines, 7)

	info, err := pool.Ops.Resource(ctx, "proxies", "bad")
	require.NoError(t, err)
	require.Equal(t, allocator.Resting, info.State)
	require.Equal(t, "exit status 3: answers\t429", info.Reason)
	require.Greater(t, info.Left, 23*time.Hour)
	require.Equal(t, apptest.Outcome(0, "proxies: 2 checked, 2 healthy, 0 failed, 4 skipped\n", ""), checked(t, s.URL(), "--exec", "true"))
}

func TestACheckInJSON(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", apptest.Wild)
	got := checked(t, s.URL(), "--exec", "head -c 6000 /dev/zero | tr '\\0' x >&2; exit 1", "--rest", "0", "--json")
	require.Equal(t, 1, got.Code, got.Err)
	var document healthDocument
	require.NoError(t, json.Unmarshal([]byte(got.Out), &document))
	require.Equal(t, []failureDocument{{"c\x1b[2J\ufffd", []byte(apptest.Wild), document.Failed[0].Reason}}, document.Failed)
	require.Equal(t, "exit status 1: "+strings.Repeat("x", 497), document.Failed[0].Reason)
	info, err := pool.Ops.Resource(context.Background(), "proxies", apptest.Wild)
	require.NoError(t, err)
	require.Equal(t, allocator.Free, info.State, "--rest 0 is no rest")
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "checked": 1, "healthy": 1, "skipped": 0, "restMs": 60000, "failed": []}`,
		checked(t, s.URL(), "--exec", "true", "--json").Out)
}

func TestACheckOfNoPoolFails(t *testing.T) {
	t.Parallel()
	got := checked(t, apptest.Server(t).URL(), "--exec", "true")
	require.Equal(t, 1, got.Code)
	require.Contains(t, got.Err, `pool "proxies" in namespace "berth" has no resources`)
	require.Empty(t, got.Out)
}

// gone waits until a process has ended whose number a file tells.
func gone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return ended(pid) }, apptest.Patience, 10*time.Millisecond)
}

// ready waits until a file has got the name by which it is whole.
func ready(t *testing.T, file string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(file + ".ready")
		return err == nil
	}, apptest.Patience, 10*time.Millisecond)
}

// ended reports whether a process runs no more; one that nobody has waited for does not.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestACheckThatTakesTooLongIsKilled(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a")
	got := checked(t, s.URL(), "--timeout", "1s", "--exec", "exec sleep 600")
	require.Equal(t, 1, got.Code, got.Err)
	require.Contains(t, got.Out, "not ended within 1s\n")
}

// TestWhatACheckHasStartedIsKilledWithIt has a command that has started another one, which holds its stderr open. Its
// time is over when it has said so.
func TestWhatACheckHasStartedIsKilledWithIt(t *testing.T) {
	t.Parallel()
	child := filepath.Join(t.TempDir(), "child")
	ctx, over := context.WithCancel(t.Context())
	faults := make(chan error, 1)
	go func() {
		c := checking{command: "sleep 600 & echo waiting >&2; echo $! >" + child + "; mv " + child + " " + child + ".ready; wait", timeout: time.Second}
		fault, err := checkOne(ctx, "/bin/sh", c, "proxies", "a")
		faults <- cmp.Or(err, fault)
	}()
	ready(t, child)
	over()
	require.EqualError(t, <-faults, "not ended within 1s: waiting")
	gone(t, child+".ready")
}

// TestACheckLeavesNothingBehind has a command that ends before what it has started.
func TestACheckLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a")
	child := filepath.Join(t.TempDir(), "child")
	got := checked(t, s.URL(), "--exec", "sleep 600 & echo $! >"+child)
	require.Zero(t, got.Code, got.Err)
	gone(t, child)
}

func TestASignalEndsACheck(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a", "b")
	child := filepath.Join(t.TempDir(), "child")
	cmd := apptest.Command(t, s.URL(), "pool", "check", "proxies", "--exec", "echo $$ >"+child+"; mv "+child+" "+child+".ready; exec sleep 600")
	require.NoError(t, cmd.Start())
	ready(t, child)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, 128+int(syscall.SIGTERM), cmd.ProcessState.ExitCode())
	gone(t, child+".ready")
	require.Equal(t, 2, apptest.NameOf(t, s, keyspace.Pool, "proxies").Pool.Free, "neither is to blame")
}
