//go:build unix

package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
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
	"github.com/berth-go/berth/pkg/once"
)

// running is a berth run that goes on, and the command under it.
type running struct {
	t       *testing.T
	cmd     *exec.Cmd
	said    *bufio.Scanner // what the command says
	errs    *bytes.Buffer  // to be read after end
	command int            // its process id
	claim   string
	fence   string
}

// begin starts a run of a role and waits until its command is ready.
func begin(t *testing.T, url, role string, flags ...string) *running {
	t.Helper()
	return beginWith(t, url, apptest.RunArgs(role, flags...))
}

// beginWith starts a run by its arguments.
func beginWith(t *testing.T, url string, args []string) *running {
	t.Helper()
	r := &running{t: t, cmd: apptest.Command(t, url, args...), errs: &bytes.Buffer{}}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	r.cmd.Stdout, r.cmd.Stderr = write, r.errs
	require.NoError(t, r.cmd.Start())
	require.NoError(t, write.Close())
	require.NoError(t, read.SetReadDeadline(time.Now().Add(apptest.Patience)))
	r.said = bufio.NewScanner(read)
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		if r.command != 0 {
			_ = syscall.Kill(-r.command, syscall.SIGKILL)
		}
		_, _ = io.Copy(io.Discard, read)
		_ = read.Close()
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Wait()
		}
	})
	words := strings.Fields(r.line())
	require.Len(t, words, 5, "ready, process, name, claim, fence")
	require.Contains(t, []string{"gpu", "none"}, words[2])
	r.command, err = strconv.Atoi(words[1])
	require.NoError(t, err)
	r.claim, r.fence = words[3], words[4]
	return r
}

// line is the next one that the command says.
func (r *running) line() string {
	r.t.Helper()
	if !r.said.Scan() {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait() // only now the buffer is ours
		require.FailNow(r.t, "the command has ended", "%s", r.errs)
	}
	return r.said.Text()
}

// silent requires that the command says nothing more, and waits until it and
// all that holds its output has ended.
func (r *running) silent() {
	r.t.Helper()
	require.False(r.t, r.said.Scan(), "it said %q", r.said.Text())
	require.NoError(r.t, r.said.Err(), "it goes on")
}

// over waits until the command has ended and berth has seen that.
func (r *running) over() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return errors.Is(syscall.Kill(r.command, 0), syscall.ESRCH) }, apptest.Patience, 10*time.Millisecond)
}

func (r *running) signal(sig os.Signal) {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(sig))
}

// end waits for berth and returns its exit code.
func (r *running) end() int {
	r.t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(r.t, err)
	}
	said := apptest.Said(r.errs.String())
	r.errs.Reset()
	r.errs.WriteString(said)
	return r.cmd.ProcessState.ExitCode()
}

// requireFree requires that the permit of gpu was given back.
func requireFree(t *testing.T, url string) {
	t.Helper()
	require.Equal(t, apptest.Outcome(0, "gpu: capacity 1, held 0, free 1, waiting 0\n", ""), apptest.Call(t, url, "sem", "show", "gpu"))
}

// requireUnlocked requires that the lock gpu was given back.
func requireUnlocked(t *testing.T, url string) {
	t.Helper()
	require.Equal(t, apptest.Outcome(0, "No lock is held in namespace berth.\n", ""), apptest.Call(t, url, "lock", "ls"))
}

// is requires that a hold is the one that the command was told of.
func (r *running) is(h berth.Holder, lease time.Duration) {
	r.t.Helper()
	require.Equal(r.t, h.ID, r.claim)
	require.Equal(r.t, strconv.FormatInt(h.Fence, 10), r.fence)
	require.Equal(r.t, lease, h.Lease)
	require.False(r.t, h.NoRenew)
	require.True(r.t, strings.HasSuffix(h.Label, "/run.test/"+strconv.Itoa(r.cmd.Process.Pid)), h.Label)
}

