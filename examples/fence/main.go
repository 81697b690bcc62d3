// Fence pays into an account in a database. One process at a time does so, and
// one that was stopped for too long, and does not know it yet, changes nothing:
// every statement checks the fence of the hold that it comes from.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		slog.Error("connect", "err", err)
		os.Exit(1)
	}
	// A database of yours: sql.Open with its driver.
	db := sql.OpenDB(newDatabase("alice"))
	err = errors.Join(run(ctx, redis, accounts{db}, "alice"), db.Close())
	redis.Close()
	if err != nil {
		slog.Error("fence", "err", err)
		os.Exit(1)
	}
}

// run makes ten payments at once, and one that comes too late.
func run(ctx context.Context, redis rueidis.Client, book accounts, id string) (err error) {
	n, err := node.New(redis, node.Config{Namespace: "bank"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close(ctx)) }()
	locks, name := qlock.New(n, qlock.Config{}), "account:"+id

	errs := make([]error, 10)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = locks.Do(ctx, name, nil, func(ctx context.Context) error {
				return pay(ctx, book, id, 10, locks.Fence(ctx, name))
			})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return late(ctx, locks, name, book, id)
}

// pay adds an amount to the balance, under the fence of a hold.
func pay(ctx context.Context, book accounts, id string, amount, number int64) error {
	// Leave the fence before the balance is read: from here on no older hold can
	// change it, so what was read stays true until this hold has written.
	if err := book.enter(ctx, id, number); err != nil {
		return err
	}
	balance, err := book.balance(ctx, id)
	if err != nil {
		return err
	}
	if err := book.set(ctx, id, balance+amount, number); err != nil {
		return err
	}
	slog.Info("paid", "account", id, "balance", balance+amount, "fence", number)
	return nil
}

// late is a process that stands still for longer than its lease between its read
// and its write. It does not look at its hold, which would tell it.
func late(ctx context.Context, locks *qlock.Locks, name string, book accounts, id string) error {
	old, err := locks.Lock(ctx, name, &qlock.LockOptions{NoRenew: true, Lease: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	if err := book.enter(ctx, id, old.Fence()); err != nil {
		return err
	}
	balance, err := book.balance(ctx, id)
	if err != nil {
		return err
	}
	// Meanwhile the lease ends, and somebody else is let in.
	err = locks.Do(ctx, name, nil, func(ctx context.Context) error {
		return pay(ctx, book, id, 10, locks.Fence(ctx, name))
	})
	if err != nil {
		return err
	}
	err = book.set(ctx, id, balance+1, old.Fence())
	if !errors.Is(err, fence.ErrStale) {
		return fmt.Errorf("a late write was not refused: %w", err)
	}
	slog.Info("refused", "account", id, "err", err)
	return nil
}
