package embedded

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// patience bounds what must happen in real time. Only what hangs meets it.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		os.Exit(child(url))
	}
	goleak.VerifyTestMain(m)
}

// inBubble runs f in virtual time, with a client of a server of its own.
func inBubble(t *testing.T, f func(t *testing.T, client rueidis.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, clientOf(t, started(t, Start))) })
}

// started is a server that ends with the test.
func started(t *testing.T, start func() (*Server, error)) *Server {
	t.Helper()
	server, err := start()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

// listening is a server that other processes may reach.
func listening() (*Server, error) { return StartListening("127.0.0.1:0") }

// clientOf is a client that ends with the test.
func clientOf(t *testing.T, server *Server, options ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	client, err := server.Client(options...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// eval runs a script and returns its answer as rueidis.RedisMessage.ToAny does.
func eval(client rueidis.Client, script string, keys []string, args ...string) (any, error) {
	return client.Do(context.Background(), client.B().Eval().Script(script).
		Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).ToAny()
}

// subscription is a running Receive on one channel.
type subscription struct {
	made     chan struct{} // a value for each time it was made
	messages chan string
	ended    chan error
}

// subscribe starts a Receive that ends with ctx, and waits until it is made.
func subscribe(ctx context.Context, client rueidis.Client, channel string) *subscription {
	s := &subscription{
		made:     make(chan struct{}, 100),
		messages: make(chan string, 100),
		ended:    make(chan error, 1),
	}
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) {
		s.made <- struct{}{}
	})
	go func() {
		s.ended <- client.Receive(hooked, client.B().Subscribe().Channel(channel).Build(),
			func(m rueidis.PubSubMessage) { s.messages <- m.Message })
	}()
	select {
	case <-s.made:
	case err := <-s.ended:
		s.ended <- err
	}
	return s
}

func publish(client rueidis.Client, channel, message string) (int64, error) {
	return client.Do(context.Background(),
		client.B().Publish().Channel(channel).Message(message).Build()).AsInt64()
}
