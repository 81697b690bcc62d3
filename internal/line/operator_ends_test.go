package line_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/scripts/composed"
)

// A release of many ends with the call, or with the server, and says so once.
func TestAReleaseOfManyEndsWithItsContext(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		for i := range 50 {
			a.claims("x", 50, fmt.Sprintf("b.%03d", i), "me")
			a.claims(fmt.Sprintf("y%d", i), 1, "b.1", "me")
		}
		for _, target := range []berth.Target{{Name: "x"}, {Name: "x", Owner: "me"}, {Owner: "me"}, {All: true}} {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			ended, err := a.release(ctx, target)
			require.ErrorIs(t, err, context.Canceled)
			require.Zero(t, ended)
			require.LessOrEqual(t, strings.Count(err.Error(), "canceled"), len(line.Kinds), "%v: %v", target, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		a.told = func() { cancel() } // with the first
		ended, err := a.release(ctx, berth.Target{Name: "x"})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, ended)
		require.Equal(t, 1, strings.Count(err.Error(), "canceled"), err)
	})
}

// refusing answers READONLY to scripts, once told to: to all, and to what is read, or to one.
type refusing struct {
	rueidis.Client
	now  bool
	only string // its name, "" for all
}

func (c *refusing) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if words := cmd.Commands(); c.now && strings.HasPrefix(words[0], "EVAL") &&
		(c.only == "" || words[1] == composed.Library().Script(c.only).SHA) {
		return c.Client.Do(ctx, c.B().Eval().Script("return redis.error_reply('READONLY a replica')").Numkeys(0).Build())
	}
	return c.Client.Do(ctx, cmd)
}

func (c *refusing) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	if c.now && c.only == "" {
		for i := range multi {
			multi[i] = c.B().Eval().Script("return redis.error_reply('READONLY a replica')").Numkeys(0).Build()
		}
	}
	return c.Client.DoMulti(ctx, multi...)
}

// Retry is for each call; that of a name that cannot be reached is not paid for each claim.
func TestAReleaseOfManyEndsWithTheServer(t *testing.T) {
	client := &refusing{}
	through(t, func(redis rueidis.Client) rueidis.Client {
		client.Client = redis
		return client
	}, func(t *testing.T, a *process) {
		for _, target := range []berth.Target{{Name: "x"}, {Name: "y", Node: "b"}} {
			for i := range 50 {
				a.claims(target.Name, 50, fmt.Sprintf("b.%03d", i), "me")
			}
			a.told = func() { client.now = true }
			start := time.Now()
			ended, err := a.release(context.Background(), target)
			require.ErrorIs(t, err, berth.ErrUnavailable)
			require.Equal(t, 1, ended)
			require.Less(t, time.Since(start), 15*time.Second)

			start = time.Now()
			ended, err = a.release(context.Background(), target)
			require.ErrorIs(t, err, berth.ErrUnavailable)
			require.Zero(t, ended)
			require.Less(t, time.Since(start), 15*time.Second)
			client.now = false
		}
	})
}

// What a call has ended counts, even if the sweep that follows fails.
func TestWhatAReleaseHasEndedCountsBesideTheErrorOfItsSweep(t *testing.T) {
	client := &refusing{only: "semaphore_sweep"}
	through(t, func(redis rueidis.Client) rueidis.Client {
		client.Client = redis
		return client
	}, func(t *testing.T, a *process) {
		const many = 250
		for _, target := range []berth.Target{{Name: "x", Claim: "c.1"}, {Name: "y", Node: "c"}} {
			client.now = false
			for i := range many {
				a.claims(target.Name, many+1, fmt.Sprintf("b.%03d", i), "")
			}
			time.Sleep(lease - time.Millisecond)
			a.claims(target.Name, many+1, "c.1", "")
			time.Sleep(time.Millisecond)
			client.now = true
			ended, err := a.release(context.Background(), target)
			require.ErrorIs(t, err, berth.ErrUnavailable)
			require.Equal(t, 1, ended)
		}
		require.Equal(t, []string{"c.1", "c.1"}, a.forced())
	})
}
