package fence_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// do runs a command, and returns its answer.
func do(t *testing.T, redis rueidis.Client, words ...string) rueidis.RedisResult {
	t.Helper()
	r := redis.Do(context.Background(), redis.B().Arbitrary(words...).Build())
	if err := r.Error(); !rueidis.IsRedisNil(err) {
		require.NoError(t, err)
	}
	return r
}

func number(t *testing.T, redis rueidis.Client, words ...string) int64 {
	t.Helper()
	return must(do(t, redis, words...).AsInt64())(t)
}

func TestTheGuardIsOneKeyThatNeverExpires(t *testing.T) {
	t.Parallel()
	redis := berthtest.Redis(t)
	g, there := newRedis(t, redis), newRedis(t, redis)
	require.NoError(t, g.Admit(t.Context(), invoice, micros))
	require.Equal(t, []string{invoiceKey}, must(do(t, redis, "KEYS", "*").AsStrSlice())(t))
	require.Equal(t, int64(-1), number(t, redis, "PTTL", invoiceKey))
	require.Equal(t, int64(micros), number(t, redis, "HGET", invoiceKey, "fence"))
	requireStale(t, there.Admit(t.Context(), invoice, 4), invoice, 4, micros)

	require.Equal(t, invoiceKey, must(g.Key(invoice))(t))
	_, err := g.Key("{}")
	require.ErrorIs(t, err, berth.ErrInvalidConfig)

	require.NoError(t, g.Forget(t.Context(), invoice, micros))
	require.Zero(t, number(t, redis, "DBSIZE"))
	other := must(fence.NewRedis(redis, fence.RedisConfig{Namespace: "shop"}))(t)
	require.NoError(t, g.Admit(t.Context(), invoice, 5))
	require.NoError(t, other.Admit(t.Context(), invoice, 4), "of another namespace")
}

func TestNewRedisRefusesBadConfig(t *testing.T) {
	t.Parallel()
	redis := berthtest.Redis(t)
	for _, test := range []struct {
		field string
		redis rueidis.Client
		cfg   fence.RedisConfig
	}{
		{"redis", nil, fence.RedisConfig{}},
		{"Namespace", redis, fence.RedisConfig{Namespace: "a*"}},
		{"CallTimeout", redis, fence.RedisConfig{CallTimeout: -1}},
		{"Retry.Attempts", redis, fence.RedisConfig{Retry: berth.Retry{Attempts: -1}}},
	} {
		g, err := fence.NewRedis(test.redis, test.cfg)
		require.Nil(t, g)
		var refused *berth.ConfigError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, test.field, refused.Field)
	}
}

// Whatever else the key holds, nothing is admitted and nothing written.
func TestAKeyOfSomebodyElse(t *testing.T) {
	t.Parallel()
	text := func(fence string) []string { return []string{"HSET", invoiceKey, "fence", fence} }
	for _, test := range []struct {
		name, problem string
		make          []string
		foreign       bool // not of this release
	}{
		{"a string", "holds a string instead of a hash", []string{"SET", invoiceKey, "3"}, false},
		{"a list", "holds a list instead of a hash", []string{"RPUSH", invoiceKey, "3"}, false},
		{"text", "keeps something", text("three"), true},
		{"no text", "keeps something", text(""), true},
		{"a fraction", "keeps something", text("1.79e+15"), true},
		{"less than 0", "keeps something", text("-3"), true},
		{"a number of another look", "keeps something", text("03"), true},
		{"more than an int64", "not a whole number", text("9223372036854775808"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			redis := berthtest.Redis(t)
			g := newRedis(t, redis)
			do(t, redis, test.make...)
			for _, call := range []func(context.Context, string, int64) error{g.Admit, g.Forget} {
				err := call(t.Context(), invoice, micros)
				require.ErrorContains(t, err, test.problem)
				require.NotErrorIs(t, err, fence.ErrStale)
				require.Equal(t, test.foreign, errors.Is(err, berth.ErrIncompatible))
			}
			read := map[string][]string{"SET": {"GET"}, "RPUSH": {"LINDEX", "0"}, "HSET": {"HGET", "fence"}}[test.make[0]]
			left := must(do(t, redis, append([]string{read[0], invoiceKey}, read[1:]...)...).ToString())(t)
			require.Equal(t, test.make[len(test.make)-1], left)
		})
	}
}

