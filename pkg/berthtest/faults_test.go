package berthtest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// margin is what a holder gives up of its lease: 2 ms and 1 %.
const margin = 62 * time.Millisecond

// outages are the two ways in which a server is away.
var outages = map[string]func(*berthtest.Server, time.Duration){
	"outage": (*berthtest.Server).Outage,
	"hang":   (*berthtest.Server).Hang,
}

// inOutages runs a test in virtual time for each of them.
func inOutages(t *testing.T, test func(t *testing.T, server *berthtest.Server, away func(time.Duration))) {
	t.Helper()
	for name, away := range outages {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *berthtest.Server) {
				test(t, server, func(d time.Duration) { away(server, d) })
			})
		})
	}
}

// The bound that docs/operations.md and the package's page give.
func TestAnOutageOfTwoFifthsOfTheLeaseLosesNothingWheneverItBegins(t *testing.T) {
	t.Parallel()
	for name, away := range outages {
		for _, lease := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second} {
			t.Run(fmt.Sprint(name, " ", lease), func(t *testing.T) {
				inBubble(t, func(t *testing.T, server *berthtest.Server) {
					ctx := context.Background()
					locks := qlock.New(server.Node(node.Config{Lease: lease}), qlock.Config{Lease: lease})
					lock := must(locks.Lock(ctx, "order:7", nil))(t)
					for begins := range 20 {
						pass(lease/3*10 + lease/60*time.Duration(begins)) // so that it begins anywhere between two renewals
						away(server, lease*2/5)
						pass(2 * lease)
						require.NoError(t, lock.Err(), "outage %d", begins)
					}
				})
			})
		}
	}
}

// With a subscription open, a heartbeat due in the middle, and a claim that waits.
func TestAnOutageShorterThanTheLeaseLosesNothing(t *testing.T) {
	inOutages(t, func(t *testing.T, server *berthtest.Server, away func(time.Duration)) {
		ctx := context.Background()
		a, b := start(t, server), start(t, server)
		lock := a.lock(ctx, nil)
		next := begin(t, func() (*qlock.Lock, error) { return b.locks.Lock(ctx, "order:7", nil) })
		pass(time.Second)
		away(4 * time.Second)
		pass(time.Minute)
		require.NoError(t, lock.Err())
		released := time.Now()
		require.NoError(t, lock.Release(ctx))
		next()
		require.Equal(t, released, time.Now(), "by a push, for which it has subscribed again")
	})
}

func TestInAnOutageLongerThanTheLeaseTheHolderLearnsFirst(t *testing.T) {
	inOutages(t, func(t *testing.T, server *berthtest.Server, away func(time.Duration)) {
		ctx := context.Background()
		a, b := start(t, server), start(t, server)
		began := time.Now()
		lock := a.lock(ctx, nil)
		next := begin(t, func() (*qlock.Lock, error) { return b.locks.Lock(ctx, "order:7", nil) })
		pass(time.Second)
		away(20 * time.Second)
		<-lock.Done()
		require.Equal(t, lease-margin, time.Since(began))
		require.ErrorIs(t, lock.Err(), berth.ErrLost)
		got := next()
		require.GreaterOrEqual(t, time.Since(began), 21*time.Second, "the server was away")
		require.Less(t, time.Since(began), 21*time.Second+lease/3)
		require.Greater(t, got.Fence(), lock.Fence())
		server.Lose(got) // all goes on
		b.lock(ctx, nil)
	})
}

// Two that overlap end with the later end; one of 0 is a break of all connections.
func TestOutagesOverlap(t *testing.T) {
	inOutages(t, func(t *testing.T, server *berthtest.Server, away func(time.Duration)) {
		redis := server.Client()
		set(t, redis, "k", "v")
		away(3 * time.Second)
		away(time.Second)
		pass(2 * time.Second)
		away(500 * time.Millisecond)
		answers := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			return redis.Do(ctx, redis.B().Get().Key("k").Build()).Error() == nil
		}
		require.False(t, answers())
		pass(700 * time.Millisecond) // 2.8 s, and the look takes 100 ms
		require.False(t, answers())
		pass(100 * time.Millisecond)
		require.True(t, answers())
		away(0)
		pass(0)
		require.True(t, exists(t, redis, "k"))
	})
}

