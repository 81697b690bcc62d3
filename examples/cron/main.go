// Cron runs a report once per minute, whatever the number of replicas.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/qlock"
)

const every = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("cron", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer redis.Close()

	locks, err := qlock.New(redis, qlock.Config{Namespace: "cron"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(ctx)) }()

	for {
		tick := time.Now().Truncate(every).Add(every)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(tick)):
		}
		if err := once(ctx, locks, tick); err != nil {
			slog.Error("report", "tick", tick, "err", err)
		}
	}
}

// once runs the report of a tick if no other replica has it.
func once(ctx context.Context, locks *qlock.Client, tick time.Time) (err error) {
	// The lease is longer than the replicas' clocks are apart.
	name := "report:" + tick.UTC().Format(time.RFC3339)
	lock, err := locks.TryLock(ctx, name, &qlock.LockOptions{Lease: 5 * every})
	if errors.Is(err, qlock.ErrBusy) {
		return nil // another replica has this tick
	}
	if err != nil {
		return err // perhaps nobody has it: this must be heard
	}
	defer func() { err = errors.Join(err, lock.Release(ctx)) }()

	ctx, cancel := lock.Within(ctx)
	defer cancel()
	if err := report(ctx, tick, lock.Fence()); err != nil {
		return err // given back: a replica whose clock is behind may try
	}
	_, err = lock.Detach(ctx) // kept: such a replica must not run it again
	return err
}

// report stands for the work. It writes what it finds under the fence.
func report(ctx context.Context, tick time.Time, fence int64) error { return ctx.Err() }
