package embedded_test

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/embedded"
)

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
