// Orderlock serves payments, one at a time per order over all replicas.
package main

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/qlock"
)

type server struct {
	locks *qlock.Client
	db    *sql.DB
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
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
	locks, err := qlock.New(redis, qlock.Config{Namespace: "shop"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(ctx)) }()
	db, err := sql.Open("pgx", "postgres:///shop")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}/pay", (&server{locks: locks, db: db}).pay)
	srv := &http.Server{Addr: "127.0.0.1:8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done(): // waits for the handlers, so that they can release
		return srv.Shutdown(context.WithoutCancel(ctx))
	}
}

func (s *server) pay(w http.ResponseWriter, r *http.Request) {
	name := "order:" + r.PathValue("id")
	err := s.locks.Do(r.Context(), name, &qlock.LockOptions{MaxWait: 2 * time.Second}, func(ctx context.Context) error {
		return s.markPaid(ctx, r.PathValue("id"), s.locks.Fence(ctx, name))
	})
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case r.Context().Err() != nil: // nobody is left to read an answer
	case errors.Is(err, qlock.ErrInvalidConfig): // an id that no lock can have
		http.Error(w, "no such order", http.StatusNotFound)
	case errors.Is(err, qlock.ErrBusy):
		http.Error(w, "the order is being worked on", http.StatusLocked)
	default: // the server not reached, the lock lost on the way, the database
		log.Printf("pay %s: %v", name, err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}

// markPaid returns sql.ErrNoRows if a later holder wrote the order: then this
// one had lost the lock without knowing it.
func (s *server) markPaid(ctx context.Context, id string, fence int64) error {
	return s.db.QueryRowContext(ctx,
		"UPDATE orders SET paid = true, fence = $1 WHERE id = $2 AND fence <= $1 RETURNING id", fence, id).Scan(&id)
}
