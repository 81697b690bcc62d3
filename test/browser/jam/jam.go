package jam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Config says where the jam is made.
type Config struct {
	// URL is that of the server, as redis://host:port.
	URL string
	// Namespace is where. Nothing else should be in it.
	Namespace string
	// Plain leaves out what only strangers write.
	Plain bool
	// Lease is the wait lease of what lives. Default 10 min: no pause of the machine ends it.
	Lease time.Duration
	// Work is after how long who is granted something gives it back: a jam that is solved flows. 0: never.
	Work time.Duration
}

// Jam is what was made.
type Jam struct {
	cfg    Config
	redis  rueidis.Client
	read   *inspect.Reader
	ctx    context.Context
	cancel context.CancelFunc
	made   chan struct{} // closed when all stands still, and work begins
	work   sync.WaitGroup
	closes []func(context.Context) error

	// Dead is the node of the process that was killed.
	Dead string
	// Holds are those of Full, but for that of the process that was killed.
	Holds []*semaphore.Permit
}

// Make makes the jam. It takes some seconds: the process that is killed must be overdue.
func Make(ctx context.Context, cfg Config) (j *Jam, err error) {
	option, err := rueidis.ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	option.DisableCache = true
	cfg.Lease = cmp.Or(cfg.Lease, 10*time.Minute)
	j = &Jam{cfg: cfg, made: make(chan struct{})}
	if j.redis, err = rueidis.NewClient(option); err != nil {
		return nil, err
	}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	if j.read, err = inspect.New(j.redis, inspect.Config{Namespace: cfg.Namespace}); err != nil {
		return nil, errors.Join(err, j.Close(ctx))
	}
	// What the one that dies holds is the oldest.
	scenes := []func(context.Context) error{j.dies, j.full, j.cycle, j.resting, j.proxies, j.paused, j.forgotten, j.regular, j.overdue}
	if !cfg.Plain {
		scenes = append(scenes, j.strangers)
	}
	for _, scene := range scenes {
		if err := scene(ctx); err != nil {
			return nil, errors.Join(err, j.Close(ctx))
		}
	}
	close(j.made)
	return j, nil
}

// Close ends all waits and holds but those of the process that was killed, and of none.
func (j *Jam) Close(ctx context.Context) error {
	j.cancel()
	j.work.Wait()
	var errs []error
	for _, closes := range j.closes {
		errs = append(errs, closes(ctx))
	}
	j.redis.Close()
	return errors.Join(errs...)
}

// Until waits until cond holds of a name.
func (j *Jam) Until(ctx context.Context, kind keyspace.Kind, name string, cond func(berth.Name) bool) error {
	for {
		n, err := j.read.Name(ctx, kind, name)
		switch {
		case err != nil:
			return fmt.Errorf("%s %q: %w", kind, name, err)
		case cond(n):
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s %q has %d of %d held and %d waiting: %w", kind, name, n.Held, n.Capacity, n.Waiting, context.Cause(ctx))
		}
	}
}

// hold is what is held, of any kind.
type hold interface {
	Done() <-chan struct{}
	Release(ctx context.Context) error
}

// acquire asks for something.
type acquire func(ctx context.Context) (hold, error)

// works keeps a hold as long as its holder works.
func (j *Jam) works(holds ...hold) {
	j.work.Go(func() {
		select {
		case <-j.made:
		case <-j.ctx.Done():
		}
		var done <-chan time.Time
		if j.cfg.Work > 0 {
			done = time.After(j.cfg.Work)
		}
		select {
		case <-done:
		case <-j.ctx.Done():
		case <-holds[0].Done(): // somebody ended it
		}
		for _, h := range holds {
			_ = h.Release(context.WithoutCancel(j.ctx)) // if it has ended, it has
		}
	})
}

// takes acquires what is free.
func (j *Jam) takes(ctx context.Context, get acquire) error {
	h, err := get(ctx)
	if err == nil {
		j.works(h)
	}
	return err
}

// waits begins an acquire, and returns when so many wait for the name. What it is granted is held beside with.
func (j *Jam) waits(ctx context.Context, kind keyspace.Kind, name string, waiting int, get acquire, with ...hold) error {
	j.work.Go(func() {
		if h, err := get(j.ctx); err == nil {
			j.works(append([]hold{h}, with...)...)
		}
	})
	return j.Until(ctx, kind, name, func(n berth.Name) bool { return n.Waiting >= waiting })
}

// owned is acquire for an owner.
func owned(owner string, get acquire) acquire {
	return func(ctx context.Context) (hold, error) { return get(berth.WithOwner(ctx, owner)) }
}

// node is that of a process with that label.
func (j *Jam) node(label string) (*node.Node, error) {
	n, err := node.New(j.redis, node.Config{Namespace: j.cfg.Namespace, Label: label, Lease: j.cfg.Lease, WarnHeldLongerThan: -1})
	if err == nil {
		j.closes = append(j.closes, n.Close)
	}
	return n, err
}

func (j *Jam) locks(label string) (*qlock.Locks, error) {
	n, err := j.node(label)
	return qlock.New(n, qlock.Config{Lease: j.cfg.Lease}), err
}

func (j *Jam) pools(label, name string) (*allocator.Pool[string], error) {
	n, err := j.node(label)
	return allocator.New(n, name, allocator.Config[string]{}), err
}

func permit(s *semaphore.Semaphore, opts *semaphore.AcquireOptions) acquire {
	return func(ctx context.Context) (hold, error) { return s.Acquire(ctx, opts) }
}

func locked(l *qlock.Locks, name string, opts *qlock.LockOptions) acquire {
	return func(ctx context.Context) (hold, error) { return l.Lock(ctx, name, opts) }
}

func allocated(p *allocator.Pool[string], opts *allocator.AllocateOptions) acquire {
	return func(ctx context.Context) (hold, error) { return p.Allocate(ctx, opts) }
}
