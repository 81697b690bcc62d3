// Command trial makes a jam for people to find out, and to solve: full, in a cycle, at rest, paused, and dead. It prints
// where it is, and ends with its standard input or a signal.
//
//	go -C test/browser run ./trial [-redis redis://127.0.0.1:6379 -namespace jam] [-work 3s]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/berth-go/berth/test/browser/jam"
	"github.com/berth-go/berth/test/harness"
)

func main() {
	jam.Dies()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	cfg := jam.Config{Lease: 10 * time.Second}
	flag.StringVar(&cfg.URL, "redis", "", "the `URL` of the server; without one, a server of its own")
	flag.StringVar(&cfg.Namespace, "namespace", "jam", "where the jam is made")
	flag.DurationVar(&cfg.Work, "work", 3*time.Second, "after how long who is granted something gives it back; 0: never")
	flag.BoolVar(&cfg.Plain, "plain", false, "without what only strangers write")
	flag.Parse()
	if cfg.URL == "" {
		server, end, err := harness.Run()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		cfg.URL = server.URL()
	}
	made, err := jam.Make(ctx, cfg)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(os.Stdout, "export BERTH_REDIS=%s BERTH_NAMESPACE=%s\n", cfg.URL, cfg.Namespace)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return made.Close(closing)
}
