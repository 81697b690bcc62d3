package allocator_test

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// newRedis starts a server inside this process, as Example spells out, and returns a client of it.
func newRedis() (ctx context.Context, redis rueidis.Client, end func()) {
	server, err := embedded.Start()
	check(err)
	redis, err = server.Client()
	check(err)
	return context.Background(), redis, func() { redis.Close(); server.Close() }
}

// newNode is newRedis, and returns a node on it.
func newNode(cfg node.Config) (ctx context.Context, n *node.Node, end func()) {
	ctx, redis, end := newRedis()
	n, err := node.New(redis, cfg)
	check(err)
	return ctx, n, func() { _ = n.Close(ctx); end() }
}

// check ends the example where something has failed.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
