// Package apptest is what the tests of the commands share: servers, nodes, and the
// program under test.
package apptest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/supervise"
	"github.com/berth-go/berth/internal/testkit/lag"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/embedded"
)

const (
	// berthVariable makes this test binary the program under test.
	berthVariable = "BERTH_TEST_IS_BERTH"
	// testsVariable is set where the tests run: what they start never is them again.
	testsVariable = "BERTH_TEST_RUNS"
	// RolePrefix begins the argument that makes it a command that berth runs. It
	// has the variable too: berth passes its environment on.
	RolePrefix = "play:"
	// Patience bounds what a test waits for.
	Patience = 2 * time.Minute
	// longLease is that of the tests' own nodes: no pause of a busy machine ends it.
	longLease = 50 * time.Second
)

// Program is the program under test.
var Program func(args []string, in io.Reader, out, errs io.Writer) int

// Main runs the tests of a package of the command: the test binary is also the
// program, and what the program runs.
func Main(m *testing.M, run func(args []string, in io.Reader, out, errs io.Writer) int) {
	Program = run
	app.Times.Complete, app.Times.Demo, app.Times.Call, app.Times.Look = Patience, Patience, time.Minute, time.Minute // no pause of a busy machine fails a command
	switch {
	case len(os.Args) > 1 && strings.HasPrefix(os.Args[1], RolePrefix):
		act(strings.TrimPrefix(os.Args[1], RolePrefix))
	case os.Getenv(berthVariable) != "", len(os.Args) > 1 && os.Args[1] == "demo-worker": // a demo hires its own program
		os.Exit(Program(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case os.Getenv(testsVariable) != "":
		fmt.Fprintf(os.Stderr, "a test has started the tests anew, with %q\n", os.Args)
		os.Exit(2)
	default:
		_ = os.Setenv(testsVariable, "1")
		for _, variable := range []string{"BERTH_REDIS", "BERTH_REDIS_PASSWORD", "BERTH_NAMESPACE"} {
			_ = os.Unsetenv(variable)
		}
		// Most of these tests wait for processes. More of them at once than this would keep the
		// servers, which are in this process, from the processor for longer than a lease: a
		// process takes a second of it to start under the race detector.
		if flag.Parse(); flag.Lookup("test.parallel").DefValue == flag.Lookup("test.parallel").Value.String() {
			_ = flag.Set("test.parallel", "5")
		}
		if signal.Ignored(syscall.SIGHUP) { // as under nohup; who is started from here would inherit it
			signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		}
		interrupts := make(chan os.Signal, 1) // a command that is played here keeps them from the system
		signal.Notify(interrupts, os.Interrupt)
		go func() {
			<-interrupts
			os.Exit(1)
		}()
		// Rueidis leaves it behind where a server is not a cluster, for up to a
		// second.
		goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction(lag.Goroutine), goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
	}
}

// act is what the commands do that berth runs: each says what it finds, and a
// line for every signal.
func act(role string) {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, supervise.Interrupts()...)
	signal.Notify(signals, supervise.Others()...)
	name := func(variable string) string { return cmp.Or(os.Getenv(variable), "none") } // with several locks
	fmt.Println("ready", os.Getpid(), name("BERTH_NAME"), name("BERTH_CLAIM"), name("BERTH_FENCE"))
	for sig := range signals {
		fmt.Println("got", sig)
		if role == "polite" {
			os.Exit(3)
		}
	}
}

// Server starts a server that child processes can reach. The test relies on leases of 10 s and more; of one that relies
// on less lag.Relies says so.
func Server(t *testing.T) *embedded.Server {
	t.Helper()
	lag.Relies(t, 10*time.Second/3)
	s, err := embedded.StartListening("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// Patiently has a connection bear that the server, which is in this process, is held up, as a command of Call does.
func Patiently(o *rueidis.ClientOption) {
	o.Dialer.Timeout, o.ConnWriteTimeout = time.Minute, time.Minute
}

// Nobody is a URL, with a password, at which nobody listens: the port is one of
// those that only root could open, and is never given out.
const Nobody = "redis://user:s3cret@127.0.0.1:1"

// Command is this test binary as berth, with the server in its environment.
func Command(t *testing.T, url string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	// By default the race detector lets every process linger for a second.
	if strings.HasPrefix(url, "redis://") && !strings.Contains(url, "dial_timeout") { // a busy machine connects late
		sign := "?"
		if strings.Contains(url, "?") {
			sign = "&"
		}
		url += sign + "dial_timeout=1m&write_timeout=1m"
	}
	cmd.Env = append(os.Environ(), berthVariable+"=1", "BERTH_REDIS="+url, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// Result is what a run of the program left.
type Result struct {
	Code     int
	Out, Err string
}

// Ends requires this exit code.
func (r Result) Ends(t *testing.T, code int, why ...any) Result {
	t.Helper()
	require.Equal(t, code, r.Code, fmt.Sprint(append(why, r.Out, r.Err)...))
	return r
}

// Outcome is the result with this exit code, this output and these errors.
func Outcome(code int, out, err string) Result { return Result{code, out, err} }

// Call runs the program to its end in this process, with the server as its flag. It
// is not for what a command of berth run is started by: that sees to signals and to
// the terminal of the whole process.
func Call(t *testing.T, url string, args ...string) Result {
	t.Helper()
	return Fed(t, url, "", args...)
}

// Fed is Call with something to read.
func Fed(t *testing.T, url, stdin string, args ...string) Result {
	t.Helper()
	if strings.HasSuffix(url, "?client_cache=0") { // an embedded server, which a busy machine may hold up
		url += "&dial_timeout=1m&write_timeout=1m"
	}
	var out, errs bytes.Buffer
	own := func(arg string) bool { return arg == "--redis" || strings.HasPrefix(arg, "--redis=") }
	if !slices.ContainsFunc(args, own) { // a test of that flag gives its own
		args = append([]string{"--redis", url}, args...)
	}
	code := Program(args, strings.NewReader(stdin), &out, &errs)
	if err := asDescribed(args, out.String()); err != nil {
		t.Errorf("%q: %v: %s", args, err, out.String())
	}
	// A command that is told to be typed names the server that only this call has named.
	return Outcome(code, strings.ReplaceAll(out.String(), " --redis "+text.Shell(url), ""), errs.String())
}

// Spawn runs the program to its end as a process of its own.
func Spawn(t *testing.T, url string, args ...string) Result {
	t.Helper()
	return Finish(t, Command(t, url, args...))
}

// Interrupt interrupts a process again and again until the test ends.
func Interrupt(t *testing.T, cmd *exec.Cmd, every time.Duration) {
	t.Helper()
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		again := time.NewTicker(every)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				_ = cmd.Process.Signal(os.Interrupt)
			case <-done:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		sending.Wait()
	})
}

// Finish runs a command to its end.
func Finish(t *testing.T, cmd *exec.Cmd) Result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	if err := asDescribed(cmd.Args, out.String()); err != nil {
		t.Errorf("%q: %v: %s", cmd.Args, err, out.String())
	}
	return Outcome(cmd.ProcessState.ExitCode(), out.String(), Said(errs.String()))
}

// slow are notices of a machine on which an answer, or a turn, takes seconds.
var slow = regexp.MustCompile(`(?m)^berth: (still waiting for |warning: .*it has not answered yet).*\n`)

// Said returns the program's output without notices that only appear on a busy machine.
func Said(errs string) string { return slow.ReplaceAllString(errs, "") }

// RunArgs are the arguments of a run of a role, with more flags before it.
func RunArgs(role string, flags ...string) []string {
	args := append([]string{"run", "--sem", "gpu", "--capacity", "1"}, flags...)
	return append(args, "--", os.Args[0], RolePrefix+role)
}

// LockArgs are the same of a run under a lock.
func LockArgs(role string, flags ...string) []string {
	args := append([]string{"run", "--lock", "gpu"}, flags...)
	return append(args, "--", os.Args[0], RolePrefix+role)
}

// changing finds what is never the same twice.
var changing = regexp.MustCompile(`[0-9a-f]{16}\.[0-9a-v]{20}|\d{16}|\d+(\.\d+)?(µs|ms|s)\b`)

// Settled replaces it.
func Settled(text string) string { return changing.ReplaceAllString(text, "*") }

// Wild is a key that would harm a terminal.
const Wild = "c\x1b[2J\xff"
