package fence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/fence"
)

// printPages sends pages to a printer, which checks no fences itself.
func printPages(ctx context.Context, guard *fence.Redis, number int64, pages int) error {
	for page := range pages {
		if err := guard.Admit(ctx, "printer:1", number); err != nil {
			return err
		}
		fmt.Println("page", page+1)
	}
	return nil
}

// If a resource checks no fences itself, ask the guard right before each step. The
// guard does not call back a step that has begun. The last holder of a resource that
// goes away lets the guard forget it.
func ExampleRedis_Admit() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	guard, err := fence.NewRedis(redis, fence.RedisConfig{})
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	fmt.Println(printPages(ctx, guard, 1795222663450890, 2))
	fmt.Println(printPages(ctx, guard, 1795222663450889, 2))
	fmt.Println(guard.Forget(ctx, "printer:1", 1795222663450890))
	// Output:
	// page 1
	// page 2
	// <nil>
	// berth: stale fence for "printer:1": 1795222663450889, after 1795222663450890 was admitted
	// <nil>
}

// payment changes the balance of an account. The fence lies in the hash that it guards.
var payment = rueidis.NewLuaScript(fence.Lua() + `
	local ok, greatest = admit(KEYS[1], ARGV[1])
	if not ok then
		return "refused after " .. greatest
	end
	return "balance " .. redis.call("HINCRBY", KEYS[1], "balance", ARGV[2])`)

// In Redis a script checks and writes in one step.
func ExampleLua() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	defer redis.Close()

	ctx, account := context.Background(), []string{"account:{7}"}
	for _, step := range [][]string{{"12", "100"}, {"12", "-30"}, {"11", "-30"}, {"13", "5"}} {
		fmt.Println(payment.Exec(ctx, redis, account, step).ToString())
	}
	// Output:
	// balance 100 <nil>
	// balance 70 <nil>
	// refused after 12 <nil>
	// balance 75 <nil>
}

// page is a resource whose text a mutex guards anyway.
type page struct {
	guard fence.Memory
	mu    sync.Mutex
	text  string
}

func (p *page) publish(ctx context.Context, number int64, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.guard.Admit(ctx, "page", number); err != nil {
		return err
	}
	p.text = text
	return nil
}

// If a mutex guards the resource, call Admit under the mutex.
func ExampleMemory_Admit() {
	ctx := context.Background()
	var front page
	fmt.Println(front.publish(ctx, 12, "new"))
	err := front.publish(ctx, 11, "old")
	fmt.Println(err)
	var stale *fence.StaleError
	fmt.Println(errors.As(err, &stale), stale.Greatest, front.text)
	// Output:
	// <nil>
	// berth: stale fence for "page": 11, after 12 was admitted
	// true 12 new
}
