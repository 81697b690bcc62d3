// Nested moves money between two accounts, from functions that take the locks
// they need without knowing who holds them already.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

type bank struct{ locks *qlock.Client }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		return err
	}
	defer redis.Close()
	locks, err := qlock.New(redis, qlock.Config{Namespace: "bank"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(ctx)) }()

	// One owner for all that this transfer does, so that what it calls may
	// enter what it holds. It must be this run's own, and not the transfer's:
	// who has the same owner enters, too, be it in another process.
	ctx = berth.WithOwner(ctx, "transfer:"+rand.Text())
	return (&bank{locks}).transfer(ctx, "anna", "ben", 100)
}

// transfer locks both accounts or none, in an order that cannot deadlock.
func (b *bank) transfer(ctx context.Context, from, to string, cents int) error {
	names := []string{"account:" + from, "account:" + to}
	err := b.locks.DoAll(ctx, names, &qlock.LockOptions{MaxWait: 5 * time.Second}, func(ctx context.Context) error {
		if err := b.book(ctx, from, -cents); err != nil {
			return err
		}
		return b.book(ctx, to, cents)
	})
	switch {
	case errors.Is(err, qlock.ErrDeadlock):
		return errors.Join(err, errors.New("a caller holds one of these accounts: a bug"))
	case errors.Is(err, qlock.ErrNotHeld):
		return errors.Join(err, errors.New("perhaps half booked: to be reconciled"))
	}
	return err
}

// book changes one account. It is called with and without its lock.
func (b *bank) book(ctx context.Context, account string, cents int) error {
	name := "account:" + account
	opts := &qlock.LockOptions{Conflict: qlock.WorkThrough, MaxWait: 5 * time.Second}
	return b.locks.Do(ctx, name, opts, func(ctx context.Context) error {
		return b.write(ctx, account, cents, b.locks.Fence(ctx, name))
	})
}

// write stands for the work. It refuses a fence below the stored one.
func (b *bank) write(ctx context.Context, account string, cents int, fence int64) error {
	return ctx.Err()
}
