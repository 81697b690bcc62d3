package contender

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// published is what a library for another language, or one that cannot be called alone, says that it
// sends. It is written anew here, and sent by rueidis.
type published struct {
	acquire *rueidis.Lua
	// release is given what was granted. Default: ZREM of that.
	release *rueidis.Lua
	// keys and args are those of a name and of a claim's id.
	keys func(name, id string) []string
	args func(id string) []string
	// fill makes what must be there before the first call.
	fill func(redis rueidis.Client) []rueidis.Completed
}

func (p published) contender(name, how string) Contender {
	c := Contender{Name: name, How: how, Over: p.over, Open: func(addr string) (Locker, error) {
		redis, err := rueidis.NewClient(Option(addr))
		if err != nil {
			return nil, err
		}
		return p.over(redis)
	}}
	if p.release == nil {
		c.Plain = []string{"zrem"}
	}
	return c
}

func (p published) over(redis rueidis.Client) (Locker, error) {
	if p.fill != nil {
		for _, result := range redis.DoMulti(context.Background(), p.fill(redis)...) {
			if err := result.Error(); err != nil {
				redis.Close()
				return nil, err
			}
		}
	}
	return publishedLocker{p, redis}, nil
}

type publishedLocker struct {
	published

	redis rueidis.Client
}

var claims atomic.Int64

