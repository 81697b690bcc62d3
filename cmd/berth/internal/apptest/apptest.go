// Package apptest is what the tests of the commands share: servers, clients, and the
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

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/supervise"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
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
	// longLease is that of the tests' own clients: no pause of a busy machine ends it.
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

// Server starts a server that child processes can reach.
func Server(t *testing.T) *embedded.Server {
	t.Helper()
	s, err := embedded.StartListening("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// Patiently has a connection bear that the server, which is in this process, is held up, as a command of Call does.
func Patiently(o *rueidis.ClientOption) {
	o.Dialer.Timeout, o.ConnWriteTimeout = time.Minute, time.Minute
}

// connected returns a connection to the server that ends with the test.
func connected(t *testing.T, s *embedded.Server, changes ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	redis, err := s.Client(append(changes, Patiently)...)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	return redis
}

// closed closes a client at the end of the test. Some tests close the server first.
func closed(t *testing.T, by func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		_ = by(ctx)
	})
}

// ClientOf returns a client of its own on the server.
func ClientOf(t *testing.T, s *embedded.Server, cfg semaphore.Config, changes ...func(*rueidis.ClientOption)) *semaphore.Client {
	t.Helper()
	redis := connected(t, s, changes...)
	cfg.Lease, cfg.CallTimeout, cfg.Retry.Within = cmp.Or(cfg.Lease, longLease), Patience, Patience
	client, err := semaphore.New(redis, cfg)
	require.NoError(t, err)
	closed(t, client.Close)
	return client
}

// OpsOf returns the operator's calls of a client of its own.
func OpsOf(t *testing.T, s *embedded.Server) *semaphore.Operator {
	t.Helper()
	return ClientOf(t, s, semaphore.Config{}).Operator()
}

// SemOf returns a semaphore on a client of its own.
func SemOf(t *testing.T, s *embedded.Server, name string, capacity int) *semaphore.Semaphore {
	t.Helper()
	sem, err := ClientOf(t, s, semaphore.Config{}).Semaphore(name, capacity, nil)
	require.NoError(t, err)
	return sem
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
	return Outcome(code, out.String(), errs.String())
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
	return Outcome(cmd.ProcessState.ExitCode(), out.String(), Said(errs.String()))
}

// slow are notices of a machine on which an answer, or a turn, takes seconds.
var slow = regexp.MustCompile(`(?m)^berth: (still waiting for |warning: .*it has not answered yet).*\n`)

// Said is what the program said, but for notices that only a busy machine brings.
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

// LocksOf returns the locks of a client of its own on the server.
func LocksOf(t *testing.T, s *embedded.Server, cfg qlock.Config, changes ...func(*rueidis.ClientOption)) *qlock.Client {
	t.Helper()
	redis := connected(t, s, changes...)
	cfg.Lease, cfg.CallTimeout, cfg.Retry.Within = cmp.Or(cfg.Lease, longLease), Patience, Patience
	client, err := qlock.New(redis, cfg)
	require.NoError(t, err)
	closed(t, client.Close)
	return client
}

// looking calls f with what reads the server.
func looking(t *testing.T, s *embedded.Server, f func(ctx context.Context, read *inspect.Reader) error) {
	t.Helper()
	redis, err := s.Client(Patiently)
	require.NoError(t, err)
	defer redis.Close()
	read, err := inspect.New(redis, inspect.Config{CallTimeout: Patience, Retry: berth.Retry{Within: Patience}})
	require.NoError(t, err)
	require.NoError(t, f(context.Background(), read))
}

// NameOf is a name as it is now.
func NameOf(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) (n inspect.Name) {
	t.Helper()
	looking(t, s, func(ctx context.Context, read *inspect.Reader) (err error) {
		n, err = read.Name(ctx, kind, name)
		return err
	})
	return n
}

// HoldersOf are those that hold a name.
func HoldersOf(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) (all []berth.Holder) {
	t.Helper()
	looking(t, s, func(ctx context.Context, read *inspect.Reader) (err error) {
		all, err = app.AllHolders(ctx, read, kind, name)
		return err
	})
	return all
}

// WaitersOf are those that wait for a name.
func WaitersOf(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) (all []berth.Waiter) {
	t.Helper()
	looking(t, s, func(ctx context.Context, read *inspect.Reader) (err error) {
		all, err = app.AllWaiters(ctx, read, kind, name)
		return err
	})
	return all
}

// Waiting is how many wait for a name.
func Waiting(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) int {
	t.Helper()
	return NameOf(t, s, kind, name).Waiting
}

