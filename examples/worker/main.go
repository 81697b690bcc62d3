// Worker renders pages, at most four at once over all replicas.
package main

import (
	"context"
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
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("worker", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer redis.Close()

	n, err := node.New(redis, node.Config{Namespace: "print"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close(ctx)) }()

	renderers, todo := semaphore.New(n, "renderers", 4, semaphore.Config{}), pages(ctx)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for page := range todo {
				work(ctx, renderers, page)
			}
		})
	}
	wg.Wait()
	return nil
}

// work renders one page once it is its turn.
func work(ctx context.Context, renderers *semaphore.Semaphore, page int) {
	log := slog.With("page", page)
	err := renderers.Do(ctx, &semaphore.AcquireOptions{MaxHold: time.Minute}, func(ctx context.Context) error {
		return render(ctx, page)
	})
	switch {
	case err == nil:
		log.Info("rendered")
	case ctx.Err() != nil:
		log.Info("left undone at shutdown")
	case errors.Is(err, berth.ErrNotAcquired):
		log.Error("did not start", "err", err)
	case errors.Is(err, berth.ErrExpired):
		log.Error("took longer than a minute", "err", err)
	default:
		log.Error("not rendered", "err", err)
	}
}

// render stands for the work. It ends early if ctx does.
func render(ctx context.Context, page int) error {
	slog.Info("rendering", "page", page)
	select {
	case <-time.After(200 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pages stands for a queue that is drained until ctx ends.
func pages(ctx context.Context) <-chan int {
	todo := make(chan int)
	go func() {
		defer close(todo)
		for page := range 20 {
			select {
			case todo <- page:
			case <-ctx.Done():
				return
			}
		}
	}()
	return todo
}
