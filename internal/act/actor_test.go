package act_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// world is a server with a process that holds, and an operator.
type world struct {
	*testkit.World
	actor  *act.Actor
	told   *testkit.Process // has the operator's events
	look   *inspect.Reader
	sem    *semaphore.Semaphore
	permit *semaphore.Permit
	node   string
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	testkit.In(t, "gpu", "berth:sem:{gpu}:state", "berth:sem:{gpu}:line", func(t *testing.T, base *testkit.World) {
		w := &world{World: base, told: base.Process()}
		var err error
		w.look, err = inspect.New(base.Redis, inspect.Config{})
		require.NoError(t, err)
		w.actor = act.New(w.told.Redis, node.Config{Observer: w.told.Observer(nil)})

		p := base.Process()
		n, err := node.New(p.Redis, node.Config{Label: "worker/1", Lease: testkit.Lease})
		require.NoError(t, err)
		p.Closes(n.Close)
		w.node = n.ID()
		w.sem = semaphore.New(n, "gpu", 1, semaphore.Config{})
		w.permit, err = w.sem.Acquire(ctx, nil)
		require.NoError(t, err)

		pool := allocator.New(n, "mail", allocator.Config[string]{})
		_, err = pool.Add(ctx, []string{"a", "b"}, nil)
		require.NoError(t, err)
		_, err = pool.Allocate(ctx, nil)
		require.NoError(t, err)
		w.Advance(time.Second) // a drain is of the processes that are there before it
		test(w)
	})
}

// do does an action, and returns the events of kind observe.Acted.
func (w *world) do(a act.Action) (string, []observe.Event, error) {
	w.T.Helper()
	before := len(w.told.Told(observe.Acted))
	done, err := w.actor.Do(ctx, a, "ann")
	return done, w.told.Told(observe.Acted)[before:], err
}

// did does an action that succeeds with one event.
func (w *world) did(a act.Action) string {
	w.T.Helper()
	done, told, err := w.do(a)
	require.NoError(w.T, err)
	require.Len(w.T, told, 1)
	require.NoError(w.T, told[0].Err)
	require.Equal(w.T, []string{string(a.Kind), a.Name, a.Claim, a.Resource, a.Told("ann"), "berth"},
		[]string{told[0].Primitive, told[0].Name, told[0].Claim, told[0].Resource, told[0].Detail, told[0].Namespace})
	require.NotEmpty(w.T, told[0].Node)
	return done
}

func (w *world) name(kind keyspace.Kind, name string) berth.Name {
	w.T.Helper()
	n, err := w.look.Name(ctx, kind, name)
	require.NoError(w.T, err)
	return n
}

func TestEachActionIsDoneAndTold(t *testing.T) {
	inWorld(t, func(w *world) {
		sem := func(a act.Action) act.Action { a.Kind, a.Name, a.Reason = keyspace.Sem, "gpu", "it is late"; return a }
		require.Equal(w.T, "paused for 1m00s", w.did(sem(act.Action{Verb: act.Pause, For: time.Minute})))
		require.Equal(w.T, "it is late", w.name(keyspace.Sem, "gpu").Pause.Reason)

		w.did(sem(act.Action{Verb: act.Unpause}))
		require.Nil(w.T, w.name(keyspace.Sem, "gpu").Pause)

		require.Equal(w.T, "the capacity is 5", w.did(sem(act.Action{Verb: act.Resize, Capacity: 5})))
		require.Equal(w.T, 5, w.name(keyspace.Sem, "gpu").Capacity)

		require.Equal(w.T, "the claim is released", w.did(sem(act.Action{Verb: act.Release, Claim: w.permit.ID()})))
		require.Zero(w.T, w.name(keyspace.Sem, "gpu").Held)
		w.Advance(testkit.Lease)
		require.ErrorIs(w.T, w.permit.Err(), berth.ErrReleased)

		rest := act.Action{Verb: act.Rest, Kind: keyspace.Pool, Name: "mail", Resource: "b", For: time.Minute, Reason: "429"}
		w.did(rest)
		require.Equal(w.T, 1, w.name(keyspace.Pool, "mail").Pool.Resting)
		rest.For = time.Second
		w.did(rest)
		w.Advance(time.Second)
		require.Zero(w.T, w.name(keyspace.Pool, "mail").Pool.Resting, "who sees that it rests, and for how long, may shorten that")
		rest.For = 0
		w.did(rest)
		require.Zero(w.T, w.name(keyspace.Pool, "mail").Pool.Resting)
	})
}