func TestAFailoverForgetsWhatWasWrittenSince(t *testing.T) {
	inBoth(t, func(t *testing.T, server *berthtest.Server) {
		ctx := context.Background()
		a, b := start(t, server, "10.0.0.1:3128"), start(t, server)
		kept, oldProxy := a.lock(ctx, nil), a.proxy()
		require.NoError(t, oldProxy.Release(ctx))
		redis := server.Client()
		every := rueidis.NewLuaScript(`
			redis.call("HSET", KEYS[1], "f", "1")
			redis.call("SADD", KEYS[2], "a", "b")
			redis.call("RPUSH", KEYS[3], "a", "b", "a")
			redis.call("ZADD", KEYS[4], "19325186044416", "a", "-1.5", "b")
			redis.call("SET", KEYS[5], "\0\255", "PX", 3600000)`)
		keys := []string{"{k}h", "{k}set", "{k}l", "{k}z", "{k}s"}
		_ = every.Exec(ctx, redis, keys, nil)
		dump := func() any {
			redis := server.Client() // connected
			all, err := rueidis.NewLuaScript(`return {redis.call("HGETALL", KEYS[1]), redis.call("SMEMBERS", KEYS[2]),
				redis.call("LRANGE", KEYS[3], 0, -1), redis.call("ZRANGE", KEYS[4], 0, -1, "WITHSCORES"),
				redis.call("GET", KEYS[5])}`).Exec(ctx, redis, keys, nil).ToAny()
			require.NoError(t, err)
			return all
		}
		before := server.Snapshot()
		had, expiry := dump(), pexpiretime(t, redis, keys[4])

		lost, lostProxy := a.permit(&semaphore.AcquireOptions{Weight: 2}), a.proxy()
		first := begin(t, func() (*semaphore.Permit, error) {
			return b.gpu.Acquire(ctx, &semaphore.AcquireOptions{Weight: 2})
		})
		<-b.queued
		set(t, redis, "late", "v")
		require.NoError(t, redis.Do(ctx, redis.B().Del().Key(keys...).Build()).Error())
		server.Failover(before)

		require.False(t, exists(t, redis, "late"))
		require.Equal(t, had, dump())
		require.InDelta(t, expiry, pexpiretime(t, redis, keys[4]), 60_000, "of an hour; the embedded server counts from when it is told")
		require.NoError(t, kept.Renew(ctx))
		require.ErrorIs(t, lost.Renew(ctx), berth.ErrLost)
		require.ErrorIs(t, lostProxy.Renew(ctx), berth.ErrLost)
		require.Greater(t, first().Fence(), lost.Fence(), "it was restored, and fences rise")
		require.Greater(t, a.proxy().Fence(), lostProxy.Fence())

		server.Failover(berthtest.Snapshot{}) // a restart without data
		require.ErrorIs(t, kept.Renew(ctx), berth.ErrLost)
		require.False(t, exists(t, redis, keys[0]))
		require.Greater(t, a.lock(ctx, nil).Fence(), kept.Fence())
	})
}

func pexpiretime(t *testing.T, redis rueidis.Client, key string) int64 {
	t.Helper()
	return must(redis.Do(context.Background(), redis.B().Pexpiretime().Key(key).Build()).AsInt64())(t)
}

// A failover within an outage does not end it.
func TestAFailoverWithinAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, server *berthtest.Server) {
		redis := server.Client()
		set(t, redis, "k", "v")
		server.Outage(time.Second)
		server.Failover(berthtest.Snapshot{})
		pass(time.Second - time.Millisecond)
		require.Error(t, redis.Do(context.Background(), redis.B().Get().Key("k").Build()).Error())
		pass(time.Millisecond)
		require.False(t, exists(t, redis, "k"))
	})
}

