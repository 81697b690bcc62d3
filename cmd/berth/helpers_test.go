package main

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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/supervise"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	// berthVariable makes this test binary the program under test.
	berthVariable = "BERTH_TEST_IS_BERTH"
	// testsVariable is set where the tests run: what they start never is them again.
	testsVariable = "BERTH_TEST_RUNS"
	// rolePrefix begins the argument that makes it a command that berth runs. It
	// has the variable too: berth passes its environment on.
	rolePrefix = "play:"
	// patience bounds what a test waits for.
	patience = 2 * time.Minute
	// longLease is that of the tests' own clients: no pause of a busy machine ends it.
	longLease = 50 * time.Second
)

// runProgram is the program under test.
var runProgram func(args []string, in io.Reader, out, errs io.Writer) int

// runTests runs the tests of a package of the command: the test binary is also the
// program, and what the program runs.
func runTests(m *testing.M, run func(args []string, in io.Reader, out, errs io.Writer) int) {
	runProgram = run
	app.Times.Complete, app.Times.Call, app.Times.Look = patience, time.Minute, time.Minute // no pause of a busy machine fails a command
	switch {
	case len(os.Args) > 1 && strings.HasPrefix(os.Args[1], rolePrefix):
		act(strings.TrimPrefix(os.Args[1], rolePrefix))
	case os.Getenv(berthVariable) != "", len(os.Args) > 1 && os.Args[1] == "demo-worker": // a demo hires its own program
		os.Exit(runProgram(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case os.Getenv(testsVariable) != "":
		fmt.Fprintf(os.Stderr, "a test has started the tests anew, with %q\n", os.Args)
		os.Exit(2)
	default:
		_ = os.Setenv(testsVariable, "1")
		for _, variable := range []string{"BERTH_REDIS", "BERTH_REDIS_PASSWORD", "BERTH_NAMESPACE"} {
			_ = os.Unsetenv(variable)
		}
		// Most of these tests wait for processes, and not for a processor.
		if flag.Parse(); flag.Lookup("test.parallel").DefValue == flag.Lookup("test.parallel").Value.String() {
			_ = flag.Set("test.parallel", "16")
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
		goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
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

// server starts a server that child processes can reach.
func server(t *testing.T) *embedded.Server {
	t.Helper()
	s, err := embedded.StartListening("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// clientOf returns a client of its own on the server.
func clientOf(t *testing.T, s *embedded.Server, cfg semaphore.Config) *semaphore.Client {
	t.Helper()
	redis, err := s.Client()
	require.NoError(t, err)
	cfg.Lease = cmp.Or(cfg.Lease, longLease)
	client, err := semaphore.New(redis, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = client.Close(ctx) // some tests close the server first
		redis.Close()
	})
	return client
}

// opsOf returns the operator's calls of a client of its own.
func opsOf(t *testing.T, s *embedded.Server) *semaphore.Operator {
	t.Helper()
	return clientOf(t, s, semaphore.Config{}).Operator()
}

// semOf returns a semaphore on a client of its own.
func semOf(t *testing.T, s *embedded.Server, name string, capacity int) *semaphore.Semaphore {
	t.Helper()
	sem, err := clientOf(t, s, semaphore.Config{}).Semaphore(name, capacity, nil)
	require.NoError(t, err)
	return sem
}

// nobody is a URL, with a password, at which nobody listens: the port is one of
// those that only root could open, and is never given out.
const nobody = "redis://user:s3cret@127.0.0.1:1"

// program is this test binary as berth, with the server in its environment.
func program(t *testing.T, url string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	// By default the race detector lets every process linger for a second.
	if strings.HasPrefix(url, "redis://") && !strings.Contains(url, "dial_timeout") { // a busy machine connects late
		sign := "?"
		if strings.Contains(url, "?") {
			sign = "&"
		}
		url += sign + "dial_timeout=1m"
	}
	cmd.Env = append(os.Environ(), berthVariable+"=1", "BERTH_REDIS="+url, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// result is what a run of the program left.
type result struct {
	code     int
	out, err string
}

// outcome is the result with this exit code, this output and these errors.
func outcome(code int, out, err string) result { return result{code, out, err} }

// call runs the program to its end in this process, with the server as its flag. It
// is not for what a command of berth run is started by: that sees to signals and to
// the terminal of the whole process.
func call(t *testing.T, url string, args ...string) result {
	t.Helper()
	return fed(t, url, "", args...)
}

// fed is call with something to read.
func fed(t *testing.T, url, stdin string, args ...string) result {
	t.Helper()
	if strings.HasSuffix(url, "?client_cache=0") { // an embedded server, which a busy machine may hold up
		url += "&dial_timeout=1m&write_timeout=1m"
	}
	var out, errs bytes.Buffer
	code := runProgram(append([]string{"--redis", url}, args...), strings.NewReader(stdin), &out, &errs)
	return outcome(code, out.String(), errs.String())
}

// spawn runs the program to its end as a process of its own.
func spawn(t *testing.T, url string, args ...string) result {
	t.Helper()
	return finish(t, program(t, url, args...))
}

// interrupt interrupts a process again and again until the test ends.
func interrupt(t *testing.T, cmd *exec.Cmd, every time.Duration) {
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

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return outcome(cmd.ProcessState.ExitCode(), out.String(), errs.String())
}

// runArgs are the arguments of a run of a role, with more flags before it.
func runArgs(role string, flags ...string) []string {
	args := append([]string{"run", "--sem", "gpu", "--capacity", "1"}, flags...)
	return append(args, "--", os.Args[0], rolePrefix+role)
}

// lockArgs are the same of a run under a lock.
func lockArgs(role string, flags ...string) []string {
	args := append([]string{"run", "--lock", "gpu"}, flags...)
	return append(args, "--", os.Args[0], rolePrefix+role)
}

// locksOf returns the locks of a client of its own on the server.
func locksOf(t *testing.T, s *embedded.Server, cfg qlock.Config) *qlock.Client {
	t.Helper()
	redis, err := s.Client()
	require.NoError(t, err)
	cfg.Lease = cmp.Or(cfg.Lease, longLease)
	client, err := qlock.New(redis, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = client.Close(ctx) // some tests close the server first
		redis.Close()
	})
	return client
}
