// Orderlock serves payments, one at a time per order over all replicas.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
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
	err = run(ctx, redis)
	redis.Close()
	if err != nil {
		slog.Error("orderlock", "err", err)
		os.Exit(1)
	}
}

// run serves until ctx ends:
//
//	curl -i -X POST http://127.0.0.1:8080/orders/42/pay
func run(ctx context.Context, redis rueidis.Client) (err error) {
	s, err := newServer(redis, charge, 2*time.Second)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.node.Close(context.WithoutCancel(ctx))) }()

	srv := &http.Server{Addr: "127.0.0.1:8080", Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done(): // waits for the handlers, so that they can release
		return srv.Shutdown(context.WithoutCancel(ctx))
	}
}

type server struct {
	node     *node.Node
	locks    *qlock.Locks
	guard    *fence.Redis
	charge   func(ctx context.Context, order string) error
	patience time.Duration // of a request that waits for its order
}

func newServer(redis rueidis.Client, charge func(ctx context.Context, order string) error, patience time.Duration) (*server, error) {
	guard, err := fence.NewRedis(redis, fence.RedisConfig{Namespace: "shop"})
	if err != nil {
		return nil, err
	}
	n, err := node.New(redis, node.Config{Namespace: "shop"})
	if err != nil {
		return nil, err
	}
	return &server{node: n, locks: qlock.New(n, qlock.Config{}), guard: guard, charge: charge, patience: patience}, nil
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}/pay", s.pay)
	return mux
}

func (s *server) pay(w http.ResponseWriter, r *http.Request) {
	name := "order:" + r.PathValue("id")
	err := s.locks.Do(r.Context(), name, &qlock.LockOptions{MaxWait: s.patience}, func(ctx context.Context) error {
		// Somebody else's API can check no fence. So it is asked for right before,
		// which leaves a late holder the time of that call and no more.
		if err := s.guard.Admit(ctx, name, s.locks.Fence(ctx, name)); err != nil {
			return err
		}
		return s.charge(ctx, r.PathValue("id"))
	})
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case r.Context().Err() != nil: // nobody is left to read an answer
	case errors.Is(err, berth.ErrInvalidConfig): // an id that no lock can have
		http.Error(w, "no such order", http.StatusNotFound)
	case errors.Is(err, berth.ErrBusy):
		http.Error(w, "the order is being worked on", http.StatusLocked)
	default: // the server not reached, the lock lost on the way, the charge failed
		slog.Error("not paid", "order", name, "err", err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}

// charge stands for somebody else's API, which takes an order's id so as not to
// charge it twice.
func charge(ctx context.Context, order string) error {
	slog.Info("charging", "order", order)
	select {
	case <-time.After(200 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
