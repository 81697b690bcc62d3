package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

func TestMain(m *testing.M) {
	code := harness.Main(m)
	_ = os.RemoveAll(folder) // in that for what is temporary
	os.Exit(code)
}

// folder holds what built has built, if it has.
var folder string

// built is this package's program, built once.
var built = sync.OnceValues(func() (path string, err error) {
	if folder, err = os.MkdirTemp("", "berth-worker-"); err != nil {
		return "", err
	}
	return harness.Build(".", "../worker", folder)
})

func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	require.NoError(t, err)
	return path
}

// colours are the resources of the pool.
var colours = []string{"red", "green", "blue"}

// order is a job in a namespace of its own, with a pool that is filled.
func order(t *testing.T, server *harness.Server) job.Job {
	t.Helper()
	j := job.Job{
		Redis: job.Redis{Addresses: []string{server.Addr}}, Namespace: harness.Namespace(t),
		Sems:  []job.Semaphore{{Name: "one", Capacity: 1}, {Name: "three", Capacity: 3}},
		Locks: []job.Lock{{Name: "queued"}, {Name: "mixed", Kind: job.Mixed}, {Name: "reentrant", Kind: job.Reentrant}},
		Pools: []job.Pool{{Name: "pool", Resources: colours, Moves: true}},
		Life:  2000, HoldMax: 10, DrainLimit: testkit.Patience.Milliseconds(), CloseLimit: testkit.Patience.Milliseconds(),
	}
	fill(t, server, j)
	return j
}

// fill adds the resources of the pool.
func fill(t *testing.T, server *harness.Server, j job.Job) {
	t.Helper()
	n, err := node.New(server.Client(t), node.Config{Namespace: j.Namespace})
	require.NoError(t, err)
	defer func() { _ = n.Close(context.Background()) }() // it holds nothing
	_, err = allocator.New(n, "pool", allocator.Config[string]{}).Add(t.Context(), colours, nil)
	require.NoError(t, err)
}

// child is a worker process.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	errs bytes.Buffer
	path string // of its history
}

// spawn starts a worker and returns when it works.
func spawn(t *testing.T, program string, j job.Job, n int) *child {
	t.Helper()
	j.Process, j.Seed = fmt.Sprintf("w%d.1", n), int64(n)
	j.History = filepath.Join(t.TempDir(), "history")
	variable, err := j.Variable()
	require.NoError(t, err)
	c := &child{cmd: exec.Command(program), path: j.History}
	c.cmd.Env, c.cmd.Stderr = append(os.Environ(), variable), &c.errs
	c.in, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() }) // it has ended, unless the test failed
	c.out = bufio.NewScanner(out)
	require.True(t, c.out.Scan(), "%s", &c.errs)
	require.Equal(t, job.Ready, c.out.Text())
	return c
}

// read reads the histories, and fails the test for what none may have, whatever happened.
func read(t *testing.T, workers []*child) (all []history.Event) {
	t.Helper()
	for _, c := range workers {
		events, err := history.Read(c.path)
		require.NoError(t, err)
		begun, ended := map[int64]int{}, map[int64]int{} // by operation
		over := map[int64]bool{}                         // holds that have ended or are being released
		for _, e := range events {
			switch e.Kind {
			case history.Invoke:
				begun[e.Op]++
				if e.Do == history.Release {
					over[e.Hold] = true
				}
			case history.OK, history.Fail, history.Unknown:
				ended[e.Op]++
				require.False(t, e.Do == history.Force && e.Kind == history.OK, "%+v", e)
				require.NotContains(t, e.Is, "invalid", "%+v", e)
				require.False(t, got(e) && e.Fence == 0, "%+v", e)
			case history.Alive:
				require.False(t, over[e.Hold], "%+v", e)
			case history.Ended:
				over[e.Hold] = true
			case history.Stuck, history.Leak:
				require.Fail(t, "stuck or leaked", "%+v", e)
			}
		}
		for op, n := range begun {
			require.Equal(t, 1, n, "operation %d", op)
		}
		require.Equal(t, begun, ended)
		all = append(all, events...)
	}
	return all
}

