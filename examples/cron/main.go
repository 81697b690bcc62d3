// Cron runs a report once per minute, whatever the number of replicas.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

const every = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		slog.Error("connect", "err", err)
		os.Exit(1)
	}
	err = run(ctx, redis, report)
	redis.Close()
	if err != nil {
		slog.Error("cron", "err", err)
		os.Exit(1)
	}
}

// job is what a tick is for. It writes what it finds under the fence.
type job func(ctx context.Context, tick time.Time, fence int64) error

// run waits for one tick after the other, until ctx ends.
func run(ctx context.Context, redis rueidis.Client, do job) (err error) {
	locks, err := qlock.New(redis, qlock.Config{Namespace: "cron"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(context.WithoutCancel(ctx))) }()

	for {
		tick := time.Now().Truncate(every).Add(every)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(tick)):
		}
		if err := once(ctx, locks, tick, do); err != nil {
			slog.Error("report", "tick", tick, "err", err)
		}
	}
}

// once does the job of a tick if no other replica has it.
func once(ctx context.Context, locks *qlock.Client, tick time.Time, do job) (err error) {
	// The lease is longer than the replicas' clocks are apart.
	name := "report:" + tick.UTC().Format(time.RFC3339)
	lock, err := locks.TryLock(ctx, name, &qlock.LockOptions{Lease: 5 * every})
	if errors.Is(err, berth.ErrBusy) {
		return nil // another replica has this tick
	}
	if err != nil {
		return err // perhaps nobody has it: this must be heard
	}
	defer func() { err = errors.Join(err, lock.Release(ctx)) }() // nothing once it is detached

	work, cancel := lock.Within(ctx)
	defer cancel()
	if err := do(work, tick, lock.Fence()); err != nil {
		return err // given back: a replica whose clock is behind may try
	}
	_, err = lock.Detach(ctx) // kept for a lease: such a replica must not do it again
	return err
}

// report stands for the work.
func report(ctx context.Context, tick time.Time, fence int64) error {
	slog.Info("reporting", "tick", tick, "fence", fence)
	return ctx.Err()
}
