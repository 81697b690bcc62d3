package scriptkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
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
	const old = "incompatible: needs Redis 7 or Valkey 7.2: "
	for answer, want := range map[string]string{
		// A command that the user may not call.
		"NOPERM this user has no permissions to run the 'evalsha' command": acl +
			"NOPERM this user has no permissions to run the 'evalsha' command",
		// A command inside the script, Redis 7.0.
		"ERR The user executing the script can't run this command or subcommand script: 12b6, on @user_script:3.": acl +
			"The user executing the script can't run this command or subcommand (line 3)",
		// A key inside the script, Redis 7.2.
		"ERR ACL failure in script: No permissions to access a key script: 12b6, on @user_script:3.": acl +
			"ACL failure in script: No permissions to access a key (line 3)",
		"OOM command not allowed when used memory > 'maxmemory'. script: 12b6, on @user_script:1.": "the server is full: " +
			"OOM command not allowed when used memory > 'maxmemory' (line 1)",
		"MOVED 866 10.0.0.1:6379": "the server belongs to a Redis Cluster, and this client does not follow it further: " +
			"MOVED 866 10.0.0.1:6379",
		"ERR unknown command 'EVALSHA', with args beginning with: '12b6' '1' '{gpu}:state' 'secret' ": old +
			"unknown command 'EVALSHA'",
		"ERR Unknown Redis command called from script script: 12b6, on @user_script:1.": old +
			"Unknown Redis command called from script (line 1)",
		// An error of the script.
		"ERR user_script:7: attempt to compare nil with number script: 12b6, on @user_script:7.": "" +
			"user_script:7: attempt to compare nil with number (line 7)",
		"ERR user_script:3: a mistake script: f_1, on @u":   "user_script:3: a mistake script: f_1, on @u",
		"ERR This Redis command is not allowed from script": "This Redis command is not allowed from script",
		"BUSYGROUP no such answer to a script":              "BUSYGROUP no such answer to a script", // it is not BUSY
		"NOAUTH Authentication required.":                   "NOAUTH Authentication required.",
		"WRONGPASS another password":                        "WRONGPASS another password",
	} {
		bubbleOf(t, answer, func(t *testing.T) {
			server := newFakeServer(t, answers("-"+answer+"\r\n"))
			_, err := run(t.Context(), NewRunner(server.client(t), exact()), simple(t), UntilDone)
			require.EqualError(t, err, `berth: script s on "{gpu}:state": `+want)
			var original *rueidis.RedisError
			require.ErrorAs(t, err, &original)
			require.Equal(t, strings.TrimPrefix(answer, "ERR "), original.Error())
			require.NotContains(t, err.Error(), "secret")
			require.NotErrorIs(t, err, berth.ErrUnavailable)
			require.Equal(t, []string{"EVAL"}, server.seen(), "it is final")
			require.Equal(t, []bool{false, false}, []bool{MaybeRan(err), Repeatable(err)})
			require.Equal(t, strings.HasPrefix(want, "incompatible"), errors.Is(err, berth.ErrIncompatible))
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
	bubble(t, func(t *testing.T) {
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
	for says, refused := range map[string]error{
		"connection refused": syscall.ECONNREFUSED, "no answer in time": context.DeadlineExceeded,
	} {
		bubbleOf(t, says, func(t *testing.T) {
			dial := &net.OpError{Op: "dial", Net: "tcp", Err: refused}
			client := connect(t, func() (net.Conn, error) { return nil, dial })
			_, err := run(t.Context(), NewRunner(client, Options{Retry: berth.Retry{Attempts: 5}}), simple(t), Bounded)
			require.EqualError(t, err, `berth: script s on "{gpu}:state": dial tcp: `+says+" (5 attempts)")
			require.Equal(t, errors.Is(refused, syscall.ECONNREFUSED), errors.Is(err, refused), "its end is not the caller's")
			require.Equal(t, []bool{false, true}, []bool{MaybeRan(err), Repeatable(err)})
		})
	}
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

// What lets a client in may be about to be changed, so a client that was served before asks again; one that
// never was has the wrong credentials.
func TestEachRefusalTakesItsCourse(t *testing.T) {
	t.Parallel()
	for _, r := range Refusals() {
		passes := verdict{repeat: true, mayHaveRun: r.Doubt}
		for served, want := range map[bool]map[Course]verdict{
			false: {Passes: passes}, true: {Passes: passes, PassesOnceServed: passes},
		} {
			require.Equal(t, want[r.Course], refused(r.Begins+" and more", served), "%s, served %t", r.Begins, served)
			require.Equal(t, want[r.Course], refused(r.Begins, served), r.Begins)
		}
	}
}

// To be let in is not to be served, and neither is what only the client itself answers.
func TestWhoWasRefusedWasNotServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const denied = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		server := newFakeServer(t, answers("-LOADING wait\r\n", denied, table("ok", "1"), denied))
		runner := NewRunner(server.client(t), exact())
		ask := func() error { return second(run(t.Context(), runner, simple(t), Once)) }
		require.ErrorIs(t, ask(), berth.ErrUnavailable)
		require.NotErrorIs(t, ask(), berth.ErrUnavailable)
		require.NoError(t, ask())
		require.ErrorIs(t, ask(), berth.ErrUnavailable)
	})
}

// What is optional of a Read may be refused, and the Read is answered all the same.
func TestAReadIsServedOnlyWhereACommandIs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const denied = "-NOAUTH Authentication required.\r\n"
		server := newFakeServer(t, answers(denied, denied, ":1\r\n", denied))
		runner := NewRunner(server.client(t), exact())
		read := func(optional bool) error {
			hlen := Command{Verb: []string{"HLEN"}, Keys: []string{"x"}, Optional: optional}
			return second(runner.Read(t.Context(), "look", From{Unasked: true, Untimed: true}, hlen))
		}
		require.NoError(t, read(true))
		require.NotErrorIs(t, read(false), berth.ErrUnavailable)
		require.NoError(t, read(false))
		require.ErrorIs(t, read(false), berth.ErrUnavailable)
	})
}

