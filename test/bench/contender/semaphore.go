package contender

import (
	"context"
	"sync"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Capacity is that of all semaphores here.
const Capacity = 10

// Semaphore is Berth's semaphore used in the way of a lock: one permit of 10.
var Semaphore = Contender{Name: "semaphore", How: "Berth's, capacity 10, defaults", Open: openSemaphore}

// Semaphores are Berth's and those of others, Berth's first.
var Semaphores = []Contender{
	Semaphore,
	redisSemaphore.contender("redis-semaphore", "npm's Semaphore: limit 10, lockTimeout 10 s; its commands by rueidis"),
	asynq.contender("asynq", "x/rate of hibiken/asynq: 10 tokens, a deadline in 10 s; its commands by rueidis"),
	counting.contender("counting", "by the server's clock, a key for each holder: capacity 10, TTL 10 s; two scripts by rueidis"),
}

func openSemaphore(addr string) (Locker, error) {
	n, err := OpenNode(addr, node.Config{})
	if err != nil {
		return nil, err
	}
	var byName sync.Map // name -> *semaphore.Semaphore
	return taking{n, func(ctx context.Context, name string) (releaser, error) {
		s, ok := byName.Load(name)
		if !ok {
			s, _ = byName.LoadOrStore(name, semaphore.New(n.Node, name, Capacity, semaphore.Config{}))
		}
		return s.(*semaphore.Semaphore).Acquire(ctx, nil)
	}}, nil
}
