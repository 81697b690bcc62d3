package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/berth-go/berth/internal/origin"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/observe"
)

// Loopback reports whether an address, as host:port, is one that only this machine reaches.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// WarnExposed says what somebody can do who reaches an address, if that is not only this machine.
func (a *App) WarnExposed(address, can string) {
	if !Loopback(address) {
		fmt.Fprintf(a.Err, "berth: warning: whoever reaches %s %s\n", text.Plain(address), can)
	}
}

// HostsVar makes the flag of the names by which somebody may ask for what is served.
func HostsVar(flags *pflag.FlagSet, names *[]string, who string) {
	flags.StringArrayVar(names, "host", nil,
		"`NAME`, without a port, by which "+who+" may ask for it, beside localhost and IP addresses; \"*\" for any; repeatable")
}

// CheckHosts returns an error for names that are none.
func CheckHosts(names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, ":/ ") {
			return Usage("--host: %q is no name of a host; it has no port", name)
		}
	}
	return nil
}

// Hosts are the names by which what is served may be asked for, beside IP addresses. A name of another site that was
// made to lead here is refused: to a browser the scripts of that site are those of this page, and may set a header.
func Hosts(names []string) []string { return append(origin.Local(), names...) }

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
