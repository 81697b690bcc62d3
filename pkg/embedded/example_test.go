package embedded_test

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/embedded"
)

// ping asks a server whether it is there.
func ping(redis rueidis.Client) (string, error) {
	return redis.Do(context.Background(), redis.B().Ping().Build()).ToString()
}

// Start gives a server inside this process, without a port.
func ExampleStart() {
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

	fmt.Println(ping(redis))
	// Output: PONG <nil>
}
