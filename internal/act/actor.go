package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Actor does actions. It holds nothing between them, and is safe for concurrent use.
type Actor struct {
	redis rueidis.Client
	cfg   node.Config
	event observe.Observer
}

// New returns an Actor. cfg is that of its nodes: its Logger and Observer also get the events of kind observe.Acted.
func New(redis rueidis.Client, cfg node.Config) *Actor {
	return &Actor{redis, cfg, observe.Multi(cfg.Observer, observe.Slog(cfg.Logger))}
}

// closing bounds how long an action cleans up behind itself.
const closing = 5 * time.Second

// Do does an action, and says what has come of it. by is who does it, "" for nobody that is known. A drain lasts until
// nothing is left, or until ctx ends, which leaves it in force; what has come of it is said beside an error, too. The
// errors are those of the operators' calls, and of Check.
//
// An action leaves one event of kind observe.Acted when it has been done or has failed; a drain when
// it begins, and another one where it fails.
func (a *Actor) Do(ctx context.Context, what Action, by string) (done string, err error) {
	if err := what.Check(); err != nil {
		return "", err
	}
	n, err := node.New(a.redis, a.cfg)
	if err != nil {
		return "", err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		_ = n.Close(ctx) // it holds nothing
	}()
	told := what.Verb == Drain // which may last for hours
	if told {
		a.told(ctx, &what, by, n.ID(), nil)
	}
	if done, err = do(ctx, &what, n); err != nil && !told {
		done = ""
	}
	if err != nil || !told {
		a.told(ctx, &what, by, n.ID(), err)
	}
	return done, err
}

// do does an action on a node.
func do(ctx context.Context, what *Action, n *node.Node) (string, error) {
	ops, target := n.Operator(), berth.DrainTarget{Node: what.Node, Label: what.Label}
	switch what.Verb {
	case Drain:
		d, err := ops.Drain(ctx, target, what.drain())
		return fmt.Sprintf("%s: %d holds asked for, %d waits cancelled, %d holds ended by force, %d left, %d detached",
			what.who(), d.Asked, d.Cancelled, d.Ended, d.Left, d.Detached), err
	case Undrain:
		return what.who() + ": the drain has ended", ops.StopDrain(ctx, target)
	case Resize:
		err := semaphore.NewOperator(n).Resize(ctx, what.Name, what.Capacity, &semaphore.ResizeOptions{Keep: what.Keep})
		return fmt.Sprintf("the capacity is %d", what.Capacity), err
	case Rest:
		pool, done := allocator.New(n, what.Name, allocator.Config[string]{}), "rests"
		if what.For == 0 {
			done = "rests no more"
		}
		return done, pool.Rest(ctx, what.Resource, what.For, what.Reason, &allocator.RestOptions{Exactly: true})
	case Release, Want:
		call, done := ops.Release, "the claim is released"
		if what.Verb == Want {
			call, done = ops.Want, "the hold is wanted back"
		}
		_, err := call(ctx, berth.Target{Kind: what.Kind, Name: what.Name, Claim: what.Claim})
		if errors.Is(err, berth.ErrNotHeld) {
			err = errEnded
		}
		return done, err
	case Pause:
		return "paused for " + text.Human(what.For), ops.Pause(ctx, what.Kind, what.Name, what.For, what.Reason)
	}
	return "no longer paused", ops.Unpause(ctx, what.Kind, what.Name)
}

// told leaves the event.
func (a *Actor) told(ctx context.Context, what *Action, by, id string, err error) {
	a.event.Observe(observe.Event{
		Kind: observe.Acted, Primitive: cmp.Or(string(what.Kind), "node"), Namespace: cmp.Or(a.cfg.Namespace, keyspace.DefaultNamespace), Name: what.Name, Node: id,
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
	case a.Verb == Pause, a.Verb == Drain && a.For > 0, a.Verb == Rest && a.For > 0 && a.For != berth.Forever:
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
