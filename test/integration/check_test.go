package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// The rules of Check are tested in internal/check; here are the answers of real servers.

func TestCheckRefusesAServerThatEvicts(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			w := private(t, "--maxmemory", "3mb", "--maxmemory-policy", policy)
			_, err := w.node(node.Config{}).Check(w.Within(patience))
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			var bad *berth.ConfigError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "maxmemory-policy", bad.Field)
			require.ErrorContains(t, err, policy)
		})
	}
}

// What may not be asked, and what only wake-ups need, is a warning; what else is missing is an error that says so.
func TestCheckOfAUserWhoMayNotAskOrDoEverything(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rules, warning, refusal string }{
		{"-info", "version could not be asked", ""},
		{"-publish", "PUBLISH", ""},
		{"-subscribe", "SUBSCRIBE", ""},
		{"resetchannels", "SUBSCRIBE", ""},
		{"-zadd", "", "ACL"},
		{"-evalsha -eval", "", "ACL"},
	} {
		t.Run(test.rules, func(t *testing.T) {
			w := private(t)
			w.do(append([]string{"ACL", "SETUSER", "narrow", "on", ">secret", "+@all", "~*", "&*"}, strings.Fields(test.rules)...)...)
			user := func(o *rueidis.ClientOption) { o.Username, o.Password = "narrow", "secret" }
			n := w.node(node.Config{}, user)
			w.sem(n, "gpu", 1)
			report, err := n.Check(w.Within(patience))
			if test.refusal != "" {
				require.ErrorContains(t, err, test.refusal)
				return
			}
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(report.Warnings), test.warning)
		})
	}
}

// The longest that is allowed goes through to the server and back.
func TestTheLargestInputIsTaken(t *testing.T) {
	w := shared(t)
	name := strings.Repeat("ö", 256)
	c := w.node(node.Config{Label: strings.Repeat("l", 512)})
	s := w.sem(c, name, 1<<40)
	meta := map[string]string{"": "\x00\xff: ", "k": strings.Repeat("v", 16<<10-10)}
	ctx := berth.WithOwner(w.Within(patience), strings.Repeat("o", 512))
	p, err := s.Acquire(ctx, &semaphore.AcquireOptions{Weight: 1 << 40, Priority: -128, Meta: meta})
	require.NoError(t, err)
	q := w.queue(s, &semaphore.AcquireOptions{Priority: 127, Meta: meta}, 1)
	for _, h := range w.reader().Holders(keyspace.Sem, name) {
		require.Equal(t, meta, h.Meta)
		require.Equal(t, 1<<40, h.Weight)
		require.Equal(t, berth.Owner(ctx), h.Owner)
	}
	for _, h := range w.reader().Waiters(keyspace.Sem, name) {
		require.Equal(t, meta, h.Meta)
		require.Equal(t, 127, h.Priority)
	}
	require.NoError(t, p.Release(ctx))
	require.NoError(t, q.Wait(w).Release(ctx))
	w.idle(name)
}
