package contender

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// bareHandoff runs the commands of a release of Berth's lock that hands it on to the one
// that waits, as the bare scripts above do those of a lock. ARGV[1] and [2] are the fields
// of the holder's and the heir's record, ARGV[3] and [4] their members of the line as
// holders, ARGV[5] the heir's as one that waits, ARGV[6] its deadline, ARGV[7] the values of
// the name, ARGV[8] a record, ARGV[9] the channel of its node and ARGV[10] what it is told.
const bareHandoff = `redis.call("TIME")
redis.call("ZRANGE", KEYS[2], "0", "0")
redis.call("HMGET", KEYS[1], "v", ARGV[1], ARGV[2], "stem")
redis.call("ZREM", KEYS[2], ARGV[3], ARGV[5])
redis.call("HDEL", KEYS[1], ARGV[1])
redis.call("ZADD", KEYS[2], ARGV[6], ARGV[4])
redis.call("HSET", KEYS[1], "v", ARGV[7], ARGV[2], ARGV[8])
redis.call("PUBLISH", ARGV[9], ARGV[10])
return {"ok"}`

// bareHeir is another claim, and bareNews what its node is told.
const (
	bareHeir = "0152033ead0eaead.dc17m3pksdudp4si5a30"
	bareNews = "7:granted7:handoff37:" + bareHeir + "16:" + bareFence + "4:99990:"
)

// BareHandoff is the limit for a lock that is handed on by a script like Berth's. It
// hands on nothing. One goroutine uses it.
type BareHandoff struct {
	redis rueidis.Client
	sha   string
	keys  []string
	args  []string
}

// OpenBareHandoff connects to the server at an address, for a name; what is told is
// published on the channel.
func OpenBareHandoff(addr, name, channel string) (*BareHandoff, error) {
	redis, err := rueidis.NewClient(Option(addr))
	if err != nil {
		return nil, err
	}
	deadline := strconv.FormatInt(1<<44+time.Now().Add(time.Hour).UnixMilli(), 10)
	h := &BareHandoff{redis: redis, keys: bareKeys(name), args: []string{
		"c:" + bareClaim, "c:" + bareHeir, "h:" + bareClaim, "h:" + bareHeir, bareFence[:13] + "-" + bareHeir,
		deadline, bareValues, bareRecord, channel, bareNews,
	}}
	if h.sha, err = loadBare(redis, bareHandoff); err != nil {
		redis.Close()
		return nil, err
	}
	return h, nil
}

// Prepare has one hold the name and one wait for it, as Berth keeps it.
func (h *BareHandoff) Prepare(ctx context.Context) error {
	const (
		hold = 1 << 44
		lane = 254
		mark = 1<<53 - 1
	)
	b, now := h.redis.B(), float64(time.Now().UnixMilli())
	for _, r := range h.redis.DoMulti(ctx,
		b.Hset().Key(h.keys[0]).FieldValue().FieldValue("v", bareValues).
			FieldValue(h.args[0], bareRecord).FieldValue(h.args[1], bareRecord).Build(),
		b.Zrem().Key(h.keys[1]).Member(h.args[3]).Build(),
		b.Zadd().Key(h.keys[1]).ScoreMember().ScoreMember(hold+now, h.args[2]).ScoreMember(lane, h.args[4]).
			ScoreMember(mark, "-").Build(),
	) {
		if err := r.Error(); err != nil {
			return err
		}
	}
	return nil
}

// Run hands on.
func (h *BareHandoff) Run(ctx context.Context) error {
	return runBare(ctx, h.redis, h.sha, h.keys, h.args)
}

// Close gives up the connection.
func (h *BareHandoff) Close() { h.redis.Close() }