func TestWhatFailedIsToldTooAndWhatIsRefusedIsNotSent(t *testing.T) {
	inWorld(t, func(w *world) {
		_, told, err := w.do(act.Action{Verb: act.Pause, Kind: keyspace.Sem, Name: "gpu"})
		require.ErrorIs(w.T, err, berth.ErrInvalidConfig)
		require.Empty(w.T, told)
		require.Empty(w.T, w.told.Scripts())

		_, told, err = w.do(act.Action{Verb: act.Release, Kind: keyspace.Sem, Name: "gpu", Claim: "0000000000000000.00000000000000000000"})
		require.ErrorIs(w.T, err, berth.ErrNotHeld)
		require.ErrorContains(w.T, err, "the claim has ended by itself")
		require.Len(w.T, told, 1)
		require.ErrorIs(w.T, told[0].Err, berth.ErrNotHeld)

		_, told, err = w.do(act.Action{Verb: act.Rest, Kind: keyspace.Pool, Name: "mail", Resource: "none", For: time.Second, Reason: "x"})
		require.ErrorIs(w.T, err, berth.ErrAbsent)
		require.Len(w.T, told, 1)
	})
}

func TestADrainEndsWhenNothingIsLeftAndCanBeStopped(t *testing.T) {
	inWorld(t, func(w *world) {
		target := act.Action{Verb: act.Drain, Label: "worker/*", Force: true, ForceAfter: 10 * time.Second, Reason: "a new release"}
		done, told, err := w.do(target) // nobody gives back what is asked for
		require.NoError(w.T, err)
		require.Equal(w.T, `all processes whose label begins with "worker/": 2 holds asked for, 0 waits cancelled, 2 holds ended by force, 0 left, 0 detached`, done)
		require.Len(w.T, told, 1, "as it begins")
		require.Equal(w.T, `drain all processes whose label begins with "worker/" by "ann": "a new release"`, told[0].Detail)
		require.GreaterOrEqual(w.T, w.Now(), 10*time.Second)

		_, err = w.sem.TryAcquire(ctx, nil)
		require.ErrorIs(w.T, err, berth.ErrDraining)

		target.Verb = act.Undrain
		done, told, err = w.do(target)
		require.NoError(w.T, err)
		require.Equal(w.T, `all processes whose label begins with "worker/": the drain has ended`, done)
		require.Len(w.T, told, 1)
		w.Advance(6 * time.Second)
		_, err = w.sem.TryAcquire(ctx, nil)
		require.NoError(w.T, err, "the process has heard of it")
	})
}

func TestADrainThatIsLeftGoesOnAndWasToldWhenItBegan(t *testing.T) {
	inWorld(t, func(w *world) {
		begun := make(chan int, 1)
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		time.AfterFunc(time.Second, func() { begun <- len(w.told.Told(observe.Acted)) })
		_, err := w.actor.Do(ctx, act.Action{Verb: act.Drain, Node: w.node}, "")
		require.ErrorIs(w.T, err, context.DeadlineExceeded)
		require.Equal(w.T, 1, <-begun)
		require.Len(w.T, w.told.Told(observe.Acted), 2, "and that it was left with a permit")
		require.Equal(w.T, 1, w.name(keyspace.Sem, "gpu").Held, "nothing is ended by force without a limit")
	})
}
