package scriptkit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// closingClient answers ErrClosing while it is told to.
type closingClient struct {
	rueidis.Client
	closing func() bool
}

func (c *closingClient) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if c.closing() {
		return rueidis.NewErrorResult(rueidis.ErrClosing)
	}
	return c.Client.Do(ctx, command)
}

func TestAConnectionThatAFailoverReplacedIsNoClosedClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers(table("ok", "1")))
		inner, begun := server.client(t), time.Now()
		client := &closingClient{Client: inner, closing: func() bool { return time.Since(begun) < 1500*time.Millisecond }}
		runner := NewRunner(client, exact())
		time.Sleep(time.Millisecond)
		r, err := run(t.Context(), runner, simple(t), UntilDone)
		require.NoError(t, err)
		require.True(t, r.Unanswered)

		// The streak is over: the next one begins anew.
		time.Sleep(time.Hour)
		begun = time.Now()
		_, err = run(t.Context(), runner, simple(t), UntilDone)
		require.NoError(t, err)
	})
}

func TestAnyOtherAnswerSaysThatTheClientIsNotClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-OOM full\r\n", table("ok", "1")))
		closing := true
		runner := NewRunner(&closingClient{Client: server.client(t), closing: func() bool { return closing }}, exact())
		ask := func() error {
			_, err := run(t.Context(), runner, simple(t), Once)
			return err
		}
		require.True(t, Repeatable(ask()))
		for range 2 { // after an error that the server answered, and after a reply
			time.Sleep(time.Hour)
			closing = false
			require.NotErrorIs(t, ask(), rueidis.ErrClosing)
			closing = true
			require.True(t, Repeatable(ask()), "a new streak")
		}
		time.Sleep(2*time.Second - 1)
		require.True(t, Repeatable(ask()))
		time.Sleep(time.Nanosecond)
		require.False(t, Repeatable(ask()))
	})
}

func TestAClosedClientIsFinal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeServer(t, answers(table("ok", "1"))).client(t)
		runner := NewRunner(client, exact())
		client.Close()
		begun := time.Now()
		_, err := run(context.Background(), runner, simple(t), UntilDone)
		require.ErrorIs(t, err, rueidis.ErrClosing)
		require.False(t, Repeatable(err))
		require.Less(t, time.Since(begun), 4*time.Second)

		// Who sends attempts one by one learns it too.
		_, err = run(context.Background(), runner, simple(t), Once)
		require.ErrorIs(t, err, rueidis.ErrClosing)
		require.False(t, Repeatable(err))
	})
}
