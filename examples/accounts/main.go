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
)

func main() { // accounts CUSTOMER; the pool is filled by: berth pool add accounts anna ben
	redis, err := rueidis.NewClient(rueidis.MustParseURL("redis://127.0.0.1:6379"))
	pools, refused := allocator.New(redis, allocator.Config{}) // no redis, no pools
	if err = errors.Join(err, refused); err == nil {
		post := func(_ context.Context, account string) error { log.Println("posts as", account); return nil } // the work
		err = errors.Join(serve(context.Background(), pools, os.Args[1], post), pools.Close(context.Background()))
	}
	log.Println("served:", err)
}

func serve(ctx context.Context, pools *allocator.Client, customer string, post func(ctx context.Context, account string) error) error {
	accounts, err := allocator.NewPool(pools, "accounts", allocator.PoolConfig[string]{Cooldown: 30 * time.Second})
	if err != nil {
		return err
	}
	keep := &allocator.AllocateOptions{Bind: customer, BindFor: berth.Forever, BindWait: berth.Forever}
	return accounts.Do(ctx, keep, func(ctx context.Context, account *allocator.Allocation[string]) error {
		return post(ctx, account.Value())
	})
}
