package berth_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// world is a node on one link, with a face of each kind.
type world struct {
	*testing.T
	*link.Link
	node   *node.Node
	sem    *semaphore.Semaphore
	locks  *qlock.Locks
	pool   *allocator.Pool[string]
	job    *once.Job
	leads  *leader.Election
	fences *fence.Redis
	drawn  int
}

func newWorld(t *testing.T, redis rueidis.Client, l *link.Link) *world {
	t.Helper()
	w := &world{T: t, Link: l}
	retry := berth.Retry{Attempts: 2}
	n, err := node.New(redis, node.Config{Lease: time.Hour, Retry: retry})
	require.NoError(t, err)
	w.node, w.sem, w.locks = n, semaphore.New(n, "gpu", 1000, semaphore.Config{}), qlock.New(n, qlock.Config{Lease: time.Hour})
	w.job, w.leads = once.New(n, "digest", once.Config{Every: time.Hour}), leader.New(n, "scheduler", leader.Config{})
	w.pool = allocator.New(n, "proxies", allocator.Config[string]{
		Source:       func(context.Context) ([]string, error) { return resources(), nil },
		RefreshEvery: 24 * time.Hour, // none of these calls
		Healthy:      func(context.Context, string) error { return nil },
	})
	_, err = w.pool.Add(t.Context(), resources(), nil)
	require.NoError(t, err)
	w.fences, err = fence.NewRedis(redis, fence.RedisConfig{})
	require.NoError(t, err)
	return w
}

func (w *world) close() {
	require.NoError(w, w.node.Close(context.Background()))
}

// receivers make what has the public calls, anew for each of them.
func (w *world) receivers() map[string]func() any {
	must := func(v any, err error) any {
		w.Helper()
		require.NoError(w, err)
		return v
	}
	return map[string]func() any{
		"node.Node":            func() any { return w.node },
		"node.Operator":        func() any { return w.node.Operator() },
		"semaphore.Semaphore":  func() any { return w.sem },
		"semaphore.Operator":   func() any { return semaphore.NewOperator(w.node) },
		"qlock.Operator":       func() any { return qlock.NewOperator(w.node) },
		"allocator.Operator":   func() any { return allocator.NewOperator(w.node) },
		"semaphore.Permit":     func() any { return must(w.sem.Acquire(w.Context(), nil)) },
		"qlock.Locks":          func() any { return w.locks },
		"qlock.Lock":           func() any { return must(w.locks.Lock(w.Context(), w.name(), nil)) },
		"qlock.LockSet":        func() any { return must(w.locks.LockAll(w.Context(), []string{w.name(), w.name()}, nil)) },
		"allocator.Pool":       func() any { return w.pool },
		"allocator.Allocation": func() any { return must(w.pool.Allocate(w.Context(), nil)) },
		"once.Job":             func() any { return w.job },
		"leader.Election":      func() any { return w.leads },
		"fence.Redis":          func() any { return w.fences },
	}
}

// token is one that the receiver can resume.
func (w *world) token(receiver any) berth.Token {
	w.Helper()
	var hold berth.Hold
	var err error
	switch receiver.(type) {
	case *semaphore.Semaphore:
		hold, err = w.sem.Acquire(w.Context(), nil)
	case *qlock.Locks:
		hold, err = w.locks.Lock(w.Context(), w.name(), nil)
	default:
		hold, err = w.pool.Allocate(w.Context(), nil)
	}
	require.NoError(w, err)
	token, err := hold.Detach(w.Context())
	require.NoError(w, err)
	return token
}

func resources() []string {
	all := []string{"a"}
	for i := range 60 {
		all = append(all, fmt.Sprint("proxy-", i))
	}
	return all
}

// name is one that nobody has used.
func (w *world) name() string {
	w.drawn++
	return fmt.Sprint("name-", w.drawn)
}

// waits are the calls that go on until the caller's context ends.
var waits = map[string]bool{
	"Acquire": true, "Do": true, "DoAll": true, "Lock": true, "LockAll": true, "Allocate": true, "AllocateHealthy": true, "DoHealthy": true,
}