func TestManyProcessesAdmitInTheOrderOfFences(t *testing.T) {
	t.Parallel()
	redis := berthtest.Redis(t)
	const workers, turns = 8, 50
	var wg sync.WaitGroup
	for worker := range workers {
		g := newRedis(t, redis)
		wg.Go(func() {
			for turn := range turns {
				number := int64(micros + turn*workers + worker)
				if err := g.Admit(t.Context(), invoice, number); err != nil && !isStale(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(micros+workers*turns-1), number(t, redis, "HGET", invoiceKey, "fence"))
}

// lossy is a guard on a link of its own, and a client that looks on.
func lossy(t *testing.T) (*fence.Redis, *link.Link, rueidis.Client) {
	t.Helper()
	server := must(embedded.Start())(t)
	t.Cleanup(server.Close)
	scripts := map[string]*scriptkit.Script{}
	for _, s := range composed.Library().Scripts() {
		scripts[s.SHA] = s
	}
	l := link.New(func(sha string) *scriptkit.Script { return scripts[sha] })
	redis := must(server.Client(l.Wrap))(t)
	t.Cleanup(redis.Close)
	looker := must(server.Client())(t)
	t.Cleanup(looker.Close)
	g := newRedis(t, redis)
	require.NoError(t, g.Admit(t.Context(), "connect", 1)) // the scripts are known
	require.NoError(t, g.Forget(t.Context(), "connect", 1))
	l.Reset()
	return g, l, looker
}

func TestALostReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, l, redis := lossy(t)
		l.Once("fence_admit", link.LoseReply)
		require.NoError(t, g.Admit(t.Context(), invoice, 5))
		require.Equal(t, 2, l.Count("fence_admit"))

		l.Once("fence_admit", link.LoseReply)
		requireStale(t, g.Admit(t.Context(), invoice, 4), invoice, 4, 5)

		l.Once("fence_forget", link.LoseReply)
		require.NoError(t, g.Forget(t.Context(), invoice, 5))
		require.Equal(t, 2, l.Count("fence_forget"))
		require.Zero(t, number(t, redis, "EXISTS", invoiceKey))
	})
}

// A hold that comes while a call is repeated is not undone by the repetition.
func TestAGreaterFenceBetweenACallAndItsRepetition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, l, redis := lossy(t)
		successor := newRedis(t, redis)
		for _, call := range []struct {
			script string
			run    func(context.Context, string, int64) error
			fence  int64
		}{
			{"fence_admit", g.Admit, 5},
			{"fence_forget", g.Forget, 7},
		} {
			l.Once(call.script, link.LoseReply)
			ended := make(chan error)
			go func() { ended <- call.run(t.Context(), invoice, call.fence) }()
			synctest.Wait() // in the pause, at least 16 ms
			require.Equal(t, 1, l.Count(call.script))
			require.NoError(t, successor.Admit(t.Context(), invoice, call.fence+1))
			requireStale(t, <-ended, invoice, call.fence, call.fence+1)
			require.Equal(t, call.fence+1, number(t, redis, "HGET", invoiceKey, "fence"))
		}
	})
}

func TestNothingIsAdmittedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, l, _ := lossy(t)
		l.Cut()
		begun := time.Now()
		err := g.Admit(t.Context(), invoice, 5)
		require.Error(t, err)
		require.NotErrorIs(t, err, fence.ErrStale)
		require.LessOrEqual(t, time.Since(begun), 10*time.Second+3*time.Second)
	})
}

func TestTheStatusesOfTheHeadersAreThoseThatGoKnows(t *testing.T) {
	t.Parallel()
	got := make(map[string][]string)
	for _, s := range composed.Library().Scripts() {
		for _, r := range s.Returns {
			if strings.HasPrefix(s.Name, "fence_") {
				got[s.Name] = append(got[s.Name], r.Status)
			}
		}
		slices.Sort(got[s.Name])
	}
	require.Equal(t, map[string][]string{
		"fence_admit":  {"admitted", "incompatible", "stale"},
		"fence_forget": {"forgotten", "incompatible", "stale"},
	}, got)
}
