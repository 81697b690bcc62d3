package pool

import (
	"context"
	"crypto/sha1"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// ahead is how far a clock is ahead of the server's: what the scripts have expire must
// not do so by itself.
const ahead = 24 * time.Hour

// Clock is the time for the scripts on a real server, where they read it from a key
// instead of asking TIME.
type Clock struct {
	t     testing.TB
	redis rueidis.Client
	key   string
	now   time.Time
}

// NewClock sets a clock, and forgets it when the test ends.
func NewClock(t testing.TB, redis rueidis.Client, key string) *Clock {
	t.Helper()
	c := &Clock{t: t, redis: redis, key: key, now: time.Now().Add(ahead)}
	t.Cleanup(func() { c.do("DEL", key) })
	c.Advance(0)
	return c
}

// Library are scripts that go by that clock, and have their keys expire by it.
func (c *Clock) Library(scripts compose.Scripts) *scriptkit.Library {
	redis := fmt.Sprintf(`local redis = (function(real)
  local function ms(more)
    local t = real.call("HMGET", %[1]q, "s", "us")
    return string.format("%%d", t[1] * 1000 + math.floor(t[2] / 1000) + more)
  end
  local function by(call, name, key, ...)
    local words = { ... }
    if name == "TIME" then
      return call("HMGET", %[1]q, "s", "us")
    elseif name == "PTTL" then
      local ends = call("PEXPIRETIME", key)
      return ends < 0 and ends or ends - ms(0)
    elseif name == "PEXPIRE" then
      name, words[1] = "PEXPIREAT", ms(words[1])
    elseif name == "SET" and words[2] == "PX" then
      words[2], words[3] = "PXAT", ms(words[3])
    end
    if name == "PEXPIREAT" and words[1] - ms(0) <= 0 then
      return call("DEL", key)
    end
    return call(name, key, unpack(words))
  end
  return setmetatable({
    call = function(...) return by(real.call, ...) end, pcall = function(...) return by(real.pcall, ...) end,
  }, { __index = real })
end)(redis)
`, c.key)
	for _, s := range scripts {
		source := redis + s.Source()
		file := (*s.File)[:s.Header] + source
		s.File, s.SHA = &file, fmt.Sprintf("%x", sha1.Sum([]byte(source)))
	}
	return scripts.Library()
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time { return c.now }

// Advance lets time pass, and those of the keys expire whose time comes then.
func (c *Clock) Advance(d time.Duration, keys ...string) {
	c.t.Helper()
	c.now = c.now.Add(d)
	c.do("HSET", c.key, "s", strconv.FormatInt(c.now.Unix(), 10), "us", strconv.Itoa(c.now.Nanosecond()/1000))
	for _, key := range keys {
		if ends, err := c.do("PEXPIRETIME", key).AsInt64(); err == nil && ends > 0 && ends <= c.now.UnixMilli() {
			c.do("DEL", key)
		}
	}
}

func (c *Clock) do(words ...string) rueidis.RedisResult {
	c.t.Helper()
	r := c.redis.Do(context.Background(), c.redis.B().Arbitrary(words...).Build())
	require.NoError(c.t, r.Error())
	return r
}
