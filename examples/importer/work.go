package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis, err := rueidis.NewClient(rueidis.MustParseURL("redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatal(err)
	}
	log.Println("imported:", run(ctx, redis, work{sources: []string{"anna", "ben"}}))
}

// work stands for what the program does.
type work struct {
	locks   *qlock.Locks
	gpu     *semaphore.Semaphore
	proxies *allocator.Pool[string]
	sources []string
	done    func() // is called when all sources are imported; nil for nobody
}

// list is where the proxies come from.
func (w work) list(context.Context) ([]string, error) {
	return []string{"10.0.0.1:3128", "10.0.0.2:3128"}, nil
}

// digest runs once a day, in one of the processes.
func (w work) digest(_ context.Context, run *once.Run) error {
	slog.Info("digest", "day", run.Period(), "fence", run.Fence())
	return nil
}

// schedule runs in the one process that leads. It imports each source: nobody else has the source, at most four train at once over all
// processes, and nobody else uses the proxy.
func (w work) schedule(ctx context.Context) error {
	for _, source := range w.sources {
		err := w.locks.Do(ctx, "source:"+source, nil, func(ctx context.Context) error {
			return w.gpu.Do(ctx, nil, func(ctx context.Context) error {
				return w.proxies.Do(ctx, nil, func(ctx context.Context, proxy *allocator.Allocation[string]) error {
					slog.Info("imports", "source", source, "proxy", proxy.Value(), "fence", w.locks.Fence(ctx, "source:"+source))
					return ctx.Err()
				})
			})
		})
		if err != nil {
			return err
		}
	}
	if w.done != nil {
		w.done()
	}
	<-ctx.Done() // leads until the process ends, or loses it
	return nil
}