func TestADelayedReplyIsLateByJustThat(t *testing.T) {
	inBubble(t, func(t *testing.T, server *berthtest.Server) {
		ctx := context.Background()
		a, b := start(t, server), start(t, server)
		require.NoError(t, a.permit(nil).Release(ctx)) // connects, and has the server know the script
		server.DelayReplies(700 * time.Millisecond)
		began := time.Now()
		permit := a.permit(nil)
		require.Equal(t, 700*time.Millisecond, time.Since(began))
		require.InDelta(t, lease-margin-700*time.Millisecond, permit.Left(), float64(time.Millisecond), "counted from when it was sent")
		server.DelayReplies(0)
		require.NoError(t, permit.Release(ctx))
		require.Equal(t, 700*time.Millisecond, time.Since(began))

		server.DelayReplies(4 * time.Second) // more than CallTimeout
		call := begin(t, func() (*semaphore.Permit, error) { return b.gpu.TryAcquire(ctx, nil) })
		pass(3 * time.Second)
		server.DelayReplies(0)
		require.NoError(t, call().Err())
		a.requireHeld(1)
	})
}

// The script has run each time, and is sent again: it finds the same claim.
func TestADroppedReplyIsThatOfAScriptThatRan(t *testing.T) {
	inBoth(t, func(t *testing.T, server *berthtest.Server) {
		ctx := context.Background()
		redis := server.Client()
		count := rueidis.NewLuaScript(`return redis.call("INCR", KEYS[1])`)
		require.NoError(t, count.Exec(ctx, redis, []string{"n"}, nil).Error())
		for name, n := range map[string]int{"one": 1, "three": 3} {
			key := "{" + name + "}"
			server.DropReplies(n)
			for i := range n {
				require.False(t, exists(t, redis, "none"), "what is no script is answered")
				require.Error(t, count.Exec(ctx, redis, []string{key}, nil).Error(), "%s: %d", name, i)
			}
			ran := must(count.Exec(ctx, redis, []string{key}, nil).AsInt64())(t)
			require.EqualValues(t, n+1, ran, "each ran, and only so many")
		}

		server.Failover(berthtest.Snapshot{}) // it knows no script now
		redis = server.Client()               // connected
		server.DropReplies(1)
		require.Error(t, count.Exec(ctx, redis, []string{"m"}, nil).Error())
		ran := must(redis.Do(ctx, redis.B().Get().Key("m").Build()).AsInt64())(t)
		require.EqualValues(t, 1, ran)

		set(t, redis, "{n}text", "message") // which looks like what is published
		require.NoError(t, redis.Do(ctx, redis.B().Get().Key("{n}text").Build()).Error())
		server.DropReplies(1)
		require.Error(t, count.Exec(ctx, redis, []string{"{n}"}, nil).Error())

		a := start(t, server)
		server.DropReplies(2)
		permit := a.permit(nil)
		a.requireHeld(1)
		server.DropReplies(2)
		require.NoError(t, permit.Release(ctx))
		server.DropReplies(100)
		server.DropReplies(0)
		require.NoError(t, count.Exec(ctx, redis, []string{"n"}, nil).Error())
	})
}

// On a connection on which many calls are under way some are lost, and none gets the
// reply of another.
func TestNoReplyIsTakenForAnother(t *testing.T) {
	inBoth(t, func(t *testing.T, server *berthtest.Server) {
		redis := server.Client()
		echo := rueidis.NewLuaScript(`return ARGV[1]`)
		require.NoError(t, echo.Exec(context.Background(), redis, nil, []string{""}).Error())
		server.DelayReplies(time.Millisecond)
		server.DropReplies(5)
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				said := "message" + string(rune('a'+i))
				got, err := echo.Exec(context.Background(), redis, nil, []string{said}).ToString()
				if err == nil && got != said {
					t.Errorf("said %q, got %q", said, got)
				}
			})
		}
		all.Wait()
		server.DropReplies(0)
		require.Equal(t, "after", must(echo.Exec(context.Background(), redis, nil, []string{"after"}).ToString())(t))
	})
}

