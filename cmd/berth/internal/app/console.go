package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/observe"
)

// Loopback says whether an address, as host:port, is one that only this machine reaches.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// LoopbackHosts are the names by which a page on the loopback may be asked for. A name of another site that leads there
// is refused.
func LoopbackHosts() []string { return []string{"localhost", "127.0.0.1", "::1"} }

// ServeConsole serves a page until ctx ends, and closes it.
func ServeConsole(ctx context.Context, listener net.Listener, page *console.Console) error {
	return Serve(ctx, listener, page, page.Close)
}

// Serve serves until ctx ends. It calls end before it waits for what is still served, such as streams that end only then.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, end func(context.Context) error) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	var failed error
	served := make(chan struct{})
	go func() {
		defer close(served)
		failed = server.Serve(listener)
	}()
	select {
	case <-served:
		stop(server, end)
		return Exit(ExitFailed, failed)
	case <-ctx.Done():
		stop(server, end)
		<-served
		return nil
	}
}

func stop(server *http.Server, end func(context.Context) error) {
	within, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = end(within)
	if server.Shutdown(within) != nil {
		_ = server.Close()
	}
}

// Acts writes a line for each action that somebody does from a page.
func Acts(to io.Writer) observe.Observer {
	var mu sync.Mutex
	return observe.Func(func(e observe.Event) {
		if e.Kind != observe.Acted {
			return
		}
		line := e.At.UTC().Format(time.RFC3339) + " " + e.Primitive
		if e.Name != "" {
			line += " " + text.Quoted(e.Name)
		}
		for _, of := range []string{e.Claim, e.Resource} {
			if of != "" {
				line += " " + text.Word(of)
			}
		}
		line += ": " + e.Detail
		if e.Err != nil {
			line += "; failed: " + e.Err.Error()
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(to, OneLine(line))
	})
}