// ends has a polite command end by a signal, and no SIGTERM before it.
func (r *running) ends(sig syscall.Signal) {
	r.t.Helper()
	r.signal(sig)
	require.Equal(r.t, "got "+sig.String(), r.line())
	require.Equal(r.t, 3, r.end(), "the command's own code")
}

// overruled waits until berth has told a polite command to end because of its hold, and returns what it said.
func (r *running) overruled() string {
	r.t.Helper()
	require.Equal(r.t, "got terminated", r.line())
	require.Equal(r.t, 76, r.end(), "and not the command's own 3")
	return r.errs.String()
}

// queued starts a run that waits for gpu, and returns how it stands in line, and what ends it.
func queued(t *testing.T, s *embedded.Server, kind keyspace.Kind, args ...string) (waiter berth.Waiter, leave func()) {
	t.Helper()
	cmd := apptest.Command(t, s.URL(), args...)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		waiters := apptest.WaitersOf(t, s, kind, "gpu")
		if len(waiters) > 0 {
			waiter = waiters[0]
		}
		return len(waiters) > 0
	}, apptest.Patience, 10*time.Millisecond)
	return waiter, func() {
		t.Helper()
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.Error(t, cmd.Wait())
	}
}

func TestTheCommandFindsItsHoldInTheEnvironment(t *testing.T) {
	t.Parallel()
	for kind, args := range map[keyspace.Kind][]string{
		keyspace.Sem: apptest.RunArgs("polite", "--weight", "1"), keyspace.Lock: apptest.LockArgs("polite"),
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := apptest.Server(t)
			r := beginWith(t, s.URL(), args)
			holders := apptest.HoldersOf(t, s, kind, "gpu")
			require.Len(t, holders, 1)
			r.is(holders[0], map[keyspace.Kind]time.Duration{keyspace.Sem: 10 * time.Second, keyspace.Lock: 5 * time.Second}[kind])
			r.ends(syscall.SIGTERM)
			require.Empty(t, r.errs.String())
			map[keyspace.Kind]func(*testing.T, string){keyspace.Sem: requireFree, keyspace.Lock: requireUnlocked}[kind](t, s.URL())
		})
	}
}

func TestSignalsArePassedOnOnce(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := begin(t, s.URL(), "stubborn")
	for _, sig := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH, syscall.SIGINT,
	} {
		r.signal(sig)
		require.Equal(t, "got "+sig.String(), r.line())
	}
	require.NoError(t, syscall.Kill(r.command, syscall.SIGKILL))
	r.silent()
	require.Equal(t, 128+9, r.end())
	requireFree(t, s.URL())
}

func TestASignalEndsTheWait(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} { // the others as these, by supervise.Interrupts
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := apptest.Server(t)
			apptest.Got(apptest.SemOf(t, s, "gpu", 1).Acquire(context.Background(), nil))(t)
			cmd := apptest.Command(t, s.URL(), apptest.RunArgs("polite")...)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool { return apptest.Waiting(t, s, keyspace.Sem, "gpu") == 1 }, apptest.Patience, 10*time.Millisecond)
			require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1), "which is for a command, and there is none")
			require.NoError(t, cmd.Process.Signal(sig))
			require.Error(t, cmd.Wait())
			require.Equal(t, 128+int(sig), cmd.ProcessState.ExitCode())
			require.Equal(t, "berth: ended by signal: "+sig.String()+"\n", apptest.Said(errs.String()))
			require.Empty(t, out.String())
			require.Zero(t, apptest.Waiting(t, s, keyspace.Sem, "gpu"), "it has left the line")
		})
	}
}

