// Accounts posts messages through accounts that all replicas share. Each account rests
// 30 s after each use, and longer where the service says so.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// cooldown is how long an account rests after each message.
const cooldown = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		slog.Error("connect", "err", err)
		os.Exit(1)
	}
	err = run(ctx, redis, service("https://chat.example/"), os.Args[1:], os.Stdin)
	redis.Close()
	if err != nil {
		slog.Error("accounts", "err", err)
		os.Exit(1)
	}
}

// poster posts one message through an account. Where that is throttled, it returns
// errThrottled, and pause is how long the service wants to hear nothing of the account,
// 0 where it does not say.
type poster func(ctx context.Context, account, message string) (pause time.Duration, err error)

// errThrottled says that the service has enough of one account: another one may do.
var errThrottled = errors.New("throttled")

// run posts each line of messages as soon as there is an account for it. The accounts
// are added to those that are there.
func run(ctx context.Context, redis rueidis.Client, post poster, accounts []string, messages io.Reader) (err error) {
	pools, err := allocator.New(redis, allocator.Config{Namespace: "poster"})
	if err != nil {
		return err
	}
	// An account goes back before the connection is closed, also where ctx has ended.
	defer func() { err = errors.Join(err, pools.Close(context.WithoutCancel(ctx))) }()
	pool, err := allocator.NewPool(pools, "accounts", allocator.PoolConfig[string]{Cooldown: cooldown})
	if err != nil {
		return err
	}
	change, err := pool.Add(ctx, accounts, nil)
	if err != nil {
		return err
	}
	slog.Info("accounts", "new", change.Added, "known", change.Kept)

	lines := bufio.NewScanner(messages)
	for ctx.Err() == nil && lines.Scan() {
		err := send(ctx, pool, post, lines.Text())
		switch {
		case err == nil:
			slog.Info("posted", "message", lines.Text())
		case ctx.Err() != nil:
			slog.Warn("left undone at shutdown", "message", lines.Text())
		case errors.Is(err, berth.ErrLost):
			slog.Error("perhaps posted: the account was lost meanwhile", "message", lines.Text(), "err", err)
		default:
			slog.Error("not posted", "message", lines.Text(), "err", err)
		}
	}
	return lines.Err()
}

// send posts a message through the first account that is free, and through the next one
// where that is throttled.
func send(ctx context.Context, pool *allocator.Pool[string], post poster, message string) error {
	for {
		err := pool.Do(ctx, nil, func(ctx context.Context, account *allocator.Allocation[string]) error {
			pause, err := post(ctx, account.Value(), message)
			if errors.Is(err, errThrottled) {
				// When Do gives it back; the cooldown is the least.
				err = errors.Join(err, account.Rest(pause, err.Error()))
			}
			return err
		})
		if !errors.Is(err, errThrottled) {
			return err
		}
	}
}

// service posts to a service on the web.
func service(at string) poster {
	return func(ctx context.Context, account, message string) (time.Duration, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, at+url.PathEscape(account), strings.NewReader(message))
		if err != nil {
			return 0, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		defer func() { _ = answer.Body.Close() }()
		switch {
		case answer.StatusCode == http.StatusTooManyRequests:
			seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
			return time.Duration(seconds) * time.Second, errThrottled
		case answer.StatusCode/100 != 2:
			return 0, fmt.Errorf("the service says %s", answer.Status)
		}
		return 0, nil
	}
}