func TestTwoServersDoNotTouchEachOther(t *testing.T) {
	inBoth(t, func(t *testing.T, server *berthtest.Server) {
		other := berthtest.New(t)
		a, b := start(t, server), start(t, other)
		held := b.permit(nil)
		mine := a.permit(nil)
		before := server.Snapshot()
		server.DropReplies(5)
		server.DelayReplies(time.Hour)
		server.Hang(200 * time.Millisecond)
		server.Outage(200 * time.Millisecond)
		server.Failover(before)
		require.NoError(t, held.Renew(context.Background()))
		other.Lose(held)
		require.NoError(t, mine.Err())
		require.ErrorIs(t, held.Err(), berth.ErrLost)
		server.DropReplies(0)
		server.DelayReplies(0)
	})
}

// The node is closed first, as a program's is: the calls that do not get through end.
func TestCloseDuringAnOutage(t *testing.T) {
	inOutages(t, func(t *testing.T, server *berthtest.Server, away func(time.Duration)) {
		a := start(t, server)
		permit := a.permit(nil)
		began := time.Now()
		away(berth.Forever)
		require.ErrorIs(t, a.node.Close(context.Background()), berth.ErrUnavailable)
		require.ErrorIs(t, permit.Err(), berth.ErrReleased)
		require.LessOrEqual(t, time.Since(began), 15*time.Second)
	})
}

// The end of a bubble is the check, and goleak: it fails if one goroutine is left.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*berthtest.Server){
		"none":                      func(*berthtest.Server) {},
		"an outage":                 func(s *berthtest.Server) { s.Outage(time.Second) },
		"an outage without end":     func(s *berthtest.Server) { s.Outage(berth.Forever) },
		"a hang":                    func(s *berthtest.Server) { s.Hang(time.Second) },
		"a hang without end":        func(s *berthtest.Server) { s.Hang(berth.Forever) },
		"a failover":                func(s *berthtest.Server) { s.Failover(s.Snapshot()) },
		"a failover while it hangs": func(s *berthtest.Server) { s.Hang(time.Minute); s.Failover(s.Snapshot()) },
		"late replies":              func(s *berthtest.Server) { s.DelayReplies(time.Hour) },
		"dropped replies":           func(s *berthtest.Server) { s.DropReplies(1 << 30) },
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, server *berthtest.Server) {
				redis := server.Client()
				began := make(chan struct{})
				go func() {
					_ = redis.Receive(context.Background(), redis.B().Subscribe().Channel("c").Build(), func(rueidis.PubSubMessage) {})
				}()
				script := rueidis.NewLuaScript(`return 1`)
				go func() {
					_ = script.Exec(context.Background(), redis, nil, nil)
					close(began)
					_ = redis.Do(context.Background(), redis.B().Blpop().Key("list").Timeout(0).Build())
				}()
				<-began
				fault(server)
				go func() { _ = script.Exec(context.Background(), redis, nil, nil) }()
			})
		})
	}
}

// recorder is a test that notes that it was ended.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Fatal(args ...any) { r.Fatalf("%v", args) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
	panic(r)
}

func TestMisuseEndsTheTest(t *testing.T) {
	inBubble(t, func(t *testing.T, other *berthtest.Server) {
		ctx := context.Background()
		r := &recorder{TB: t}
		server := berthtest.New(r)
		redis := server.Client()
		a, b := start(t, server), start(t, other)
		permit, elsewhere := a.permit(nil), b.permit(nil)
		for name, misuse := range map[string]func(){
			"a hold of another server":     func() { server.Lose(elsewhere) },
			"a name that is not held":      func() { server.LoseAll("none") },
			"a snapshot of another server": func() { server.Failover(other.Snapshot()) },
			"a hold that has ended":        func() { server.Lose(permit) },
			"a key that cannot be copied":  func() { server.Snapshot() },
			"a node that cannot be":        func() { server.Node(node.Config{Lease: time.Microsecond}) },
		} {
			if name == "a hold that has ended" {
				_ = permit.Release(ctx)
			}
			_ = redis.Do(ctx, redis.B().Xadd().Key("stream").Id("*").FieldValue().FieldValue("f", "v").Build())
			require.PanicsWithValue(t, r, misuse, name)
		}
		require.Len(t, r.said, 6)
		own := a.permit(nil)
		server.Outage(time.Second)
		require.PanicsWithValue(t, r, func() { server.Client() })
		require.PanicsWithValue(t, r, func() { server.Lose(own) })
		require.Contains(t, r.said[7], "during an outage")
	})
}
