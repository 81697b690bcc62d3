package embedded_test

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/embedded"
)

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

	fmt.Println(redis.Do(context.Background(), redis.B().Ping().Build()).ToString())
	// Output: PONG <nil>
}

// child is what a child process does with the URL.
func child(url string) (string, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return "", err
	}
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return "", err
	}
	defer redis.Close()
	return redis.Do(context.Background(), redis.B().Ping().Build()).ToString()
}

// StartListening gives a server that other processes of this machine may reach.
func ExampleStartListening() {
	server, err := embedded.StartListening("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer server.Close()
	fmt.Println(child(server.URL()))

	_, err = embedded.StartListening("0.0.0.0:6379")
	fmt.Println(err)
	// Output:
	// PONG <nil>
	// berth: invalid addr: must be a loopback address with a port, such as 127.0.0.1:0, is "0.0.0.0:6379"
}
