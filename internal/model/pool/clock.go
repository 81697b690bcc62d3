package pool

import (
	"bytes"
	"context"
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
// instead of asking TIME: all else is as it is in production.
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

// Scripts are all scripts, on that clock.
func (c *Clock) Scripts() *scriptkit.Library {
	c.t.Helper()
	files := compose.Sources()
	for _, file := range files {
		file.Data = c.Script(file.Data)
	}
	return compose.MustParse(files).Library()
}

// Script is the text of a script or of what scripts include, on that clock.
func (c *Clock) Script(text []byte) []byte {
	c.t.Helper()
	text = bytes.ReplaceAll(text, []byte(`redis.call("TIME")`), fmt.Appendf(nil, `redis.call("HMGET", %q, "s", "us")`, c.key))
	require.NotContains(c.t, string(text), `"TIME"`, "it reads the time in another way")
	return text
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
