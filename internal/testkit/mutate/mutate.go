// Package mutate changes what a server has stored as somebody would who may write there: members, fields, scores, types
// and sizes.
package mutate

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/state"
)

// shorts are members, fields and texts that are short of what a reader may cut.
var shorts = []string{"", "h", "h:", "c", "c:", "e", "e:", "x", "x:", "p:", "n:", "r:", "q:", "i", "b", "-", "0", "w", "g", "!", " ", "1-", "2 ", "\x00", "\xff"}

// numbers are those at which something overflows.
var numbers = []string{
	"", "0", "1", "-1", "-0", "2", "3", "1e3", "nan", "9999999999999", "10000000000000", "9007199254740993", "1000000000000",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "99999999999999999999999999", "0x10", " 7", "7a",
}

// bands are where the scores of a line begin, in the width of one.
var bands = []int64{0, 1, 256, 257, 258, 260, 262, 264, 266, 268}

// Keys changes one to four things in some of the keys, and says what.
func Keys(ctx context.Context, r *rand.Rand, redis rueidis.Client, keys []string) (changes []string, err error) {
	for range 1 + r.IntN(4) {
		key := keys[r.IntN(len(keys))]
		kind, err := redis.Do(ctx, redis.B().Type().Key(key).Build()).ToString()
		if err != nil {
			return changes, err
		}
		words := []string{"DEL", key}
		switch {
		case r.IntN(30) == 0:
			changes = append(changes, "DEL "+key)
			if err := redis.Do(ctx, redis.B().Arbitrary(words...).Build()).Error(); err != nil {
				return changes, err
			}
			words = retype(r, key)
		case kind == "hash":
			words, err = hash(ctx, r, redis, key)
		case kind == "zset":
			words, err = sorted(ctx, r, redis, key)
		case kind == "string":
			var old string
			old, err = redis.Do(ctx, redis.B().Get().Key(key).Build()).ToString()
			words = []string{"SET", key, Text(r, old, shorts)}
		}
		if err != nil {
			return changes, err
		}
		changes = append(changes, brief(words))
		if err := redis.Do(ctx, redis.B().Arbitrary(words...).Build()).Error(); err != nil {
			return changes, fmt.Errorf("%s: %w", brief(words), err)
		}
	}
	return changes, nil
}

func brief(words []string) string {
	said := make([]string, len(words))
	for i, word := range words {
		said[i] = fmt.Sprintf("%.120q", word)
	}
	return strings.Join(said, " ")
}

// retype is a command that makes a key of another type.
func retype(r *rand.Rand, key string) []string {
	commands := []string{"SET %s 1795470968951844", "SET %s -", "RPUSH %s h:", "SADD %s h:", "HSET %s v -", "HSET %s fmt 9", "ZADD %s 5 x", "DEL %s"}
	return strings.Fields(fmt.Sprintf(commands[r.IntN(len(commands))], key))
}

func hash(ctx context.Context, r *rand.Rand, redis rueidis.Client, key string) ([]string, error) {
	fields, err := redis.Do(ctx, redis.B().Hgetall().Key(key).Build()).AsStrMap()
	if err != nil || len(fields) == 0 {
		return []string{"DEL", key}, err
	}
	names := slices.Sorted(maps.Keys(fields))
	name := names[r.IntN(len(names))]
	value := fields[name]
	switch r.IntN(8) {
	case 0:
		return []string{"HDEL", key, name}, nil
	case 1: // another name
		return []string{"HSET", key, Text(r, name, shorts), value}, nil
	case 2: // the value of another field
		return []string{"HSET", key, name, fields[names[r.IntN(len(names))]]}, nil
	}
	return []string{"HSET", key, name, Text(r, value, shorts)}, nil
}

func sorted(ctx context.Context, r *rand.Rand, redis rueidis.Client, key string) ([]string, error) {
	members, err := redis.Do(ctx, redis.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()).AsZScores()
	if err != nil || len(members) == 0 {
		return []string{"DEL", key}, err
	}
	m := members[r.IntN(len(members))]
	score := strconv.FormatFloat(m.Score, 'f', -1, 64)
	switch r.IntN(6) {
	case 0:
		return []string{"ZREM", key, m.Member}, nil
	case 1, 2: // another member at its place
		return []string{"ZADD", key, score, Text(r, m.Member, shorts)}, nil
	case 3: // another place
		return []string{"ZADD", key, score, members[r.IntN(len(members))].Member}, nil
	}
	at := bands[r.IntN(len(bands))]*state.Width + []int64{0, 1, 511, 512, 1795470968951, state.Forever, int64(m.Score) % state.Width}[r.IntN(7)]
	score = strconv.FormatInt(at, 10)
	if r.IntN(8) == 0 {
		score = []string{"inf", "-inf", "-1", "0.5", "1e300", "9007199254740993"}[r.IntN(6)]
	}
	return []string{"ZADD", key, score, m.Member}, nil
}

// Text is a text that was changed.
func Text(r *rand.Rand, text string, others []string) string {
	at := r.IntN(len(text) + 1)
	switch r.IntN(9) {
	case 0:
		return others[r.IntN(len(others))]
	case 1:
		return text[:at]
	case 2:
		return text[at:]
	case 3: // bytes
		return text[:at] + string([]byte{byte(r.IntN(256))}) + text[min(at+r.IntN(2), len(text)):]
	case 4: // longer than may be
		return text[:at] + strings.Repeat("x", []int{100, 600, 2000, 20_000, 200_000}[r.IntN(5)]) + text[at:]
	case 5: // many words
		return text[:at] + strings.Repeat(" 1", r.IntN(3000)) + text[at:]
	}
	words := strings.SplitAfter(text, " ")
	n := r.IntN(len(words))
	switch word := strings.TrimSuffix(words[n], " "); r.IntN(3) {
	case 0:
		words = slices.Delete(words, n, n+1)
	default:
		words[n] = numbers[r.IntN(len(numbers))] + words[n][len(word):]
	}
	return strings.Join(words, "")
}
