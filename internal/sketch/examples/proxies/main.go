// Proxies crawls pages through proxies that all crawlers share, each site
// through the same one as long as that is free.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/sketch/allocator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, pages []string) (err error) {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		return err
	}
	defer redis.Close()
	pools, err := allocator.New(redis, allocator.Config{Namespace: "crawler"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pools.Close(ctx)) }()
	proxies, err := allocator.NewPool(pools, "proxies", allocator.PoolConfig[*http.Client]{
		Open:         open,
		Source:       list,
		RefreshEvery: time.Minute,
	})
	if err != nil {
		return err
	}

	for _, page := range pages {
		site, err := url.Parse(page)
		if err != nil {
			return err
		}
		opts := &allocator.AllocateOptions{Bind: site.Host, MaxWait: 30 * time.Second}
		err = proxies.Do(ctx, opts, func(ctx context.Context, proxy *allocator.Allocation[*http.Client]) error {
			err := fetch(ctx, proxy.Value(), page)
			if err != nil && ctx.Err() == nil {
				proxy.Rest(time.Minute, err.Error())
			}
			return err
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			log.Printf("%s: %v", page, err)
		}
	}
	return nil
}

// open makes a client of a proxy's address.
func open(_ context.Context, proxy string) (*http.Client, error) {
	address, err := url.Parse(proxy)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(address)}}, nil
}

// list returns the proxies there are now.
func list(context.Context) ([]string, error) {
	raw, err := os.ReadFile("proxies.txt")
	return strings.Fields(string(raw)), err
}

// fetch stands for the work.
func fetch(ctx context.Context, client *http.Client, page string) error { return ctx.Err() }