// A limit of the library's own ends a call as CallTimeout does; the end of the
// caller's own context is the caller's, limit or not.
func TestALimitIsNobodysContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		runner := NewRunner(newFakeServer(t, answers(hang)).client(t), exact())
		for name, limited := range map[string]func() (context.Context, context.CancelFunc){
			"a limit": func() (context.Context, context.CancelFunc) { return Limit(t.Context(), time.Second) },
			"a limit in a limit": func() (context.Context, context.CancelFunc) {
				ctx, cancel := Limit(t.Context(), time.Second)
				inner, stop := Limit(ctx, time.Minute)
				return inner, func() { stop(); cancel() }
			},
			"internal": func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				return Internal(ctx), cancel
			},
		} {
			for _, mode := range []Mode{Once, Bounded, UntilDone} {
				ctx, cancel := limited()
				_, err := run(ctx, runner, simple(t), mode)
				require.ErrorIs(t, err, berth.ErrUnavailable, name)
				require.NotErrorIs(t, err, context.DeadlineExceeded, name)
				require.NotContains(t, err.Error(), "context", name)
				_, err = run(ctx, runner, simple(t), mode) // it has ended before
				require.ErrorIs(t, err, berth.ErrUnavailable, name)
				require.NotErrorIs(t, err, context.DeadlineExceeded, name)
				require.NoError(t, CallersEnd(ctx), name)
				cancel()
			}
		}
		own, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, stop := Limit(own, time.Minute)
		defer stop()
		_, err := run(ctx, runner, simple(t), Bounded)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, berth.ErrUnavailable, "nor was it answered")
		_, err = run(ctx, runner, simple(t), Bounded)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, berth.ErrUnavailable, "the server was not asked")
	})
}

// Each text stands here, too, so that none can go from Refusals unseen.
func TestWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"CLUSTERDOWN Hash slot not served",
		"LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"READONLY You can't write against a read only replica. script: 12b6, on @user_script:1.",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"NOREPLICAS Not enough good replicas to write. script: 12b6, on @user_script:1.",
		"REDIRECT 10.0.0.1:6379",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. script: 12b6, on @user_script:1.",
		"Script killed by user with SCRIPT KILL... script: 12b6, on @user_script:1.",
		"max number of clients reached",
	} {
		require.Equal(t, verdict{repeat: true}, refused(answer, false), answer)
	}
	for _, answer := range []string{hang, drop, "-LOADING wait\r\n"} {
		bubbleOf(t, answer, func(t *testing.T) {
			runner := NewRunner(newFakeServer(t, answers(answer)).client(t), exact())
			for _, mode := range []Mode{Once, Bounded} { // nobody's context has ended, and nothing looks like that
				err := second(run(t.Context(), runner, simple(t), mode))
				require.ErrorIs(t, err, berth.ErrUnavailable)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, context.Canceled)
				require.NotContains(t, err.Error(), "context")
			}
		})
	}
}
