package scriptkit_test

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// source is what a server gets. A program would embed it.
var source = `local value = (redis.call("GET", KEYS[1]) or 0) + ARGV[1]
if value > tonumber(ARGV[2]) then
  return { "full", value - ARGV[1] }
end
redis.call("SET", KEYS[1], value)
return { "added", value }
`

// Declare a script, and run it on a server inside this process.
func Example() {
	sum := sha1.Sum([]byte(source))
	add := &scriptkit.Script{
		Name: "counter_add", SHA: hex.EncodeToString(sum[:]), File: &source, Commands: []string{"GET", "SET"},
		Keys: []scriptkit.Key{{Name: "counter", Type: "string"}}, Args: []string{"amount", "limit"},
		Returns: []scriptkit.Return{{Status: "added", Fields: []string{"value"}}, {Status: "full", Fields: []string{"value"}}},
	}

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
	// added 3 <nil>
	// full 3 <nil>
	// berth: script counter_add on "{visits}": invalid args: the script takes 2 (amount, limit), not 0
}