func TestASignalThatIsIgnoredStaysIgnored(t *testing.T) {
	t.Parallel()
	// As nohup does; sh runs berth in its own place.
	cmd := exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$0" "$@"`, os.Args[0]}, apptest.RunArgs("stubborn")...)...)
	cmd.Env = apptest.Command(t, apptest.Server(t).URL()).Env
	out := apptest.Got(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	said := bufio.NewScanner(out)
	require.True(t, said.Scan())
	command := apptest.Got(strconv.Atoi(strings.Fields(said.Text())[1]))(t)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
	require.True(t, said.Scan())
	require.Equal(t, "got user defined signal 1", said.Text())
	require.NoError(t, syscall.Kill(-command, syscall.SIGKILL))
	require.Error(t, cmd.Wait())
}

func TestWithoutTheServerTermThenKill(t *testing.T) {
	t.Parallel()
	const lease, grace = 15 * time.Second, 5 * time.Second
	s := apptest.Server(t)
	r := begin(t, s.URL(), "stubborn", "--lease", lease.String(), "--grace", grace.String())
	s.Close()
	require.Equal(t, "got terminated", r.line(), "and not killed at once")
	r.silent()
	require.Equal(t, 76, r.end())
	// To measure that from outside would be to measure how busy the machine is: see the tests of package supervise.
	found := regexp.MustCompile(`(?s)"gpu": no renewal in time: SIGTERM sent, SIGKILL follows in (\S+)\n.*"gpu": the lease is lost: SIGKILL sent\n`).
		FindStringSubmatch(r.errs.String())
	require.NotNil(t, found, r.errs)
	named := apptest.Got(time.ParseDuration(found[1]))(t)
	require.Positive(t, named)
	require.LessOrEqual(t, named, grace, "the rest of the lease, which was at most that")
	require.Contains(t, r.errs.String(), `the lease of "gpu", fence `+r.fence+`, was lost while the command ran`)
}

// No other bound of the hold is meant by that.
func TestACommandThatEndsAtTermWasLostAllTheSame(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := begin(t, s.URL(), "polite", "--lease", "15s", "--grace", "5s", "--max-hold", "1h")
	s.Close()
	says := r.overruled()
	require.Contains(t, says, "no renewal in time")
	require.Contains(t, says, "was told to end before the lease")
}

func TestAHoldThatAnOperatorReleasesEndsTheCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args, release []string
		says          string
	}{
		"a permit": {apptest.RunArgs("polite", "--lease", "1h"), []string{"sem", "release", "gpu", "--all"}, `permit of "gpu"`},
		"a lock":   {apptest.LockArgs("polite", "--lease", "1h"), []string{"lock", "release", "gpu"}, `lock "gpu"`},
		"one of two": {
			append([]string{"run", "--lock", "disk"}, apptest.LockArgs("polite", "--lease", "1h")[1:]...), []string{"lock", "release", "disk"}, `lock "disk"`,
		},
		"a resource": {poolArgs("polite", "--lease", "1h"), []string{"pool", "release", "gpu", "a"}, `resource of "gpu"`},
		"a period": {
			append(onceArgs("--lease", "1h"), apptest.LockArgs("polite")[3:]...), []string{"lock", "release", "gpu"}, `lock "gpu"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Server(t)
			apptest.Filled(t, s, "gpu", "a")
			r := beginWith(t, s.URL(), test.args)
			require.Zero(t, apptest.Call(t, s.URL(), append(test.release, "--force")...).Code)
			says := r.overruled()
			require.Regexp(t, `^berth: ("disk", )?"gpu": somebody else has released it: SIGTERM sent`, says)
			require.Regexp(t, `the `+test.says+`, fence \d{16}, was released by somebody else while the command ran\n$`, says)
			require.NotContains(t, says, "no renewal in time", "by a renewal, not by the end of the lease")
			requireUnlocked(t, s.URL())
			if name == "a period" {
				last := lastRun(t, s)
				require.Nil(t, last.Success)
				require.Equal(t, once.Failed, last.Run.Outcome)
			}
		})
	}
}

func TestAPermitThatTurnsOutNotToBeHeldAnyMore(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := begin(t, s.URL(), "polite", "--lease", "1h")
	_, err := apptest.OpsOf(t, s).Release(context.Background(), berth.Target{Kind: keyspace.Sem, Name: "gpu", Claim: r.claim})
	require.NoError(t, err)
	r.signal(syscall.SIGINT)
	require.Contains(t, []string{"got interrupt", "got terminated"}, r.line(), "berth hears of the release before the signal, or at the end")
	require.Equal(t, 76, r.end())
	require.Contains(t, r.errs.String(), "was released by somebody else while the command ran")
}

// Who is asked for the hold tells the command, which ends by itself: that is its own end.
func TestTheCommandIsToldThatItsHoldIsWanted(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := begin(t, s.URL(), "polite", "--on-wanted", "usr1", "--lease", "15s")
	wanted, err := apptest.OpsOf(t, s).Want(context.Background(), berth.Target{Kind: keyspace.Sem, Name: "gpu", Claim: r.claim})
	require.NoError(t, err)
	require.Equal(t, 1, wanted)
	require.Equal(t, "got user defined signal 1", r.line())
	require.Equal(t, 3, r.end(), "the command's own")
	require.Contains(t, r.errs.String(), `"gpu": somebody wants it back: SIGUSR1 sent`)
}

// TestTheBoundOfTheHoldEndsTheCommand has every other bound come so late that the test
// would not wait for it.
func TestTheBoundOfTheHoldEndsTheCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args  []string
		bound string
	}{
		"max-hold below the lease":  {apptest.RunArgs("stubborn", "--lease", "1h", "--max-hold", "15s"), "--max-hold 15s"},
		"max-hold after a renewal":  {apptest.RunArgs("polite", "--lease", "16s", "--max-hold", "15s"), "--max-hold 15s"},
		"no-renew":                  {apptest.RunArgs("polite", "--lease", "15s", "--no-renew"), "--lease 15s with --no-renew"},
		"no-renew, longer max-hold": {apptest.RunArgs("stubborn", "--lease", "15s", "--no-renew", "--max-hold", "1h"), "--lease 15s with --no-renew"},
		"no-renew, max-hold":        {apptest.RunArgs("polite", "--lease", "1h", "--no-renew", "--max-hold", "15s"), "--max-hold 15s"},
		"a lock":                    {apptest.LockArgs("stubborn", "--lease", "15s", "--no-renew"), "--lease 15s with --no-renew"},
		"a period":                  {append(onceArgs("--lease", "15s", "--no-renew"), apptest.LockArgs("stubborn")[3:]...), "--lease 15s with --no-renew"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Server(t)
			r := beginWith(t, s.URL(), slices.Insert(test.args, 1, "--grace", "5s"))
			require.Equal(t, "got terminated", r.line())
			r.silent()
			require.Equal(t, 76, r.end())
			says := r.errs.String()
			require.Contains(t, says, `"gpu": it has been held as long as it may: SIGTERM sent, SIGKILL follows in `)
			require.NotContains(t, says, "no renewal in time")
			require.NotContains(t, says, "lost")
			noun := "lock"
			if slices.Contains(test.args, "--sem") {
				noun = "permit of"
			}
			require.Contains(t, says, fmt.Sprintf(
				"berth: the %s \"gpu\", fence %s, was held as long as %s allows, and the command still ran\n", noun, r.fence, test.bound))
			require.Eventually(t, func() bool { // the server knows it for a margin longer
				left := apptest.Call(t, s.URL(), "sem", "ls", "--json").Out + apptest.Call(t, s.URL(), "lock", "ls", "--json").Out
				return !strings.Contains(left, `"held": 1`)
			}, apptest.Patience, 50*time.Millisecond)
		})
	}
}

func TestABerthThatWasStoppedPastItsLeaseKillsAtOnce(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := begin(t, s.URL(), "stubborn", "--lease", "15s")
	r.signal(syscall.SIGSTOP)
	// Somebody else gets the permit when the lease has ended.
	permit := apptest.Got(apptest.SemOf(t, s, "gpu", 1).Acquire(context.Background(), nil))(t)
	require.Greater(t, permit.Fence(), apptest.Got(strconv.ParseInt(r.fence, 10, 64))(t))
	require.NoError(t, syscall.Kill(r.command, 0), "the command does not know")
	r.signal(syscall.SIGCONT)
	r.silent() // no SIGTERM: there is no time for it
	require.Equal(t, 76, r.end())
	require.Contains(t, r.errs.String(), "SIGKILL sent")
	require.NoError(t, permit.Err())
}

func TestAServerThatDoesNotAnswerIsAskedForTheLeaseOrTenSeconds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"a permit":      {apptest.RunArgs("polite", "--lease", "1h"), "no answer (within 10s|in time)"}, // or the client says so a moment before
		"a lock":        {apptest.LockArgs("polite", "--lease", "1h"), "no answer (within 10s|in time)"},
		"a short lease": {apptest.LockArgs("polite", "--lease", "9s"), `no answer within [2-8][.\d]*s`}, // what is left of it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			way := apptest.WayTo(t, apptest.Server(t))
			r := beginWith(t, way.URL, test.args)
			way.Block()
			r.signal(syscall.SIGTERM)
			require.Equal(t, "got terminated", r.line())
			require.Equal(t, 3, r.end(), "the command's own code")
			require.Regexp(t, `^berth: "gpu" not given back, it ends with its lease: .*`+test.says+`.*\n$`, r.errs.String())
		})
	}
}

// TestAServerThatStandsStillGetsTheRelease has it stand still for longer than a
// busy machine may take.
func TestAServerThatStandsStillGetsTheRelease(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	way := apptest.WayTo(t, s)
	r := beginWith(t, way.URL, apptest.RunArgs("polite", "--lease", "1h"))
	way.Hold()
	r.signal(syscall.SIGTERM)
	require.Equal(t, "got terminated", r.line())
	r.over()
	time.Sleep(closingHold + 500*time.Millisecond)
	way.Release()
	require.Equal(t, 3, r.end())
	require.Empty(t, r.errs.String())
	requireFree(t, s.URL())
}

func TestASignalEndsTheRelease(t *testing.T) {
	t.Parallel()
	way := apptest.WayTo(t, apptest.Server(t))
	r := beginWith(t, way.URL, apptest.RunArgs("polite", "--lease", "1h"))
	way.Block()
	r.signal(syscall.SIGTERM)
	require.Equal(t, "got terminated", r.line())
	r.over()
	apptest.Interrupt(t, r.cmd, 10*time.Millisecond) // berth may still pass it on to the command that is gone
	require.Equal(t, 3, r.end(), "the command's own code")
	require.Equal(t, "berth: \"gpu\" not given back, it ends with its lease: ended by signal: interrupt\n", r.errs.String())
}

func TestTheWaitBoundsConnecting(t *testing.T) {
	t.Parallel()
	way := apptest.WayTo(t, apptest.Server(t))
	way.Block()
	got := apptest.Spawn(t, way.URL+"&dial_timeout=1h", apptest.RunArgs("polite", "--wait", "200ms")...).Ends(t, 69)
	require.Regexp(t, `^berth: cannot reach the server at \S+: not connected within --wait 200ms\n$`, got.Err)
}

func TestTheOptionsOfALockAreItsClaims(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	r := beginWith(t, s.URL(), apptest.LockArgs("polite", "--lease", "1h", "--no-renew", "--max-hold", "2h", "--access", "random"))
	holder := apptest.HoldersOf(t, s, keyspace.Lock, "gpu")[0]
	require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour}, []time.Duration{holder.Lease, holder.MaxHold})
	require.True(t, holder.NoRenew)
	require.Greater(t, holder.Left, 59*time.Minute, "the whole lease from the start")

	late := apptest.Spawn(t, s.URL(), apptest.LockArgs("polite", "--priority", "7", "--wait", "12s")...).Ends(t, 75)
	require.Regexp(t, `^berth: "gpu" not acquired: timed out after [1-9][\d.]*s \(held by \S+ for [\d.m]+s, waiting 0\)\n$`, late.Err)
	waiter, leave := queued(t, s, keyspace.Lock, apptest.LockArgs("polite", "--priority", "7", "--access", "lifo")...)
	require.Equal(t, 7, waiter.Priority)
	require.Contains(t, apptest.Call(t, s.URL(), "lock", "explain", "gpu").Out, "last come, first served")
	leave()
	r.ends(syscall.SIGINT)
}

// said is what a command finds in its environment, "none" for what is not set.
type said struct{ name, fence, fences, owner, resource string }

// environment runs a command that says what it finds, under flags.
func environment(t *testing.T, s *embedded.Server, flags ...string) said {
	t.Helper()
	cmd := apptest.Command(t, s.URL(), append(append([]string{"run"}, flags...), "--", "sh", "-c",
		`printf '%s|%s|%s|%s|%s' "${BERTH_NAME-none}" "${BERTH_FENCE-none}" "${BERTH_FENCES-none}" "${BERTH_OWNER-none}" "${BERTH_RESOURCE-none}"`)...)
	cmd.Env = append(cmd.Env, "BERTH_NAME=outer", "BERTH_FENCE=1", "BERTH_FENCES={}")
	got := apptest.Finish(t, cmd)
	require.Equal(t, apptest.Outcome(0, got.Out, ""), got)
	parts := strings.Split(got.Out, "|")
	require.Len(t, parts, 5)
	return said{parts[0], parts[1], parts[2], parts[3], parts[4]}
}

func TestTheNumberOfOneLockIsNotThatOfSeveral(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	one := environment(t, s, "--lock", "gpu", "--owner", "job 7")
	require.Equal(t, "gpu", one.name)
	require.Equal(t, "job 7", one.owner)
	require.JSONEq(t, `{"gpu": "`+one.fence+`"}`, one.fences)

	several := environment(t, s, "--lock", "gpu", "--lock", "disk")
	require.Equal(t, said{"none", "none", several.fences, "none", "none"}, several, "nor those of an outer berth")
	require.Equal(t, "none", environment(t, s, "--sem", "gpu", "--capacity", "1").resource, "only a pool has resources")
	fences := apptest.Read[map[string]string](t, several.fences)
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
	apptest.Got(apptest.LocksOf(t, s, node.Config{}).Lock(context.Background(), "gpu", nil))(t)
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
		got := nested(`--owner "$BERTH_OWNER" --conflict `+conflict).Ends(t, 0)
		lines := strings.Split(got.Out, "\n")
		require.Equal(t, "gpu "+lines[1]+" job 7", lines[0], "a re-entry keeps the fence")
	}
	require.Contains(t, nested(`--owner "$BERTH_OWNER"`).Ends(t, 75).Err, "would wait for its own owner")
	stranger := nested("--try").Ends(t, 75)
	require.Contains(t, stranger.Err, `"gpu" not acquired: held`, "BERTH_OWNER alone does not let it in")
	requireUnlocked(t, s.URL())
}

func TestListingsShowTheOwnerAndTheMeta(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	require.Zero(t, apptest.Call(t, s.URL(), "pool", "add", "gpu", "a").Code)
	flags := []string{"--lease", "1h", "--owner", "job 7", "--meta", "job=7", "--meta", "note=a=b, c", "--meta", "empty="}
	for kind, args := range map[string]func(string, ...string) []string{"sem": apptest.RunArgs, "lock": apptest.LockArgs, "pool": poolArgs} {
		beginWith(t, s.URL(), args("polite", flags...))
		got := apptest.Call(t, s.URL(), kind, "show", "gpu", "--json")
		require.Regexp(t, `"meta": \{\s+"empty": "",\s+"job": "7",\s+"note": "a=b, c"\s+\}`, got.Out, kind)
		require.Contains(t, got.Out, `"owner": "job 7"`, kind)
	}
}
