package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Config is what an Actor works with.
type Config struct {
	Redis     rueidis.Client
	Namespace string
	// CallTimeout is that of the clients, 0 for their default.
	CallTimeout time.Duration
	// Logger and Observer get the events: those of the calls, and those of kind observe.Acted.
	Logger   observe.Logger
	Observer observe.Observer
}

// Actor does actions. It holds nothing between them, and is safe for concurrent use.
type Actor struct {
	cfg   Config
	event observe.Observer
}

// New returns an Actor. Its error is a berth.ConfigError.
func New(cfg Config) (*Actor, error) {
	logged, err := settings.Logger(cfg.Logger)
	if err != nil {
		return nil, err
	}
	return &Actor{cfg, observe.Multi(cfg.Observer, logged)}, nil
}

// closing bounds how long an action cleans up behind itself.
const closing = 5 * time.Second

// operator has the calls that all kinds have.
type operator interface {
	Release(ctx context.Context, target berth.Target) (int, error)
	Pause(ctx context.Context, name string, lasts time.Duration, reason string) error
	Unpause(ctx context.Context, name string) error
	Drain(ctx context.Context, target berth.DrainTarget, within time.Duration) (berth.Drained, error)
	StopDrain(ctx context.Context, target berth.DrainTarget) error
}

// client is one of a primitive.
type client interface {
	Node() string
	Close(ctx context.Context) error
}

// Do does an action, and says what has come of it. by is who does it, "" for nobody that is known. A drain lasts until
// nothing is left, or until ctx ends, which leaves it in force; what has come of it is said beside an error, too. The
// errors are those of the operators' calls, and of Check.
//
// An action leaves one event of kind observe.Acted when it has been done or has failed; a drain one of each kind when
// it begins, and another one where it fails.
func (a *Actor) Do(ctx context.Context, what Action, by string) (done string, err error) {
	if err := what.Check(); err != nil {
		return "", err
	}
	if what.Verb != Drain && what.Verb != Undrain {
		err := a.with(what.Kind, func(c client, ops operator) (err error) {
			done, err = a.one(ctx, &what, c, ops)
			a.told(ctx, &what, by, what.Kind, c.Node(), err)
			return err
		})
		if err != nil {
			return "", err
		}
		return done, nil
	}
	var mu sync.Mutex
	var sum berth.Drained
	var errs [3]error
	var calls sync.WaitGroup
	for i, kind := range []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool} {
		calls.Go(func() {
			errs[i] = guard.Run("an action", a.event.Observe, func() error {
				return a.with(kind, func(c client, ops operator) error {
					if what.Verb == Drain { // which may last for hours
						a.told(ctx, &what, by, kind, c.Node(), nil)
					}
					d, err := drain(ctx, &what, ops)
					if what.Verb == Undrain || err != nil {
						a.told(ctx, &what, by, kind, c.Node(), err)
					}
					mu.Lock()
					defer mu.Unlock()
					sum.Asked, sum.Cancelled, sum.Ended = sum.Asked+d.Asked, sum.Cancelled+d.Cancelled, sum.Ended+d.Ended
					sum.Detached, sum.Left = sum.Detached+d.Detached, sum.Left+d.Left
					return err
				})
			})
		})
	}
	calls.Wait()
	if what.Verb == Undrain {
		return what.who() + ": the drain has ended", cmp.Or(errs[:]...)
	}
	return fmt.Sprintf("%s: %d holds asked for, %d waits cancelled, %d holds ended by force, %d left, %d detached",
		what.who(), sum.Asked, sum.Cancelled, sum.Ended, sum.Left, sum.Detached), cmp.Or(errs[:]...)
}

func drain(ctx context.Context, what *Action, ops operator) (berth.Drained, error) {
	target := berth.DrainTarget{Node: what.Node, Label: what.Label}
	if what.Verb == Undrain {
		return berth.Drained{}, ops.StopDrain(ctx, target)
	}
	return ops.Drain(ctx, target, what.Within)
}

