// Proxies crawls pages through the proxies of a pool, which all its processes share.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

func main() { // after: berth pool replace proxies --file proxies.txt
	redis, err := rueidis.NewClient(rueidis.MustParseURL("redis://127.0.0.1:6379"))
	n, refused := node.New(redis, node.Config{}) // no redis, no node
	if err = errors.Join(err, refused); err == nil {
		fetch := func(context.Context, string, string) error { return nil } // or os.ErrPermission: the site has banned the proxy
		err = errors.Join(crawl(context.Background(), n, os.Args[1:], fetch), n.Close(context.Background()))
	}
	log.Println("crawled:", err)
}

func crawl(ctx context.Context, n *node.Node, pages []string, fetch func(ctx context.Context, proxy, page string) error) (err error) {
	proxies := allocator.New(n, "proxies", allocator.Config[string]{Cooldown: 5 * time.Second})
	for err == nil && len(pages) > 0 {
		err = proxies.Do(ctx, nil, func(ctx context.Context, proxy *allocator.Allocation[string]) error {
			err := fetch(ctx, proxy.Value(), pages[0])
			if errors.Is(err, os.ErrPermission) { // the page is fetched again, through the next proxy
				return proxy.Rest(24*time.Hour, "banned")
			}
			pages = pages[1:]
			return err
		})
	}
	return err
}
