package fence_test

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/fence"
)

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
