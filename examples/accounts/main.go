// Accounts posts through an account that all replicas share: it rests 30 s after each use,
// and the customer has the same one each time.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

func main() { // accounts CUSTOMER; the pool is filled by: berth pool add accounts anna ben
	redis, err := rueidis.NewClient(rueidis.MustParseURL("redis://127.0.0.1:6379"))
	n, refused := node.New(redis, node.Config{}) // no redis, no node
	if err = errors.Join(err, refused); err == nil {
		post := func(_ context.Context, account string) error { log.Println("posts as", account); return nil } // the work
		err = errors.Join(serve(context.Background(), n, os.Args[1], post), n.Close(context.Background()))
	}
	log.Println("served:", err)
}

func serve(ctx context.Context, n *node.Node, customer string, post func(ctx context.Context, account string) error) error {
	accounts := allocator.New(n, "accounts", allocator.Config[string]{Cooldown: 30 * time.Second})
	keep := &allocator.AllocateOptions{Bind: customer, BindFor: berth.Forever, BindWait: berth.Forever}
	return accounts.Do(ctx, keep, func(ctx context.Context, account *allocator.Allocation[string]) error {
		return post(ctx, account.Value())
	})
}
