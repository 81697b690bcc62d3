// Proxies fetches pages through proxies that all crawlers share, the pages of a site
// through one proxy as long as that is free.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

const (
	patience = 30 * time.Second // of a page that waits for a proxy
	pause    = time.Minute      // of a proxy that a site has had enough of
	tries    = 3                // of a page, each through another proxy
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		slog.Error("connect", "err", err)
		os.Exit(1)
	}
	err = run(ctx, redis, fromFile("proxies.txt"), os.Args[1:], keep)
	redis.Close()
	if err != nil {
		slog.Error("proxies", "err", err)
		os.Exit(1)
	}
}

// run fetches the pages, eight at once, and hands each to found. The pool holds what
// list returns, which one of all crawlers asks for once a minute.
func run(ctx context.Context, redis rueidis.Client, list func(context.Context) ([]string, error), pages []string,
	found func(page string, body []byte),
) (err error) {
	pools, err := allocator.New(redis, allocator.Config{Namespace: "crawler", Observer: observe.Func(tell)})
	if err != nil {
		return err
	}
	// Proxies go back before the connection is closed, also where ctx has ended.
	defer func() { err = errors.Join(err, pools.Close(context.WithoutCancel(ctx))) }()
	proxies, err := allocator.NewPool(pools, "proxies", allocator.PoolConfig[*http.Client]{
		Open:         open,
		Close:        func(proxy *http.Client) error { proxy.CloseIdleConnections(); return nil },
		Source:       list,
		RefreshEvery: time.Minute,
	})
	if err != nil {
		return err
	}

	todo := make(chan string)
	var crawl sync.WaitGroup
	for range 8 {
		crawl.Go(func() {
			for page := range todo {
				body, err := fetch(ctx, proxies, page)
				if err != nil {
					slog.Error("not fetched", "page", page, "err", err)
					continue
				}
				found(page, body)
			}
		})
	}
	for _, page := range pages {
		select {
		case todo <- page:
		case <-ctx.Done():
		}
	}
	close(todo)
	crawl.Wait()
	return nil
}

// errNoUse says that a page cannot be had through a proxy, because that does not answer
// or because the site has refused it: another one may do.
var errNoUse = errors.New("the proxy is of no use")

// fetch gets a page, through another proxy where one is of no use.
func fetch(ctx context.Context, proxies *allocator.Pool[*http.Client], page string) (body []byte, err error) {
	site, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	opts := &allocator.AllocateOptions{Bind: site.Host, MaxWait: patience}
	for range tries {
		err = proxies.Do(ctx, opts, func(ctx context.Context, proxy *allocator.Allocation[*http.Client]) error {
			answer, err := get(ctx, proxy.Value(), page)
			if errors.Is(err, errNoUse) {
				// It rests when Do gives it back, so the next try gets another
				// one, and the site is bound to that from then on.
				err = errors.Join(err, proxy.Rest(pause, err.Error()))
			}
			body = answer
			return err
		})
		if !errors.Is(err, errNoUse) {
			break
		}
	}
	return body, err
}

func get(ctx context.Context, proxy *http.Client, page string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := proxy.Do(request)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", errNoUse, err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
		return io.ReadAll(answer.Body)
	case http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests:
		return nil, fmt.Errorf("%w: %s", errNoUse, answer.Status)
	}
	return nil, errors.New(answer.Status)
}

// open makes a client of a proxy's address, which all that this crawler fetches through
// it share, with its connections.
func open(_ context.Context, proxy string) (*http.Client, error) {
	address, err := url.Parse(proxy)
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{Proxy: http.ProxyURL(address)}}, nil
}

// fromFile returns the proxies that a file has now, one a line.
func fromFile(path string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) {
		text, err := os.ReadFile(path)
		return strings.Fields(string(text)), err
	}
}

// tell logs what no caller hears of.
func tell(ev observe.Event) {
	switch ev.Kind {
	case observe.RefreshFailed, observe.OpenFailed:
		slog.Warn(string(ev.Kind), "proxy", ev.Resource, "err", ev.Err)
	case observe.Rested:
		slog.Info("rests", "proxy", ev.Resource, "for", ev.Left, "why", ev.Detail)
	}
}

// keep stands for the work.
func keep(page string, body []byte) { slog.Info("fetched", "page", page, "bytes", len(body)) }
