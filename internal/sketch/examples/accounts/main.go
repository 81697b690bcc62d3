// Accounts posts messages through accounts that rest 30 s after each use, and
// longer if the service says so.
package main

import (
	"bufio"
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
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

func run(ctx context.Context, names []string) (err error) {
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		return err
	}
	defer redis.Close()
	pools, err := allocator.New(redis, allocator.Config{Namespace: "poster"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pools.Close(ctx)) }()
	accounts, err := allocator.NewPool(pools, "accounts", allocator.PoolConfig[string]{Cooldown: 30 * time.Second})
	if err != nil {
		return err
	}
	if _, err := accounts.Add(ctx, names, nil); err != nil {
		return err
	}

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && ctx.Err() == nil {
		err := errThrottled
		for errors.Is(err, errThrottled) {
			err = accounts.Do(ctx, nil, func(ctx context.Context, account *allocator.Allocation[string]) error {
				return post(ctx, account, lines.Text())
			})
		}
		if err != nil && ctx.Err() == nil {
			log.Printf("%q not posted: %v", lines.Text(), err)
		}
	}
	return lines.Err()
}

var errThrottled = errors.New("throttled")

// post posts the message. If the service has enough of the account, that rests
// for as long as the service says.
func post(ctx context.Context, account *allocator.Allocation[string], message string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"https://chat.example/"+account.Value(), strings.NewReader(message))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusTooManyRequests {
		return nil
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // 0: the cooldown is enough
	account.Rest(time.Duration(seconds)*time.Second, "429")
	return errThrottled
}