// with calls f with the calls of a kind.
func (a *Actor) with(kind keyspace.Kind, f func(client, operator) error) (err error) {
	var c client
	var ops operator
	switch kind {
	case keyspace.Lock:
		var locks *qlock.Client
		locks, err = qlock.New(a.cfg.Redis, qlock.Config{Namespace: a.cfg.Namespace, CallTimeout: a.cfg.CallTimeout, Logger: a.cfg.Logger, Observer: a.cfg.Observer})
		if err == nil {
			c, ops = locks, locks.Operator()
		}
	case keyspace.Pool:
		var pools *allocator.Client
		pools, err = allocator.New(a.cfg.Redis, allocator.Config{Namespace: a.cfg.Namespace, CallTimeout: a.cfg.CallTimeout, Logger: a.cfg.Logger, Observer: a.cfg.Observer})
		if err == nil {
			c, ops = pools, pools.Operator()
		}
	default:
		var sems *semaphore.Client
		sems, err = semaphore.New(a.cfg.Redis, semaphore.Config{Namespace: a.cfg.Namespace, CallTimeout: a.cfg.CallTimeout, Logger: a.cfg.Logger, Observer: a.cfg.Observer})
		if err == nil {
			c, ops = sems, sems.Operator()
		}
	}
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		_ = c.Close(ctx) // it holds nothing
	}()
	return f(c, ops)
}

// one does what is of one name.
func (a *Actor) one(ctx context.Context, what *Action, c client, ops operator) (string, error) {
	switch what.Verb {
	case Release:
		_, err := ops.Release(ctx, berth.Target{Name: what.Name, Claim: what.Claim})
		if errors.Is(err, berth.ErrNotHeld) {
			return "", fmt.Errorf("the claim has ended by itself: %w", err)
		}
		return "the claim is released", err
	case Pause:
		return "paused for " + text.Human(what.For), ops.Pause(ctx, what.Name, what.For, what.Reason)
	case Unpause:
		return "no longer paused", ops.Unpause(ctx, what.Name)
	case Resize:
		err := ops.(*semaphore.Operator).Resize(ctx, what.Name, what.Capacity, &semaphore.ResizeOptions{Keep: what.Keep})
		return fmt.Sprintf("the capacity is %d", what.Capacity), err
	}
	pool, err := allocator.NewPool(c.(*allocator.Client), what.Name, allocator.PoolConfig[string]{})
	if err != nil {
		return "", err
	}
	done := "rests"
	if what.For == 0 {
		done = "rests no more"
	}
	return done, pool.Rest(ctx, what.Resource, what.For, what.Reason, &allocator.RestOptions{Exactly: true})
}

// told leaves the event.
func (a *Actor) told(ctx context.Context, what *Action, by string, kind keyspace.Kind, node string, err error) {
	a.event.Observe(observe.Event{
		Kind: observe.Acted, Primitive: string(kind), Namespace: cmp.Or(a.cfg.Namespace, keyspace.DefaultNamespace), Name: what.Name, Node: node,
		Claim: what.Claim, Resource: what.Resource, Detail: what.Told(by), Err: err, At: time.Now(), Context: context.WithoutCancel(ctx),
	})
}

// Told says in a line who does what, and why.
func (a *Action) Told(by string) string {
	line := string(a.Verb)
	if a.Name == "" {
		line += " " + a.who()
	}
	switch {
	case a.Verb == Resize:
		line += fmt.Sprintf(" to %d", a.Capacity)
	case a.Verb == Pause, a.Verb == Rest && a.For > 0 && a.For != berth.Forever:
		line += " for " + text.Human(a.For)
	case a.Verb == Rest && a.For == berth.Forever:
		line += " without end"
	case a.Verb == Rest:
		line += " ends"
	}
	if by != "" {
		line += " by " + text.Quoted(by)
	}
	if a.Reason != "" {
		line += ": " + text.Quoted(a.Reason)
	}
	return line
}
