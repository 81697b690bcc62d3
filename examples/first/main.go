// First is the program at the beginning of the README.
package main

import (
	"context"
	"log"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func main() {
	redis, err := rueidis.NewClient(rueidis.MustParseURL("redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatal(err)
	}
	n, err := node.New(redis, node.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close(context.Background())
	locks := qlock.New(n, qlock.Config{})
	log.Println("in line")
	err = locks.Do(context.Background(), "invoice:42", nil, func(ctx context.Context) error {
		log.Println("alone; fence", locks.Fence(ctx, "invoice:42"))
		select {
		case <-time.After(10 * time.Second): // the work
		case <-ctx.Done(): // the lock is lost: stop
		}
		return ctx.Err()
	})
	log.Println("released:", err)
}