// changing finds what is never the same twice.
var changing = regexp.MustCompile(`[0-9a-f]{16}\.[0-9a-v]{20}|"[0-9a-f]{16}"|\d{16}|"\d{4}-[^"]*Z"|("(?:left|for)Ms": )\d+|\d+(\.\d+)?(µs|ms|s)\b`)

// Settled replaces it.
func Settled(text string) string {
	return changing.ReplaceAllStringFunc(text, func(found string) string {
		if key, _, ok := strings.Cut(found, ": "); ok {
			return key + ": 0"
		}
		return "*"
	})
}

// Drain runs a drain of processes on a link, which hear of it only when it has asked them: else one that reads the
// notice in between gives back by itself, and the drain counts nothing.
func Drain(t *testing.T, s *embedded.Server, processes *link.Link, asked func() bool, args ...string) Result {
	t.Helper()
	drained := make(chan Result, 1)
	processes.Stall()
	go func() { drained <- Call(t, s.URL(), args...) }()
	require.Eventually(t, asked, Patience, 10*time.Millisecond)
	processes.Flow()
	return <-drained
}

// Pool is a pool, its client, and the operator of that.
type Pool struct {
	*allocator.Pool[string]
	Client *allocator.Client
	Ops    *allocator.Operator
	Server *embedded.Server
}

// PoolOf returns a pool on a client of its own.
func PoolOf(t *testing.T, s *embedded.Server, name string, cfg allocator.Config) Pool {
	t.Helper()
	redis := connected(t, s)
	cfg.Lease, cfg.CallTimeout, cfg.Retry.Within = cmp.Or(cfg.Lease, longLease), Patience, Patience
	client, err := allocator.New(redis, cfg)
	require.NoError(t, err)
	closed(t, client.Close)
	pool, err := allocator.NewPool(client, name, allocator.PoolConfig[string]{})
	require.NoError(t, err)
	return Pool{pool, client, client.Operator(), s}
}

// Filled returns a pool with resources.
func Filled(t *testing.T, s *embedded.Server, name string, resources ...string) Pool {
	t.Helper()
	pool := PoolOf(t, s, name, allocator.Config{Label: "host/one/1"})
	_, err := pool.Add(context.Background(), resources, nil)
	require.NoError(t, err)
	return pool
}

// Wild is a key that would harm a terminal.
const Wild = "c\x1b[2J\xff"

// Owned is a context whose calls are for an owner.
func Owned(owner string) context.Context { return berth.WithOwner(context.Background(), owner) }

// Ends requires that somebody else has ended a hold. It asks: who did not have to wait is not
// subscribed, and would hear of it a third of the lease later.
func Ends(t *testing.T, h berth.Hold) {
	t.Helper()
	_ = h.Renew(context.Background()) // what the hold's end is counts
	select {
	case <-h.Done():
	case <-time.After(Patience):
	}
	require.ErrorIs(t, h.Err(), berth.ErrReleased)
}

// WaitingFor returns the id of the first that waits for a name.
func WaitingFor(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) (id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		all := WaitersOf(t, s, kind, name)
		if len(all) == 0 {
			return false
		}
		id = all[0].ID
		return true
	}, Patience, 10*time.Millisecond)
	return id
}

// LockScenery is a server with a lock that one owner has entered twice and two wait
// for, and one that is held without end.
func LockScenery(t *testing.T) (*embedded.Server, *qlock.Lock) {
	t.Helper()
	s := Server(t)
	locks := LocksOf(t, s, qlock.Config{Label: "host/one/1"})
	owned := berth.WithOwner(context.Background(), "order 66\x1b[2J")
	outer, err := locks.Lock(owned, "gpu", &qlock.LockOptions{
		Lease: 40 * time.Second, MaxHold: time.Hour, Meta: map[string]string{"step": "render"},
	})
	require.NoError(t, err)
	_, err = locks.Lock(owned, "gpu", &qlock.LockOptions{Lease: 10 * time.Second, Conflict: qlock.ExtendAndWorkThrough})
	require.NoError(t, err)
	ctx, leave := context.WithCancel(context.Background())
	t.Cleanup(leave)
	for i, o := range []qlock.LockOptions{{Access: qlock.LIFO}, {Priority: 7}} {
		go func() { _, _ = locks.Lock(ctx, "gpu", &o) }() // ends with the client
		require.Eventually(t, func() bool { return Waiting(t, s, keyspace.Lock, "gpu") == i+1 }, Patience, 10*time.Millisecond)
	}
	_, err = locks.Lock(context.Background(), "disk 2", &qlock.LockOptions{Lease: berth.Forever})
	require.NoError(t, err)
	return s, outer
}
