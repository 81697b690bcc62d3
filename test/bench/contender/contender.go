// Package contender has what is compared: Berth, the Go libraries that people use in
// its place, what other libraries send for semaphores and pools, and Berth's own scripts,
// sent raw, as the limit of what it could reach.
package contender

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis9 "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// Locker takes locks in one process, over connections of its own.
type Locker interface {
	// Lock waits until it has the lock of a name, and returns what gives it back. Once
	// it has the lock, ctx may end without harm to the unlocking.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
	// Close gives up the connections. No lock may be held.
	Close()
}

// Contender is a way to lock over Redis.
type Contender struct {
	// Name heads its column.
	Name string
	// How says in a few words how it was set up, where there was a choice.
	How string
	// Plain are the commands that it sends outside of scripts.
	Plain []string
	// Open connects to the server at an address.
	Open func(addr string) (Locker, error)
	// Over is Open over a client, which is closed with the Locker, for those that are commands alone.
	Over func(redis rueidis.Client) (Locker, error)
}

// Lockers are Berth's lock and its peers, Berth first. Each is set up as its own
// documentation says for one server; where it has no default, the value is in How.
var Lockers = []Contender{
	{Name: "Berth", How: "qlock, defaults", Open: openBerth},
	{Name: "redsync", How: "go-redis pool, defaults, tries without end", Plain: []string{"set"}, Open: openRedsync},
	{Name: "redislock", How: "TTL 8 s, LinearBackoff(100 ms) as in its example", Open: openRedislock},
	{Name: "rueidislock", How: "KeyMajority 1 and NoLoopTracking as in its README, tries of up to 5 s", Open: openRueidislock},
}

// Find returns the contender of a name: a Locker, or one of the others here.
func Find(name string) (Contender, error) {
	for _, c := range slices.Concat(Lockers, Semaphores, Pools, []Contender{Cancellable, Raw}) {
		if c.Name == name {
			return c, nil
		}
	}
	return Contender{}, fmt.Errorf("no contender is called %q", name)
}

// Option is how Berth and the raw scripts connect.
func Option(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{addr}}
}

// Node is a node of Berth over connections of its own.
type Node struct {
	*node.Node

	redis rueidis.Client
}

// Namespace is that of the contenders' nodes.
const Namespace = "bench"

// OpenNode connects a node to the server at an address. Its namespace is Namespace where cfg has none.
func OpenNode(addr string, cfg node.Config) (*Node, error) {
	redis, err := rueidis.NewClient(Option(addr))
	if err != nil {
		return nil, err
	}
	cfg.Namespace = cmp.Or(cfg.Namespace, Namespace)
	n, err := node.New(redis, cfg)
	if err != nil {
		redis.Close()
		return nil, err
	}
	return &Node{Node: n, redis: redis}, nil
}

// Close closes the node, which gives back what it holds.
func (n *Node) Close() {
	_ = n.Node.Close(context.Background())
	n.redis.Close()
}

// taking is a node and what takes a hold of a name.
type taking struct {
	*Node

	take func(ctx context.Context, name string) (releaser, error)
}

// releaser is a hold of Berth's.
type releaser interface {
	Release(ctx context.Context) error
}

func (t taking) Lock(ctx context.Context, name string) (func() error, error) {
	held, err := t.take(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { return held.Release(context.Background()) }, nil
}

// Cycler takes a hold and releases it, without what Lock returns: so that its allocations can be counted.
type Cycler interface {
	Cycle(ctx context.Context, name string) error
}

func (t taking) Cycle(ctx context.Context, name string) error {
	held, err := t.take(ctx, name)
	if err != nil {
		return err
	}
	return held.Release(ctx)
}

func openBerth(addr string) (Locker, error) { return OpenLocks(addr, 0, nil) }

// OpenLocks opens Berth's lock with a wait lease, 0 for the default, and options of its calls.
func OpenLocks(addr string, lease time.Duration, opts *qlock.LockOptions) (Locker, error) {
	n, err := OpenNode(addr, node.Config{Lease: lease})
	if err != nil {
		return nil, err
	}
	locks := qlock.New(n.Node, qlock.Config{Lease: lease})
	return taking{n, func(ctx context.Context, name string) (releaser, error) { return locks.Lock(ctx, name, opts) }}, nil
}

// Cancellable is Berth's lock, for calls with a context that can end, as that of a
// request can: then a call runs on another goroutine, so that the caller can leave it.
var Cancellable = Contender{Name: "cancellable", How: "Berth's lock, called with a context that can end", Open: openBerth}

// GoRedis is the client of those that use go-redis. It waits for an answer for as long as
// a busy machine may take, so that nothing is sent twice.
func GoRedis(addr string) *goredis9.Client {
	return goredis9.NewClient(&goredis9.Options{Addr: addr, ReadTimeout: time.Minute})
}

type redsyncLocker struct {
	redis *goredis9.Client
	sync  *redsync.Redsync
}

func openRedsync(addr string) (Locker, error) {
	redis := GoRedis(addr)
	return &redsyncLocker{redis: redis, sync: redsync.New(goredis.NewPool(redis))}, nil
}

func (l *redsyncLocker) Lock(ctx context.Context, name string) (func() error, error) {
	// By default it gives up after 32 tries.
	mutex := l.sync.NewMutex(name, redsync.WithTries(1<<30))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		_, err := mutex.UnlockContext(context.Background())
		return err
	}, nil
}

func (l *redsyncLocker) Close() { _ = l.redis.Close() } // nothing of it is used any more

type redislockLocker struct {
	redis *goredis9.Client
	locks *redislock.Client
}

func openRedislock(addr string) (Locker, error) {
	redis := GoRedis(addr)
	return &redislockLocker{redis: redis, locks: redislock.New(redis)}, nil
}

func (l *redislockLocker) Lock(ctx context.Context, name string) (func() error, error) {
	// With no deadline on ctx it would give up after the TTL.
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	lock, err := l.locks.Obtain(ctx, name, 8*time.Second, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
	})
	if err != nil {
		return nil, err
	}
	return func() error { return lock.Release(context.Background()) }, nil
}

func (l *redislockLocker) Close() { _ = l.redis.Close() } // nothing of it is used any more

type rueidislockLocker struct{ locks rueidislock.Locker }

func openRueidislock(addr string) (Locker, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: Option(addr), KeyMajority: 1, NoLoopTracking: true,
		// A try that is given up waits for an end of somebody's lock, which a free name
		// never has. By default a busy machine has that after 20 ms.
		TryNextAfter: 5 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	return &rueidislockLocker{locks: locks}, nil
}

func (l *rueidislockLocker) Lock(ctx context.Context, name string) (func() error, error) {
	_, unlock, err := l.locks.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { unlock(); return nil }, nil
}

func (l *rueidislockLocker) Close() { l.locks.Close() }