// drain has the workers end, and returns when they have.
func drain(t *testing.T, workers []*child) {
	t.Helper()
	for _, c := range workers {
		_, err := io.WriteString(c.in, job.Drain+"\n")
		require.NoError(t, err)
	}
	for _, c := range workers {
		require.NoError(t, c.cmd.Wait(), "%s", &c.errs)
	}
}

func TestWorkersUseAllAndDrain(t *testing.T) {
	for name, calm := range map[string]bool{"calm": true, "busy": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := order(t, harness.Shared(t))
			j.Calm = calm
			path := program(t)
			var workers []*child
			for n := range 3 {
				workers = append(workers, spawn(t, path, j, n+1))
			}
			each(t, workers, func(events []history.Event) bool {
				acquired := map[string]int{}
				for _, e := range events {
					if got(e) {
						acquired[e.Primitive]++
					}
				}
				return min(acquired[sem], acquired[lock], acquired[pool]) > 10
			})
			drain(t, workers)
			for _, e := range read(t, workers) {
				if e.Kind == history.Closed {
					require.Empty(t, e.Err, "%+v", e)
					require.Empty(t, e.Left, "%+v", e)
				}
			}
		})
	}
}

func TestEndOfInputEndsTheWorker(t *testing.T) {
	t.Parallel()
	c := spawn(t, program(t), order(t, harness.Shared(t)), 1)
	require.NoError(t, c.in.Close())
	var exit *exec.ExitError
	require.ErrorAs(t, c.cmd.Wait(), &exit)
	require.Equal(t, 3, exit.ExitCode())
	_, err := history.Read(c.path)
	require.NoError(t, err)
}

// each waits until the history of each worker is as it is to be.
func each(t *testing.T, workers []*child, is func(events []history.Event) bool) {
	t.Helper()
	for _, c := range workers {
		require.Eventually(t, func() bool {
			events, err := history.Read(c.path)
			return err == nil && is(events)
		}, testkit.Patience, 10*time.Millisecond)
	}
}

// grown waits until each history has grown by so many bytes. A busy machine may read it slower than it grows.
func grown(t *testing.T, workers []*child, by int64) {
	t.Helper()
	least := map[*child]int64{}
	for _, c := range workers {
		info, err := os.Stat(c.path)
		require.NoError(t, err)
		least[c] = info.Size() + by
	}
	for _, c := range workers {
		require.Eventually(t, func() bool {
			info, err := os.Stat(c.path)
			return err == nil && info.Size() >= least[c]
		}, testkit.Patience, 10*time.Millisecond)
	}
}

// got reports whether an acquire or a try ended with a hold.
func got(e history.Event) bool {
	return e.Kind == history.OK && (e.Do == history.Acquire || e.Do == history.Try)
}

// refusal reports whether an acquire ended because the server was full.
func refusal(e history.Event) bool {
	return e.Do == history.Acquire && slices.Contains(e.Is, "full")
}

