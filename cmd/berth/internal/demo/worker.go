package demo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// What all workers of the semaphore's act agree on.
const (
	namespace = "demo"
	name      = "workshop"
	capacity  = 2
	lease     = 2 * time.Second
)

// Work is the main function of a worker process: it carries out orders from in
// until there are none, and reports to out.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	option, err := rueidis.ParseURL(os.Getenv(urlVariable))
	if err != nil {
		return err
	}
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer redis.Close()
	w := &worker{out: json.NewEncoder(out)}
	sems, err := semaphore.New(redis, semaphore.Config{Namespace: namespace, Lease: lease, Observer: observe.Func(w.observe)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sems.Close(context.WithoutCancel(ctx))) }()
	if w.sem, err = sems.Semaphore(name, capacity); err != nil {
		return err
	}
	w.say(report{Kind: ready})
	return w.obey(ctx, in)
}

// worker is one process of the crew.
type worker struct {
	sem *semaphore.Semaphore

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

// observe reports that the claim stands in line, which only the client knows
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
		if err := w.turn(ctx, o); err != nil {
			w.say(report{Kind: trouble, Text: err.Error()})
			return err
		}
	}
	return nil
}

// turn asks for a place, works, and gives the place back.
func (w *worker) turn(ctx context.Context, o order) error {
	permit, err := w.sem.Acquire(ctx, nil)
	if err != nil {
		return err
	}
	w.say(report{Kind: granted, Claim: permit.ID(), Fence: permit.Fence()})
	work := time.NewTimer(o.Work)
	defer work.Stop()
	select {
	case <-work.C:
	case <-permit.Done():
		return permit.Err()
	case <-ctx.Done():
	}
	w.say(report{Kind: leaving})
	if err := permit.Release(ctx); err != nil {
		return err
	}
	w.say(report{Kind: gone})
	return nil
}
