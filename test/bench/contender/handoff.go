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
// holders, ARGV[5] and [6] the heir's as one that waits, ARGV[7] its deadline, ARGV[8] a
// fence, ARGV[9] a record, ARGV[10] the channel of its node and ARGV[11] what it is told.
const bareHandoff = `redis.call("TIME")
redis.call("HMGET", KEYS[1], "fmt", "counts", "ticket", "fence", "exp", ARGV[1], "stem")
redis.call("ZSCORE", KEYS[2], ARGV[3])
redis.call("ZRANGEBYSCORE", KEYS[2], "35184372088832", "4538783999459327", "WITHSCORES", "LIMIT", "0", "2")
redis.call("HMGET", KEYS[1], ARGV[2], "c:")
redis.call("ZMSCORE", KEYS[2], ARGV[5], "a:")
redis.call("ZREM", KEYS[2], ARGV[3])
redis.call("HDEL", KEYS[1], ARGV[1])
redis.call("ZADD", KEYS[2], ARGV[7], ARGV[4])
redis.call("ZREM", KEYS[2], ARGV[5], ARGV[6])
redis.call("HSET", KEYS[1], "counts", "1 1 0 0 0 0", "fence", ARGV[8], ARGV[2], ARGV[9])
redis.call("PUBLISH", ARGV[10], ARGV[11])
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
	deadline := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	h := &BareHandoff{redis: redis, keys: bareKeys(name), args: []string{
		"c:" + bareClaim, "c:" + bareHeir, "h:" + bareClaim, "h:" + bareHeir, "a:" + bareHeir, "q:" + bareHeir,
		deadline, bareFence, bareRecord, channel, bareNews,
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
		alive = 1 << 44
		queue = 2 * alive
	)
	b, now := h.redis.B(), float64(time.Now().UnixMilli())
	for _, r := range h.redis.DoMulti(ctx,
		b.Hset().Key(h.keys[0]).FieldValue().FieldValue("fmt", "1").FieldValue("counts", "1 1 1 0 0 0").
			FieldValue("exp", h.args[6]).FieldValue(h.args[0], bareRecord).FieldValue(h.args[1], bareRecord).Build(),
		b.Zrem().Key(h.keys[1]).Member(h.args[3]).Build(),
		b.Zadd().Key(h.keys[1]).ScoreMember().ScoreMember(now, h.args[2]).ScoreMember(alive+now, h.args[4]).
			ScoreMember(queue+now, h.args[5]).Build(),
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
