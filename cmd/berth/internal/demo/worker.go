package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// namespace is that of all acts; each has a server of its own.
const namespace = "demo"

// place is what a worker has while it is inside.
type place interface {
	ID() string
	Fence() int64
	Done() <-chan struct{}
	Err() error
	Release(ctx context.Context) error
}

// resource is a place that is a resource of a pool.
type resource interface {
	place
	Resource() string
	Rest(d time.Duration, reason string) error
}

// resourceOf is the key of a resource, "" for another place.
func resourceOf(inside place) string {
	if of, ok := inside.(resource); ok {
		return of.Resource()
	}
	return ""
}

// desk is where the workers of an act ask for a place.
type desk struct {
	// enter waits for a place, as the order says.
	enter func(ctx context.Context, o order) (place, error)
	// again enters a second time from inside; nil where an act has no such thing.
	again func(ctx context.Context, inside place) (place, error)
}

// Work is the main function of a worker process: it carries out orders from in
// until there are none, and reports to out.
func Work(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	option, err := rueidis.ParseURL(os.Getenv(urlVariable))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(acts(), func(a act) bool { return a.name == os.Getenv(actVariable) })
	if at < 0 {
		return fmt.Errorf("demo: no act %q", os.Getenv(actVariable))
	}
	lease, err := time.ParseDuration(os.Getenv(leaseVariable))
	if err != nil {
		return err
	}
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer redis.Close()
	w := &worker{out: json.NewEncoder(out)}
	n, err := node.New(redis, node.Config{
		Namespace: namespace, Label: os.Getenv(labelVariable), Lease: lease, Observer: observe.Func(w.observe),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close(context.WithoutCancel(ctx))) }()
	w.desk = acts()[at].join(n, lease)
	w.say(report{Kind: ready})
	var living sync.WaitGroup
	defer living.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	living.Go(func() { w.live(ctx) })
	return w.obey(ctx, in)
}

// live reports again and again that no older report will follow.
func (w *worker) live(ctx context.Context) {
	ticker := time.NewTicker(aliveEvery)
	defer ticker.Stop()
	var late lateness
	late.beat(aliveEvery)
	for {
		select {
		case <-ticker.C:
			late.beat(aliveEvery)
			w.say(report{Kind: alive, Late: late.most})
		case <-ctx.Done():
			return
		}
	}
}

// worker is one process of the crew.
type worker struct {
	desk *desk

	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

func (w *worker) say(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.At.IsZero() {
		r.At = time.Now()
	}
	_ = w.out.Encode(r) // without a director there is nobody to tell
}

// observe reports that the claim stands in line, which only the node knows
// while Acquire waits.
func (w *worker) observe(e observe.Event) {
	if e.Kind == observe.Queued {
		w.say(report{Kind: queued, Ahead: e.Ahead})
	}
}

// obey carries out one order after the other. When in ends, so does the worker,
// whatever it does: its director is gone.
func (w *worker) obey(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	orders := make(chan order)
	go func() {
		defer cancel()
		for decoder := json.NewDecoder(in); ; {
			var o order
			if decoder.Decode(&o) != nil {
				close(orders)
				return
			}
			orders <- o
		}
	}()
	for o := range orders {
		if err := w.turn(ctx, o, orders); err != nil {
			w.say(report{Kind: trouble, Text: err.Error()})
			return err
		}
	}
	return nil
}

// turn asks for a place, works until the next order, and gives the place back.
func (w *worker) turn(ctx context.Context, o order, next <-chan order) error {
	inside, err := w.desk.enter(ctx, o)
	if err != nil {
		return err
	}
	w.say(report{Kind: granted, Claim: inside.ID(), Fence: inside.Fence(), Resource: resourceOf(inside)})
	if o.Again > 0 {
		if err := w.twice(ctx, inside, o.Again); err != nil {
			return err
		}
	}
	select {
	case <-next:
	case <-inside.Done():
		return inside.Err()
	case <-ctx.Done():
	}
	if resting, ok := inside.(resource); ok && o.Rest > 0 {
		if err := resting.Rest(o.Rest, "429 Too Many Requests"); err != nil {
			return err
		}
	}
	w.say(report{Kind: leaving})
	if err := inside.Release(ctx); err != nil {
		return err
	}
	w.say(report{Kind: gone})
	return nil
}

// twice works under a second entry for a while.
func (w *worker) twice(ctx context.Context, inside place, work time.Duration) error {
	inner, err := w.desk.again(ctx, inside)
	if err != nil {
		return err
	}
	w.say(report{Kind: reentered, Claim: inner.ID(), Fence: inner.Fence()})
	if err := pause(ctx, inner, work); err != nil {
		return err
	}
	if err := inner.Release(ctx); err != nil {
		return err
	}
	w.say(report{Kind: innerGone})
	return nil
}

// pause is what work is. Its error is why a place was lost meanwhile.
func pause(ctx context.Context, inside place, d time.Duration) error {
	work := time.NewTimer(d)
	defer work.Stop()
	select {
	case <-work.C:
	case <-inside.Done():
		return inside.Err()
	case <-ctx.Done():
	}
	return nil
}
