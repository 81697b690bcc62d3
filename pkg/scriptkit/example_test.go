package scriptkit_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing/fstest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// files are the scripts. A program would embed them.
var files = fstest.MapFS{
	"counter_add.lua": {Data: []byte(`--[[
counter_add: add to a counter, up to a limit.
KEYS[1] counter (STRING number)
ARGV[1] amount    ARGV[2] limit
RETURNS {"added", value} | {"full", value}
REPLAY adds again    COST O(1)
]]
--- @include "lib/current"
local value = current(KEYS[1]) + ARGV[1]
if value > tonumber(ARGV[2]) then
  return { "full", value - ARGV[1] }
end
redis.call("SET", KEYS[1], value)
return { "added", value }
`)},
	"lib/current.lua": {Data: []byte(`-- current returns the counter, 0 if there is none.
local function current(key)
  return tonumber(redis.call("GET", key) or 0)
end
`)},
}

// Parse the scripts, and run one on a server inside this process.
func Example() {
	add := scriptkit.MustParse(files).Script("counter_add")
	fmt.Println(add.Commands, add.Header.Args[1].Name)

	server := miniredis.NewMiniRedis()
	defer server.Close()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  []string{"embedded"},
		DisableCache: true,
		AlwaysRESP2:  true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return server.Dial()
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	runner := scriptkit.NewRunner(client, scriptkit.Options{})
	for range 2 {
		reply, err := runner.Run(context.Background(), add, scriptkit.Bounded, []string{"{visits}"}, []string{"3", "5"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(reply.Status(), reply.Int(1), reply.Err())
	}
	_, err = runner.Run(context.Background(), add, scriptkit.Bounded, []string{"{visits}"}, nil)
	fmt.Println(err)

	// Output:
	// [GET SET] limit
	// added 3 <nil>
	// full 3 <nil>
	// berth: script counter_add on "{visits}": invalid args: the script takes 2 (amount, limit), not 0
}
