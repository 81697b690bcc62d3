// Importer uses all kinds in one process: locks, a semaphore, a pool, a daily job, and a leader who schedules.
package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func run(ctx context.Context, redis rueidis.Client, w work) (err error) {
	n, err := node.New(redis, node.Config{Label: "importer/1", Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close(context.WithoutCancel(ctx))) }()
	w.locks, w.gpu = qlock.New(n, qlock.Config{}), semaphore.New(n, "gpu", 4, semaphore.Config{})
	w.proxies = allocator.New(n, "proxies", allocator.Config[string]{Source: w.list})
	digest, scheduler := once.New(n, "digest", once.Config{Every: 24 * time.Hour}), leader.New(n, "scheduler", leader.Config{})
	if _, err := n.Check(ctx); err != nil { // the server, and what was made above
		return err
	}
	go func() { _ = digest.Run(ctx, w.digest) }()
	return scheduler.Run(ctx, w.schedule)
}
