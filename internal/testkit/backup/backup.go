// Package backup copies all that a server has, for tests in which it goes back to that: as after
// a failover to a replica that had fallen behind, or a restart from an older file.
package backup

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/rueidis"
)

// Copy is what a server had at one moment. The zero Copy is that of an empty server.
type Copy struct {
	args []string // of the script of Restore: of each command how many words it has, and these
}

// taking reads everything at one moment: of each key what it is called, its type, its expiry
// (ms, -1 = none) and all that is in it.
var taking = rueidis.NewLuaScript(`
local reads = { string = { "GET" }, hash = { "HGETALL" }, set = { "SMEMBERS" },
  list = { "LRANGE", 0, -1 }, zset = { "ZRANGE", 0, -1, "WITHSCORES" } }
local all = {}
for _, key in ipairs(redis.call("KEYS", "*")) do
  local kind, has = redis.call("TYPE", key).ok, {}
  local read = reads[kind]
  if read then
    has = redis.call(read[1], key, unpack(read, 2))
  end
  all[#all + 1] = { key, kind, string.format("%.0f", redis.call("PEXPIRETIME", key)), has }
end
return all`)

// restoring runs commands at one moment, in place of all that the server has.
var restoring = rueidis.NewLuaScript(`
redis.call("FLUSHDB")
local at = 1
while at < #ARGV do
  local words = tonumber(ARGV[at])
  redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end`)

// writes are the commands that write what a key of a type has.
var writes = map[string]string{"string": "SET", "hash": "HSET", "set": "SADD", "list": "RPUSH", "zset": "ZADD"}

// some is how many elements one command writes: a script takes so many arguments easily.
const some = 100

// Take copies what a client's database has: strings, hashes, sets, lists and sorted sets, with
// their expiries. A key of another type is an error.
func Take(ctx context.Context, client rueidis.Client) (Copy, error) {
	keys, err := taking.Exec(ctx, client, nil, nil).ToArray()
	if err != nil {
		return Copy{}, fmt.Errorf("backup: %w", err)
	}
	var c Copy
	for i := range keys {
		if err := c.add(&keys[i]); err != nil {
			return Copy{}, fmt.Errorf("backup: %w", err)
		}
	}
	return c, nil
}

// add copies one key.
func (c *Copy) add(message *rueidis.RedisMessage) error {
	parts, err := message.ToArray()
	if err != nil {
		return err
	}
	var words [3]string // key, type, expiry
	for i := range words {
		if words[i], err = parts[i].ToString(); err != nil {
			return err
		}
	}
	key, kind, expiry := words[0], words[1], words[2]
	has, err := parts[3].AsStrSlice()
	if kind == "string" {
		has = make([]string, 1)
		has[0], err = parts[3].ToString()
	}
	if err != nil {
		return err
	}
	write, known := writes[kind]
	if !known {
		return fmt.Errorf("key %q is a %s, which cannot be copied", key, kind)
	}
	if kind == "zset" { // it is read member first, and written score first
		for i := 0; i < len(has); i += 2 {
			has[i], has[i+1] = has[i+1], has[i]
		}
	}
	for elements := range slices.Chunk(has, some) {
		c.command(append([]string{write, key}, elements...)...)
	}
	if expiry != "-1" {
		c.command("PEXPIREAT", key, expiry)
	}
	return nil
}

func (c *Copy) command(words ...string) {
	c.args = append(append(c.args, strconv.Itoa(len(words))), words...)
}

// Restore puts the copy in place of all that the client's database has, at one moment.
func (c Copy) Restore(ctx context.Context, client rueidis.Client) error {
	if err := restoring.Exec(ctx, client, nil, c.args).Error(); err != nil && !rueidis.IsRedisNil(err) {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}