// argument makes one of a type.
func (w *world) argument(receiver any, kind reflect.Type) reflect.Value {
	switch kind {
	case reflect.TypeFor[berth.Token]():
		return reflect.ValueOf(w.token(receiver))
	case reflect.TypeFor[allocator.Settings]():
		return reflect.ValueOf(allocator.Settings{Cooldown: time.Second})
	case reflect.TypeFor[berth.DrainTarget]():
		return reflect.ValueOf(berth.DrainTarget{Label: "a"})
	case reflect.TypeFor[berth.Target]():
		return reflect.ValueOf(berth.Target{Kind: keyspace.Lock, Name: "a"})
	case reflect.TypeFor[keyspace.Kind]():
		return reflect.ValueOf(keyspace.Lock)
	case reflect.TypeFor[string]():
		return reflect.ValueOf("a")
	case reflect.TypeFor[[]string]():
		return reflect.ValueOf([]string{"a"})
	case reflect.TypeFor[time.Duration]():
		return reflect.ValueOf(time.Second)
	case reflect.TypeFor[int](), reflect.TypeFor[int64]():
		return reflect.ValueOf(1).Convert(kind)
	}
	if kind.Kind() == reflect.Func {
		return reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.Zero(kind.Out(0))} })
	}
	return reflect.Zero(kind)
}

// prepare returns a public call that takes a context and returns an error, with all
// that it needs, nil for any other method.
func (w *world) prepare(receiver any, method reflect.Method) func() error {
	in, out := method.Type, method.Type.NumOut()
	if in.NumIn() < 2 || in.In(1) != reflect.TypeFor[context.Context]() || out == 0 {
		return nil
	}
	last := in.Out(out - 1)
	listing := last.Kind() == reflect.Func && strings.HasPrefix(last.Name(), "Seq2[")
	if last != reflect.TypeFor[error]() && !listing {
		return nil
	}
	args := []reflect.Value{reflect.ValueOf(receiver), reflect.ValueOf(w.Context())}
	for i := 2; i < in.NumIn(); i++ {
		args = append(args, w.argument(receiver, in.In(i)))
	}
	return func() (err error) {
		if waits[method.Name] {
			ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
			defer cancel()
			args[1] = reflect.ValueOf(ctx)
		}
		call := method.Func.Call
		if in.IsVariadic() {
			call = method.Func.CallSlice
		}
		result := call(args)[out-1]
		if !listing {
			err, _ = result.Interface().(error)
			return err
		}
		result.Call([]reflect.Value{reflect.MakeFunc(last.In(0), func(item []reflect.Value) []reflect.Value {
			failed, _ := item[1].Interface().(error)
			err = errors.Join(err, failed)
			return []reflect.Value{reflect.ValueOf(true)}
		})})
		return err
	}
}

// Calls that may succeed without the server.
var needNoServer = map[string]string{
	"node.Node.Close":            "it ends the node",
	"node.Node.ReleaseAll":       "nothing is held",
	"allocator.Pool.Close":       "it ends the pool",
	"once.Job.Close":             "it ends the job",
	"leader.Election.Close":      "it ends the election",
	"once.Job.Run":               "it goes on",
	"leader.Election.Run":        "it goes on",
	"leader.Election.Watch":      "it goes on",
	"allocator.Pool.CheckHealth": "there may be nothing to check",
	"allocator.Pool.Refresh":     "another node may be at it",
}

// Every public call of every package says so where the server does not answer, or
// does not run it for now; and nobody's context has ended.
func TestEveryCallSaysThatTheServerIsUnavailable(t *testing.T) {
	for name, silence := range map[string]func(l *link.Link){
		"refused": func(l *link.Link) {
			l.OnCommand(func(link.Command) link.Fate {
				return link.Refuse("READONLY You can't write against a read only replica.")
			})
		},
		"cut off":      (*link.Link).Cut,
		"not answered": (*link.Link).Stall,
	} {
		t.Run(name, func(t *testing.T) {
			testkit.In(t, "", "", "", func(t *testing.T, base *testkit.World) {
				l := link.New(nil) // the server knows no scripts yet, so a Resize that was held back does not run later
				redis, err := base.Server.Client(link.RarePings, l.Wrap)
				require.NoError(t, err)
				defer redis.Close()
				w := newWorld(t, redis, l)
				calls, wrong := 0, []string{}
				for kind, receiver := range w.receivers() {
					for method := range reflect.TypeOf(receiver()).Methods() {
						what := kind + "." + method.Name
						if needNoServer[what] != "" {
							continue
						}
						call := w.prepare(receiver(), method)
						if call == nil {
							continue
						}
						silence(l)
						err := call()
						l.OnCommand(nil)
						l.Mend()
						l.Flow()
						base.Advance(time.Minute)
						ends := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
						if !errors.Is(err, berth.ErrUnavailable) || errors.Is(err, berth.ErrBusy) || ends != (waits[method.Name] && kind != "once.Job") ||
							!ends && strings.Contains(err.Error(), "context ") {
							wrong = append(wrong, fmt.Sprintf("%s: %v", what, err))
						}
						calls++
					}
				}
				w.close()
				require.Empty(t, wrong)
				require.Greater(t, calls, 60)
			})
		})
	}
}
