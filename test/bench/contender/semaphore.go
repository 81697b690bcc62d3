package contender

import (
	"context"
	"sync"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Semaphore is Berth's semaphore used in the way of a lock: one permit of 10.
var Semaphore = Contender{Name: "semaphore", How: "Berth's, capacity 10, defaults", Open: openSemaphore}

type semaphoreLocker struct {
	redis  rueidis.Client
	node   *node.Node
	byName sync.Map // name -> *semaphore.Semaphore
}

func openSemaphore(addr string) (Locker, error) {
	redis, err := rueidis.NewClient(Option(addr))
	if err != nil {
		return nil, err
	}
	n, err := node.New(redis, node.Config{Namespace: "bench"})
	if err != nil {
		redis.Close()
		return nil, err
	}
	return &semaphoreLocker{redis: redis, node: n}, nil
}

func (l *semaphoreLocker) Lock(ctx context.Context, name string) (func() error, error) {
	s, ok := l.byName.Load(name)
	if !ok {
		s, _ = l.byName.LoadOrStore(name, semaphore.New(l.node, name, 10, nil))
	}
	permit, err := s.(*semaphore.Semaphore).Acquire(ctx, nil)
	if err != nil {
		return nil, err
	}
	return func() error { return permit.Release(context.Background()) }, nil
}

func (l *semaphoreLocker) Close() {
	_ = l.node.Close(context.Background()) // everything has been given back
	l.redis.Close()
}
