package contender

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// The bare scripts run the commands of an uncontended lock and release of Berth, on a key
// of the same kind with values of the same sizes, all given as text and with nothing
// decided in between: no lock could do those commands in less time. A test compares them
// with what the product runs. KEYS[1] is the state; ARGV[1] what it is while the name is held,
// and ARGV[2] while it is idle.
const (
	bareAcquire = `redis.call("TIME")
redis.call("MGET", KEYS[1])
redis.call("SET", KEYS[1], ARGV[1], "PX", "70000")
return {"ok"}`

	bareRelease = `redis.call("MGET", KEYS[1])
redis.call("SET", KEYS[1], ARGV[2], "KEEPTTL")
return {"ok"}`

	// A claim, a record and a fence as long as those of Berth.
	bareClaim  = "0152033ead0eaead.dc17m3pksdudp4si5a2g"
	bareTail   = "1 - r 5000 5000 0 0 0:15:host/program/79670:"
	bareRecord = "h 0152033ead0eaead 1795324687243 1795324687243488 1795324687243 0 1 xs1h0t6kQ-o r 5000 5000 0 0 0:15:host/program/79670:"
	bareValues = "2 1795324687243488 1795324757000 1795324692243 1795324687243 1795324687243 1 1 0 0 0 0 0 0 0"
	bareFence  = "1795324687243488"
)

// Bare is the limit for a lock with scripts like Berth's. It locks nothing.
var Bare = Contender{Name: "bare", How: "two EVALSHA with the commands of Berth's scripts and no logic", Open: openBare}

type bareLocker struct {
	redis            rueidis.Client
	acquire, release string
	args             []string
	known            sync.Map // name -> nothing
}

func openBare(addr string) (Locker, error) {
	redis, err := rueidis.NewClient(Option(addr))
	if err != nil {
		return nil, err
	}
	l := &bareLocker{redis: redis, args: []string{
		bareFence + " " + bareFence[:13] + " " + bareClaim + " " + bareTail, bareFence,
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
	err := l.redis.Do(ctx, l.redis.B().Set().Key(state).Value(bareFence).Px(time.Hour).Build()).Error()
	if err == nil {
		l.known.Store(name, nil)
	}
	return err
}

func (l *bareLocker) Lock(ctx context.Context, name string) (func() error, error) {
	keys := bareKeys(name)[:1]
	if err := l.meet(ctx, name, keys[0]); err != nil {
		return nil, err
	}
	if err := runBare(ctx, l.redis, l.acquire, keys, l.args); err != nil {
		return nil, err
	}
	return func() error { return runBare(context.Background(), l.redis, l.release, keys, l.args) }, nil
}

func (l *bareLocker) Close() { l.redis.Close() }
