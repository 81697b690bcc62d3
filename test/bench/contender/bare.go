package contender

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// The bare scripts run the commands of an uncontended lock and release of Berth, on keys
// of the same kinds with values of the same sizes, all given as text and with nothing
// decided in between: no lock could do those commands in less time. A test compares them
// with what the product runs. KEYS are the state and the line; ARGV[1] is the record's
// field, ARGV[2] the claim's member of the line.
const (
	bareAcquire = `redis.call("TIME")
redis.call("HMGET", KEYS[1], "fmt", "counts", "ticket", "fence", "exp", ARGV[1], "stem")
redis.call("ZADD", KEYS[2], ARGV[3], ARGV[2])
redis.call("HSET", KEYS[1], "counts", "1 1 0 0 0 0", "fence", ARGV[4], ARGV[1], ARGV[5])
redis.call("PEXPIREAT", KEYS[2], ARGV[6])
return {"ok"}`

	bareRelease = `redis.call("TIME")
redis.call("HMGET", KEYS[1], "fmt", "counts", "ticket", "fence", "exp", ARGV[1], "stem")
redis.call("ZSCORE", KEYS[2], ARGV[2])
redis.call("ZREM", KEYS[2], ARGV[2])
redis.call("HDEL", KEYS[1], ARGV[1])
redis.call("HSET", KEYS[1], "counts", "1 0 0 0 0 0")
return {"ok"}`

	// A claim, a record and a fence as long as those of Berth.
	bareClaim  = "0152033ead0eaead.dc17m3pksdudp4si5a2g"
	bareRecord = "16:0152033ead0eaeadh 1795324687243 1795324687243488 1795324687243 0 1 xs1h0t6kQ-o r 5000 5000 0 0 0:15:host/program/79670:"
	bareFence  = "1795324687243488"
)

// Bare is the limit for a lock with scripts like Berth's. It locks nothing.
var Bare = Contender{Name: "bare", How: "two EVALSHA with the commands of Berth's scripts and no logic", Open: openBare}

type bareLocker struct {
	redis            rueidis.Client
	acquire, release string
	args             []string
	expiry           time.Time
	known            sync.Map // name -> nothing
}

func openBare(addr string) (Locker, error) {
	redis, err := rueidis.NewClient(Option(addr))
	if err != nil {
		return nil, err
	}
	expiry := time.Now().Add(time.Hour)
	end := strconv.FormatInt(expiry.UnixMilli(), 10)
	l := &bareLocker{redis: redis, expiry: expiry, args: []string{
		"c:" + bareClaim, "h:" + bareClaim, end, bareFence, bareRecord, end,
	}}
	if l.acquire, err = loadBare(redis, bareAcquire); err == nil {
		l.release, err = loadBare(redis, bareRelease)
	}
	if err != nil {
		redis.Close()
		return nil, err
	}
	return l, nil
}

func loadBare(redis rueidis.Client, script string) (string, error) {
	sha, err := redis.Do(context.Background(), redis.B().ScriptLoad().Script(script).Build()).ToString()
	if err != nil {
		return "", fmt.Errorf("load a bare script: %w", err)
	}
	return sha, nil
}

func runBare(ctx context.Context, redis rueidis.Client, sha string, keys, args []string) error {
	return redis.Do(ctx, redis.B().Evalsha().Sha1(sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()).Error()
}

func bareKeys(name string) []string {
	return []string{"bench:bare:{" + name + "}:state", "bench:bare:{" + name + "}:line"}
}

// meet stores what Berth stores when a name is first used.
func (l *bareLocker) meet(ctx context.Context, name, state string) error {
	if _, ok := l.known.Load(name); ok {
		return nil
	}
	err := l.redis.Do(ctx, l.redis.B().Hset().Key(state).FieldValue().
		FieldValue("fmt", "1").FieldValue("exp", l.args[5]).Build()).Error()
	if err == nil {
		err = l.redis.Do(ctx, l.redis.B().Expireat().Key(state).Timestamp(l.expiry.Unix()).Build()).Error()
	}
	if err == nil {
		l.known.Store(name, nil)
	}
	return err
}

func (l *bareLocker) Lock(ctx context.Context, name string) (func() error, error) {
	keys := bareKeys(name)
	if err := l.meet(ctx, name, keys[0]); err != nil {
		return nil, err
	}
	if err := runBare(ctx, l.redis, l.acquire, keys, l.args); err != nil {
		return nil, err
	}
	return func() error { return runBare(context.Background(), l.redis, l.release, keys, l.args[:2]) }, nil
}

func (l *bareLocker) Close() { l.redis.Close() }
