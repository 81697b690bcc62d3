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

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

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

// run does the job in each minute, until ctx ends. Failures and missed minutes are logged.
func run(ctx context.Context, redis rueidis.Client, job once.Func) (err error) {
	n, err := node.New(redis, node.Config{Namespace: "cron", Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close(context.WithoutCancel(ctx))) }()
	minutely := once.New(n, "report", once.Config{Every: time.Minute})
	if err := minutely.Run(ctx, job); ctx.Err() == nil {
		return err
	}
	return nil
}

// report stands for the work. It writes what it finds under the fence.
func report(ctx context.Context, run *once.Run) error {
	slog.Info("reporting", "period", run.Period(), "attempt", run.Attempt(), "fence", run.Fence())
	return ctx.Err()
}
