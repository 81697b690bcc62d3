// Nested moves money between two accounts, from functions that take the locks
// they need without knowing who holds them already.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
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
	err = run(ctx, redis, &ledger{balances: map[string]int{"account:anna": 1000, "account:ben": 1000}})
	redis.Close()
	if err != nil {
		slog.Error("nested", "err", err)
		os.Exit(1)
	}
}

// run makes ten transfers at once, half of them the other way.
func run(ctx context.Context, redis rueidis.Client, books *ledger) (err error) {
	n, err := node.New(redis, node.Config{Namespace: "bank"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close(ctx)) }()

	b := &bank{qlock.New(n, qlock.Config{}), books}
	errs := make([]error, 10)
	var wg sync.WaitGroup
	for i := range errs {
		from, to := "anna", "ben"
		if i%2 == 1 {
			from, to = to, from
		}
		wg.Go(func() { errs[i] = b.transfer(ctx, from, to, 100+i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

type bank struct {
	locks *qlock.Locks
	books *ledger
}

// transfer locks both accounts or none, in an order that cannot deadlock.
func (b *bank) transfer(ctx context.Context, from, to string, cents int) error {
	// One owner for all that this transfer does, so that what it calls may
	// enter what it holds. It must be this run's own, and not the transfer's:
	// who has the same owner enters, too, be it in another process.
	ctx = berth.WithOwner(ctx, "transfer:"+rand.Text())
	names := []string{"account:" + from, "account:" + to}
	err := b.locks.DoAll(ctx, names, &qlock.LockOptions{MaxWait: 5 * time.Second}, func(ctx context.Context) error {
		if err := b.book(ctx, from, -cents); err != nil {
			return err
		}
		return b.book(ctx, to, cents)
	})
	switch {
	case errors.Is(err, berth.ErrDeadlock):
		return errors.Join(err, errors.New("a caller holds one of these accounts: a bug"))
	case errors.Is(err, berth.ErrNotHeld), errors.Is(err, berth.ErrReleased):
		return errors.Join(err, errors.New("perhaps half booked: to be reconciled"))
	case err == nil:
		slog.Info("transferred", "from", from, "to", to, "cents", cents)
	}
	return err
}

// book changes one account. It is called with and without its lock.
func (b *bank) book(ctx context.Context, account string, cents int) error {
	name := "account:" + account
	opts := &qlock.LockOptions{Conflict: qlock.WorkThrough, MaxWait: 5 * time.Second}
	return b.locks.Do(ctx, name, opts, func(ctx context.Context) error {
		return b.books.add(ctx, name, cents, b.locks.Fence(ctx, name))
	})
}

// ledger stands for the one process that owns the accounts. It refuses what comes
// from a hold that is older than the last one that it has seen.
type ledger struct {
	guard    fence.Memory
	mu       sync.Mutex
	balances map[string]int // guarded by mu
}

func (l *ledger) add(ctx context.Context, account string, cents int, number int64) error {
	return l.guard.Do(ctx, account, number, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, ok := l.balances[account]; !ok {
			return fmt.Errorf("there is no %s", account)
		}
		l.balances[account] += cents
		return nil
	})
}
