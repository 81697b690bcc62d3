package scriptkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestServerErrorsAreExplained(t *testing.T) {
	t.Parallel()
	const acl = "the ACL of this user lacks something that the script needs (EVALSHA, EVAL and what it calls: HGET, HSET): "
	tests := []struct{ name, answer, want string }{
		{
			"a command that the user may not call",
			"NOPERM this user has no permissions to run the 'evalsha' command",
			acl + "NOPERM this user has no permissions to run the 'evalsha' command",
		},
		{
			"a command inside the script, Redis 7.0",
			"ERR The user executing the script can't run this command or subcommand script: 12b6, on @user_script:3.",
			acl + "The user executing the script can't run this command or subcommand (line 3)",
		},
		{
			"a key inside the script, Redis 7.2",
			"ERR ACL failure in script: No permissions to access a key script: 12b6, on @user_script:3.",
			acl + "ACL failure in script: No permissions to access a key (line 3)",
		},
		{
			"a full server",
			"OOM command not allowed when used memory > 'maxmemory'. script: 12b6, on @user_script:1.",
			"the server is full: OOM command not allowed when used memory > 'maxmemory' (line 1)",
		},
		{
			"a cluster behind a client that does not follow it",
			"MOVED 866 10.0.0.1:6379",
			"the server belongs to a Redis Cluster, and this client does not follow it further: MOVED 866 10.0.0.1:6379",
		},
		{
			"a server without scripts",
			"ERR unknown command 'EVALSHA', with args beginning with: '12b6' '1' '{gpu}:state' 'secret' ",
			"incompatible: needs Redis 7 or Valkey 7.2: unknown command 'EVALSHA'",
		},
		{
			"a server without a script's command",
			"ERR Unknown Redis command called from script script: 12b6, on @user_script:1.",
			"incompatible: needs Redis 7 or Valkey 7.2: Unknown Redis command called from script (line 1)",
		},
		{
			"an error of the script",
			"ERR user_script:7: attempt to compare nil with number script: 12b6, on @user_script:7.",
			"user_script:7: attempt to compare nil with number (line 7)",
		},
		{"any other", "ERR This Redis command is not allowed from script", "This Redis command is not allowed from script"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t, answers("-"+tt.answer+"\r\n"))
				_, err := run(t.Context(), NewRunner(server.client(t), Options{}), simple(t), Bounded)
				require.EqualError(t, err, `berth: script s on "{gpu}:state": `+tt.want)
				var original *rueidis.RedisError
				require.ErrorAs(t, err, &original)
				require.NotContains(t, err.Error(), "secret")
			})
		})
	}
}

func TestOnlyAServerThatLacksACommandIsIncompatible(t *testing.T) {
	t.Parallel()
	for answer, incompatible := range map[string]bool{
		"-ERR unknown command 'EVALSHA'\r\n":                true,
		"-ERR Unknown Redis command called from script\r\n": true,
		"-ERR wrong number of arguments\r\n":                false,
		"-NOPERM no\r\n":                                    false,
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newFakeServer(t, answers(answer))
			_, err := run(t.Context(), NewRunner(server.client(t), Options{}), simple(t), Bounded)
			require.Equal(t, incompatible, errors.Is(err, berth.ErrIncompatible), answer)
		})
	}
}

func TestAKeyOfAnotherTypeIsNamed(t *testing.T) {
	t.Parallel()
	s := script(Script{Keys: []Key{{Name: "state", Type: "hash"}, {Name: "line", Type: "zset"}, {Name: "free", Type: "list"}}},
		`redis.call("HGET", KEYS[1], "f") redis.call("ZSCORE", KEYS[2], "m") redis.call("LLEN", KEYS[3]) return {"ok"}`)
	synctest.Test(t, func(t *testing.T) {
		client, server := embedded(t)
		require.NoError(t, server.Set("{gpu}:line", "not ours"))
		_, err := NewRunner(client, Options{}).Run(t.Context(), s, Bounded, []string{"{gpu}:state", "{gpu}:line", "{gpu}:free"}, nil)
		require.EqualError(t, err, `berth: script s on "{gpu}:state": the key "{gpu}:line" (line) holds a string instead of a zset`)
		var original *rueidis.RedisError
		require.ErrorAs(t, err, &original)
	})
}

func TestAKeyOfAnotherTypeThatMayNotBeAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, func(_ int, command []string) string {
			if command[0] == "TYPE" {
				return "-NOPERM this user has no permissions to run the 'type' command\r\n"
			}
			return "-WRONGTYPE Operation against a key holding the wrong kind of value script: 12b6, on @user_script:1.\r\n"
		})
		_, err := run(t.Context(), NewRunner(server.client(t), Options{}), simple(t), Bounded)
		require.EqualError(t, err, `berth: script s on "{gpu}:state": `+
			`a key holds something of another type: the script wants "{gpu}:state" (state) a hash`)
		require.Equal(t, []string{"EVAL", "TYPE"}, server.seen())
	})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, tt := range map[string]struct {
		err  error
		want verdict
	}{
		"no connection":           {dial(syscall.ECONNREFUSED), verdict{repeat: true}},
		"no connection in time":   {dial(context.DeadlineExceeded), verdict{repeat: true}},
		"no node for the slot":    {rueidis.ErrNoSlot, verdict{repeat: true}},
		"a connection that broke": {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, verdict{repeat: true, mayHaveRun: true}},
		"an answer cut short":     {io.ErrUnexpectedEOF, verdict{repeat: true, mayHaveRun: true}},
		"no answer in time":       {context.DeadlineExceeded, verdict{repeat: true, mayHaveRun: true}},
		"a closed connection":     {rueidis.ErrClosing, verdict{repeat: true, mayHaveRun: true}},
		"a client without RESP3":  {fmt.Errorf("CLIENT: %w", rueidis.ErrNoCache), verdict{}},
		"a client without nodes":  {rueidis.ErrNoAddr, verdict{}},
		"a recycled client":       {rueidis.ErrDedicatedClientRecycled, verdict{}},
	} {
		require.Equal(t, tt.want, NewRunner(nil, Options{}).judge(tt.err, time.Now()), name)
	}
}

func TestAServerThatCannotBeReachedLeavesNoDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		client := connect(t, func() (net.Conn, error) { return nil, refused })
		_, err := run(t.Context(), NewRunner(client, Options{Retry: berth.Retry{Attempts: 5}}), simple(t), Bounded)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.EqualError(t, err, `berth: script s on "{gpu}:state": dial tcp: connection refused (5 attempts)`)
		require.False(t, MaybeRan(err))
		require.True(t, Repeatable(err))
	})
}

func TestAnAttemptsEndDoesNotLookLikeTheCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
		client := connect(t, func() (net.Conn, error) { return nil, slow })
		_, err := run(t.Context(), NewRunner(client, Options{}), simple(t), Bounded)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "dial tcp: no answer in time")
	})
}

func TestErrorsThatAreNotOursAreNeither(t *testing.T) {
	t.Parallel()
	require.False(t, Repeatable(nil))
	require.False(t, MaybeRan(errors.New("x")))
	wrapped := fmt.Errorf("acquire: %w", &Error{Script: "s", MaybeRan: true, Repeatable: true, Err: io.EOF})
	require.True(t, Repeatable(wrapped))
	require.True(t, MaybeRan(wrapped))
	require.ErrorIs(t, wrapped, io.EOF)
}