func TestWorkersOutliveFaults(t *testing.T) {
	t.Parallel()
	server := harness.Start(t)
	proxy := harness.Proxy(t, server)
	j := order(t, server)
	j.Dial = map[string]string{server.Addr: proxy.Addr}
	j.CloseLimit = 4000 // while no server answers, the histories grow as nodes are closed and made again
	path := program(t)
	workers := []*child{spawn(t, path, j, 1), spawn(t, path, j, 2)}
	const some, few = 20_000, 3_000 // bytes of history: of work, and of trouble
	grown(t, workers, some)
	admin := server.Client(t)
	set := func(setting, value string) {
		require.NoError(t, admin.Do(t.Context(), admin.B().ConfigSet().ParameterValue().ParameterValue(setting, value).Build()).Error())
	}
	more := func() { grown(t, workers, few) }
	refused := func() {
		each(t, workers, func(events []history.Event) bool { return slices.ContainsFunc(events, refusal) })
	}
	for _, fault := range []struct {
		name            string
		lay, felt, heal func()
	}{
		{"cut", func() { proxy.Cut() }, more, func() { proxy.Heal(t) }},
		{"black hole", func() { proxy.BlackHole() }, more, func() { proxy.Heal(t) }},
		{"replies lost", func() { proxy.DropReplies() }, more, func() { proxy.Heal(t) }},
		{"stopped", func() { server.Stop(t) }, more, func() { server.Cont(t) }},
		{"full", func() { set("maxmemory", "1") }, refused, func() { set("maxmemory", "0") }},
		{"restarted", func() { server.Restart(t) }, more, func() { fill(t, server, j) }},
	} {
		t.Log(fault.name)
		fault.lay()
		fault.felt()
		fault.heal()
		grown(t, workers, some)
	}
	drain(t, workers)
	for _, e := range read(t, workers) {
		if e.Kind == history.Closed && e.Err == "" {
			require.Empty(t, e.Left, "%+v", e)
		}
		if refusal(e) {
			require.Equal(t, history.Fail, e.Kind, "%+v", e) // a refusal is an answer
		}
	}
}

// Nobody gives back what the workers wait for.
func TestWhatDoesNotReturnIsStuck(t *testing.T) {
	t.Parallel()
	server := harness.Shared(t)
	j := order(t, server)
	j.Sems, j.Pools, j.Locks, j.DrainLimit = nil, nil, []job.Lock{{Name: "door"}}, 2000
	n, err := node.New(server.Client(t), node.Config{Namespace: j.Namespace, Lease: time.Minute})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close(context.Background())) }()
	_, err = qlock.New(n, qlock.Config{Lease: time.Minute}).Lock(t.Context(), "door", nil)
	require.NoError(t, err)
	reader, err := inspect.New(server.Client(t), inspect.Config{Namespace: j.Namespace})
	require.NoError(t, err)

	c := spawn(t, program(t), j, 1)
	require.Eventually(t, func() bool {
		n, err := reader.Name(t.Context(), keyspace.Lock, "door")
		return err == nil && n.Waiting > 0
	}, testkit.Patience, time.Millisecond)
	_, err = io.WriteString(c.in, job.Drain+"\n")
	require.NoError(t, err)
	var exit *exec.ExitError
	require.ErrorAs(t, c.cmd.Wait(), &exit)
	require.Equal(t, 1, exit.ExitCode())
	events, err := history.Read(c.path)
	require.NoError(t, err)
	waits, last := map[int64]bool{}, history.Invoke
	for _, e := range events {
		switch e.Kind {
		case history.Invoke:
			waits[e.Op] = true
		case history.OK, history.Fail, history.Unknown:
			delete(waits, e.Op)
		case history.Stuck:
			require.True(t, waits[e.Op], "%+v", e)
			delete(waits, e.Op)
		default:
			continue // what is told of those that wait may come at any time
		}
		last = e.Kind
	}
	require.Empty(t, waits)
	require.Equal(t, history.Stuck, last)
}

// A node that is not closed is a leak; goroutines of others are none.
func TestLeaksAreOfBerthAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	out, err := history.Create(path, "w1.1")
	require.NoError(t, err)
	w := &worker{log: newLog(out)}
	redis := harness.Shared(t).Client(t) // has goroutines of its own
	w.lookForLeaks(leakLooks)
	n, err := node.New(redis, node.Config{Namespace: harness.Namespace(t)})
	require.NoError(t, err)
	_, err = qlock.New(n, qlock.Config{}).Lock(t.Context(), "door", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(ours()) > 0 }, testkit.Patience, time.Millisecond) // its goroutine runs
	w.lookForLeaks(5)
	require.NoError(t, n.Close(t.Context()))
	w.lookForLeaks(leakLooks)
	require.NoError(t, out.Close())
	events, err := history.Read(path)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, history.Leak, events[0].Kind)
	require.NotContains(t, events[0].Err, "created by github.com/redis/rueidis")
}
