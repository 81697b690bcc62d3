package embedded

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// An hour of pub/sub, expiry and TIME, exact to the millisecond.
func TestVirtualTime(t *testing.T) {
	t.Parallel()
	began := time.Now()
	inBubble(t, func(t *testing.T, client rueidis.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		s := subscribe(ctx, client, "minutes")
		start := time.Now()
		_, err := eval(client, `redis.call("SET", KEYS[1], "v"); return redis.call("PEXPIREAT", KEYS[1], ARGV[1])`,
			[]string{"k"}, ms(start.Add(61*time.Minute)))
		require.NoError(t, err)

		exists := func() int64 {
			n, err := client.Do(ctx, client.B().Exists().Key("k").Build()).AsInt64()
			require.NoError(t, err)
			return n
		}
		for range 61 {
			require.EqualValues(t, 1, exists())
			time.Sleep(time.Minute - time.Millisecond)
			reached, err := publish(client, "minutes", "almost")
			require.NoError(t, err)
			require.EqualValues(t, 1, reached)
			require.Equal(t, "almost", next(t, s))
			left, err := client.Do(ctx, client.B().Pttl().Key("k").Build()).AsInt64()
			require.NoError(t, err)
			require.Equal(t, 61*time.Minute-time.Since(start), time.Duration(left)*time.Millisecond)
			time.Sleep(time.Millisecond)
		}
		require.Zero(t, exists())

		now, err := eval(client, `local t = redis.call("TIME"); return t[1] * 1000 + t[2] / 1000`, nil)
		require.NoError(t, err)
		require.Equal(t, start.Add(61*time.Minute).UnixMilli(), now)
		cancel()
		require.ErrorIs(t, <-s.ended, context.Canceled)
	})
	require.Less(t, time.Since(began), time.Hour, "the hour was not waited for; it takes less than a second")
}

func TestClientSpeaksRESP2(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client rueidis.Client) {
		ctx := context.Background()
		hello, err := client.Do(ctx, client.B().Hello().Protover(2).Build()).AsMap()
		require.NoError(t, err)
		proto := hello["proto"]
		version, err := proto.ToInt64()
		require.NoError(t, err)
		require.EqualValues(t, 2, version)
		err = client.Do(ctx, client.B().Hello().Protover(3).Build()).Error()
		require.EqualError(t, err, "unknown command 'HELLO'")
		err = client.Do(ctx, client.B().ClusterSlots().Build()).Error()
		require.EqualError(t, err, "This instance has cluster support disabled")
	})
}

func TestCacheNeedsToBeDisabled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := started(t, Start).Client(func(option *rueidis.ClientOption) { option.DisableCache = false })
		require.ErrorIs(t, err, rueidis.ErrNoCache)
	})
}

// What rueidis sends when it connects, with the options that need an answer.
func TestConnectingWithOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := clientOf(t, started(t, Start),
			func(option *rueidis.ClientOption) { option.ClientName = "worker" },
			func(option *rueidis.ClientOption) { option.SelectDB = 3 },
			func(option *rueidis.ClientOption) { option.ClientSetInfo = []string{"berth", "1"} },
		)
		ctx := context.Background()
		name, err := client.Do(ctx, client.B().ClientGetname().Build()).ToString()
		require.NoError(t, err)
		require.Equal(t, "worker", name)
	})
}

// A broken connection loses the subscription and makes it again, and the
// bubble ends at once: nothing is left that sleeps.
func TestReconnects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var conns connections
		client := clientOf(t, started(t, Start), conns.watch)
		ctx, cancel := context.WithCancel(context.Background())
		s := subscribe(ctx, client, "c")
		time.Sleep(5 * time.Second) // until the pings keep all connections busy

		conns.closeAll(t)
		synctest.Wait() // the node has noticed, on each of them
		<-s.made
		reached, err := publish(client, "c", "again")
		require.NoError(t, err)
		require.EqualValues(t, 1, reached)
		require.Equal(t, "again", next(t, s))

		conns.closeAll(t)
		cancel()
		require.Error(t, <-s.ended) // that of whichever it noticed first
	})
}

// connections records all connections of a client.
type connections struct {
	mu   sync.Mutex
	open []net.Conn // guarded by mu
}

func (c *connections) watch(option *rueidis.ClientOption) {
	dial := option.DialCtxFn
	option.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, addr, d, cfg)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open = append(c.open, conn)
		return conn, err
	}
}

func (c *connections) closeAll(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NotEmpty(t, c.open)
	for _, conn := range c.open {
		require.NoError(t, conn.Close())
	}
	c.open = nil
}

// childURL is the variable that makes this test binary a child process: it then
// answers one question over pub/sub, and ends.
const childURL = "BERTH_EMBEDDED_CHILD"

func child(url string) int {
	if err := answer(url); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// answer connects as any program would, with nothing but the URL.
func answer(url string) error {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return err
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	questions := subscribe(ctx, client, "questions")
	if _, err := publish(client, "answers", "ready"); err != nil {
		return err
	}
	select {
	case question := <-questions.messages:
		_, err = publish(client, "answers", "to "+question)
		return err
	case err := <-questions.ended:
		return err
	}
}

func TestChildProcessNeedsOnlyTheURL(t *testing.T) {
	t.Parallel()
	server := started(t, listening)
	client := clientOf(t, server)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answers := subscribe(ctx, client, "answers")

	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+server.URL())
	cmd.Stderr = os.Stderr
	exited := make(chan error, 1)
	go func() {
		err := cmd.Run()
		if err != nil {
			cancel() // no answer will come
		}
		exited <- err
	}()

	require.Equal(t, "ready", next(t, answers))
	reached, err := publish(client, "questions", "who are you")
	require.NoError(t, err)
	require.EqualValues(t, 1, reached)
	require.Equal(t, "to who are you", next(t, answers))
	require.NoError(t, <-exited)

	cancel()
	require.ErrorIs(t, <-answers.ended, context.Canceled)
}

// next waits for a message until the subscription ends.
func next(t *testing.T, s *subscription) string {
	t.Helper()
	select {
	case message := <-s.messages:
		return message
	case err := <-s.ended:
		require.NoError(t, err)
		return ""
	}
}
