package fence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/semaphore"
)

// open returns a client of a Redis, here one inside this process.
func open() (rueidis.Client, func()) {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	return redis, func() { redis.Close(); server.Close() }
}

// A holder whose lease has ended does not know it yet, and comes too late.
func Example() {
	redis, done := open()
	defer done()
	ctx := context.Background()
	sems, err := semaphore.New(redis, semaphore.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = sems.Close(ctx) }()
	books, err := sems.Semaphore("books", 1, nil)
	if err != nil {
		panic(err)
	}

	var guard fence.Memory // in the process that keeps the books
	write := func(number int64, text string) {
		err := guard.Do(ctx, "books", number, func() error {
			fmt.Println("written:", text)
			return nil
		})
		if errors.Is(err, fence.ErrStale) {
			fmt.Println("refused:", text)
		}
	}

	old, err := books.Acquire(ctx, &semaphore.AcquireOptions{NoRenew: true, Lease: 2 * time.Second})
	if err != nil {
		panic(err)
	}
	write(old.Fence(), "first")
	write(old.Fence(), "first again")
	next, err := books.Acquire(ctx, nil) // waits until that lease has ended
	if err != nil {
		panic(err)
	}
	write(next.Fence(), "second")
	write(old.Fence(), "late")
	// Output:
	// written: first
	// written: first again
	// written: second
	// refused: late
}

// Where a mutex guards the resource anyway, Admit belongs under it.
func ExampleMemory_Admit() {
	var (
		guard fence.Memory
		mu    sync.Mutex
		page  string // guarded by mu
	)
	publish := func(ctx context.Context, number int64, text string) error {
		mu.Lock()
		defer mu.Unlock()
		if err := guard.Admit(ctx, "page", number); err != nil {
			return err
		}
		page = text
		return nil
	}

	ctx := context.Background()
	fmt.Println(publish(ctx, 12, "new"))
	err := publish(ctx, 11, "old")
	fmt.Println(err)
	var stale *fence.StaleError
	fmt.Println(errors.As(err, &stale), stale.Greatest, page)
	// Output:
	// <nil>
	// berth: stale fence for "page": 11, after 12 was admitted
	// true 12 new
}

// What has no check of its own: ask right before each step, and know that what
// is on its way already is not called back.
func ExampleRedis_Admit() {
	redis, done := open()
	defer done()
	guard, err := fence.NewRedis(redis, fence.RedisConfig{})
	if err != nil {
		panic(err)
	}
	send := func(ctx context.Context, number int64, pages int) error {
		for page := range pages {
			if err := guard.Admit(ctx, "printer:1", number); err != nil {
				return err
			}
			fmt.Println("page", page+1)
		}
		return nil
	}

	ctx := context.Background()
	fmt.Println(send(ctx, 1795222663450890, 2))
	fmt.Println(send(ctx, 1795222663450889, 2))
	// Output:
	// page 1
	// page 2
	// <nil>
	// berth: stale fence for "printer:1": 1795222663450889, after 1795222663450890 was admitted
}

// The last holder of what goes away lets the guard forget it.
func ExampleRedis_Forget() {
	redis, done := open()
	defer done()
	guard, err := fence.NewRedis(redis, fence.RedisConfig{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	fmt.Println(guard.Admit(ctx, "upload:9", 7))
	fmt.Println(guard.Forget(ctx, "upload:9", 6))
	fmt.Println(guard.Forget(ctx, "upload:9", 7))
	// Output:
	// <nil>
	// berth: stale fence for "upload:9": 6, after 7 was admitted
	// <nil>
}

// In Redis a script checks and writes in one step. The fence lies in the hash
// that it guards.
func ExampleLua() {
	redis, done := open()
	defer done()
	pay := rueidis.NewLuaScript(fence.Lua() + `
		local ok, greatest = admit(KEYS[1], ARGV[1])
		if not ok then
			return "refused after " .. greatest
		end
		return "balance " .. redis.call("HINCRBY", KEYS[1], "balance", ARGV[2])`)

	ctx, account := context.Background(), []string{"account:{7}"}
	for _, step := range [][]string{{"12", "100"}, {"12", "-30"}, {"11", "-30"}, {"13", "5"}} {
		answer, err := pay.Exec(ctx, redis, account, step).ToString()
		fmt.Println(answer, err)
	}
	// Output:
	// balance 100 <nil>
	// balance 70 <nil>
	// refused after 12 <nil>
	// balance 75 <nil>
}