// Lock tries each 10 ms, as redis-semaphore does. The others leave waiting to the caller.
func (l publishedLocker) Lock(ctx context.Context, name string) (func() error, error) {
	id := fmt.Sprintf("f47ac10b-58cc-4372-a567-%012d", claims.Add(1)) // as long as a UUID
	keys := l.keys(name, id)
	for {
		answer, err := l.acquire.Exec(ctx, l.redis, keys, l.args(id)).ToAny()
		if err != nil && !rueidis.IsRedisNil(err) {
			return nil, err
		}
		if got := granted(answer, id); got != "" {
			return func() error { return l.unlock(keys, got) }, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// granted is what a claim has: its own id where the answer begins with 1, or a resource; "" for nothing.
func granted(answer any, id string) string {
	switch a := answer.(type) {
	case []any:
		return granted(a[0], id)
	case int64:
		if a == 1 {
			return id
		}
	case string:
		return a
	}
	return ""
}

func (l publishedLocker) unlock(keys []string, got string) error {
	ctx := context.Background()
	if l.release == nil {
		return l.redis.Do(ctx, l.redis.B().Zrem().Key(keys[0]).Member(got).Build()).Error()
	}
	return l.release.Exec(ctx, l.redis, keys, []string{got, ttl}).Error()
}

func (l publishedLocker) Close() { l.redis.Close() }

var capacity = strconv.Itoa(Capacity)

// ttl is how long a permit is kept, in seconds: the default of redis-semaphore.
const ttl = "10"

// redisSemaphore is Semaphore of npm's redis-semaphore.
var redisSemaphore = published{
	acquire: rueidis.NewLuaScript(`
local limit, id, timeout, now = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('zremrangebyscore', KEYS[1], '-inf', now - timeout)
if redis.call('zcard', KEYS[1]) >= limit then return 0 end
redis.call('zadd', KEYS[1], now, id)
redis.call('pexpire', KEYS[1], timeout)
return 1`),
	keys: func(name, _ string) []string { return []string{"semaphore:" + name} },
	args: func(id string) []string {
		return []string{capacity, id, ttl + "000", strconv.FormatInt(time.Now().UnixMilli(), 10)}
	},
}

// asynq is the semaphore of x/rate of hibiken/asynq.
var asynq = published{
	acquire: rueidis.NewLuaScript(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', tonumber(ARGV[2]) - 1)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
return 1`),
	keys: func(name, _ string) []string { return []string{"asynq:sema:" + name} },
	args: func(id string) []string {
		now := time.Now()
		return []string{
			capacity, strconv.FormatInt(now.Unix(), 10), strconv.FormatInt(now.Add(10*time.Second).Unix(), 10), id,
		}
	},
}

// counting is a semaphore as docs/parity.md has it under B: it goes by the server's clock, each holder has a
// key of its own, and each call drops who has expired and says how many hold.
var counting = published{
	acquire: rueidis.NewLuaScript(`
local t = redis.call('TIME')
local now, ttl = t[1] + t[2] / 1000000, tonumber(ARGV[3])
local expired = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ttl)
local held = redis.call('ZCARD', KEYS[1])
if held >= tonumber(ARGV[2]) then return {0, 'capacity_full', held, expired} end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('SETEX', KEYS[2], ttl, '1')
return {1, 'acquired', held + 1, expired}`),
	release: rueidis.NewLuaScript(`
local t = redis.call('TIME')
local expired = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', t[1] + t[2] / 1000000 - tonumber(ARGV[2]))
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return {0, 'not_held', redis.call('ZCARD', KEYS[1]), expired} end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return {1, 'released', redis.call('ZCARD', KEYS[1]), expired}`),
	keys: func(name, id string) []string { return []string{"counting:" + name, "counting:" + name + ":" + id} },
	args: func(id string) []string { return []string{id, capacity, ttl} },
}

// linked is a pool as docs/parity.md has it under D: what is free is a doubly linked list in a hash, "before||after||expiry",
// between two pointers, and what is taken has a key of its own.
var linked = published{
	acquire: rueidis.NewLuaScript(`
local item = redis.call('GET', KEYS[2])
if not item or item == '' then return false end
local before, after, expiry = string.match(redis.call('HGET', KEYS[1], item), '(.*)||(.*)||(.*)')
if redis.call('EXISTS', 'pool:' .. item) > 0 then return redis.error_reply('a free one is taken') end
if after == '' then
  redis.call('SET', KEYS[3], '')
else
  local _, next, its = string.match(redis.call('HGET', KEYS[1], after), '(.*)||(.*)||(.*)')
  redis.call('HSET', KEYS[1], after, '||' .. next .. '||' .. its)
end
redis.call('SET', KEYS[2], after)
redis.call('HSET', KEYS[1], item, '#ALLOCATED||#ALLOCATED||' .. expiry)
redis.call('SET', 'pool:' .. item, '1', 'EX', ARGV[1])
return item`),
	release: rueidis.NewLuaScript(`
local item = ARGV[1]
if redis.call('DEL', 'pool:' .. item) == 0 then return 0 end
local head, tail = redis.call('GET', KEYS[2]), redis.call('GET', KEYS[3])
local _, _, expiry = string.match(redis.call('HGET', KEYS[1], item), '(.*)||(.*)||(.*)')
redis.call('HSET', KEYS[1], item, tail .. '||||' .. expiry)
if tail == '' or head == '' then
  redis.call('SET', KEYS[2], item)
else
  local before, _, its = string.match(redis.call('HGET', KEYS[1], tail), '(.*)||(.*)||(.*)')
  redis.call('HSET', KEYS[1], tail, before .. '||' .. item .. '||' .. its)
end
redis.call('SET', KEYS[3], item)
return 1`),
	keys: func(string, string) []string { return []string{"pool|pool", "pool|pool|head", "pool|pool|tail"} },
	args: func(string) []string { return []string{"120"} },
	fill: func(redis rueidis.Client) (all []rueidis.Completed) {
		items := Resources(Size)
		for i, item := range items {
			before, after := "", ""
			if i > 0 {
				before = items[i-1]
			}
			if i < Size-1 {
				after = items[i+1]
			}
			value := before + "||" + after + "||-1"
			all = append(all, redis.B().Hset().Key("pool|pool").FieldValue().FieldValue(item, value).Build())
		}
		return append(all, redis.B().Set().Key("pool|pool|head").Value(items[0]).Build(),
			redis.B().Set().Key("pool|pool|tail").Value(items[Size-1]).Build())
	},
}
