package line_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// trialled is a client that notes which scripts it is sent, and fails the one that it is
// told to.
type trialled struct {
	rueidis.Client
	t     *testing.T
	sent  []string
	fails string
}

func (c *trialled) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := cmd.Commands()
	scripts := composed.Library().Scripts()
	at := slices.IndexFunc(scripts, func(s *scriptkit.Script) bool { return s.SHA == words[1] || s.Source() == words[1] })
	if at < 0 {
		return c.Client.Do(ctx, cmd)
	}
	script := scripts[at]
	if n := len(c.sent); n > 0 && c.sent[n-1] == script.Name { // EVAL, where the server has the script no more
		return c.Client.Do(ctx, cmd)
	}
	require.Contains(c.t, words[3], "{berth check ", "nobody's name")
	c.sent = append(c.sent, script.Name)
	if script.Name == c.fails {
		return c.Client.Do(ctx, c.B().Arbitrary("NONSENSE").Build())
	}
	return c.Client.Do(ctx, cmd)
}

func TestATrialMakesTheCallsOfTwoHoldsUpToTheFirstThatFails(t *testing.T) {
	all := []string{
		"thin_acquire", "thin_renew", "thin_release",
		"semaphore_acquire", "semaphore_renew", "semaphore_release",
	}
	client := &trialled{t: t}
	through(t, func(redis rueidis.Client) rueidis.Client {
		client.Client = redis
		return client
	}, func(t *testing.T, a *process) {
		ctx := context.Background()
		require.NoError(t, a.p.Trial(ctx))
		require.Equal(t, all, client.sent)
		for i, script := range all {
			time.Sleep(2 * time.Minute) // the name is forgotten, and so thin again
			client.sent, client.fails = nil, script
			require.ErrorIs(t, a.p.Trial(ctx), berth.ErrIncompatible)
			require.Equal(t, all[:i+1], client.sent)
		}
	})
}
