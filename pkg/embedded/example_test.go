package embedded_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/embedded"
)

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

	ctx := context.Background()
	answer, err := redis.Do(ctx, redis.B().Ping().Build()).ToString()
	fmt.Println(answer, err)
	// Output: PONG <nil>
}

// A child process gets the URL and makes its client from it, with
// rueidis.ParseURL.
func ExampleStartListening() {
	server, err := embedded.StartListening("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer server.Close()
	fmt.Println(server.URL() != "")

	// Nobody else may reach it.
	_, err = embedded.StartListening("0.0.0.0:6379")
	fmt.Println(err)
	// Output:
	// true
	// berth: invalid addr: must be a loopback address with a port, such as 127.0.0.1:0, is "0.0.0.0:6379"
}
