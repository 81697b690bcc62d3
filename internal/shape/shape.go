// Package shape says whether an answer has the shape that the answers to its command have. So a reader may take an
// answer without an error apart: it has the length that was asked for, and texts where texts belong.
package shape

import (
	"slices"
	"strconv"

	"github.com/redis/rueidis"
)

// Command is a command that only reads: its words, the keys behind those, and what follows.
type Command struct{ Verb, Keys, Args []string }

// Known reports whether it is known what the command is answered.
func (c Command) Known() bool { return len(c.Verb) > 0 && shapes[c.Verb[0]] != nil }

// Fits reports whether an answer, which may be nil but is no error, has the shape of one to the command, which is known.
func (c Command) Fits(answer *rueidis.RedisMessage) bool { return shapes[c.Verb[0]](&c, answer) }

var shapes = map[string]func(c *Command, answer *rueidis.RedisMessage) bool{
	"HELLO": isMap,
	"TIME":  isTime,
	"TYPE":  isText, "INFO": isText,
	"HLEN": isCount, "ZCOUNT": isCount,
	"ZRANK":   func(c *Command, a *rueidis.RedisMessage) bool { return a.IsNil() || isCount(c, a) },
	"MGET":    func(c *Command, a *rueidis.RedisMessage) bool { return isList(a, len(c.Keys), isText) },
	"HMGET":   func(c *Command, a *rueidis.RedisMessage) bool { return isList(a, len(c.Args), isText) },
	"ZMSCORE": func(c *Command, a *rueidis.RedisMessage) bool { return isList(a, len(c.Args), isNumber) },
	"ZRANGE":  isRange, "ZRANGEBYSCORE": isRange,
	"SCAN": isScan, "HSCAN": isScan,
}

func isText(_ *Command, a *rueidis.RedisMessage) bool {
	_, err := a.ToString()
	return err == nil
}

func isCount(_ *Command, a *rueidis.RedisMessage) bool { return a.IsInt64() }

func isNumber(_ *Command, a *rueidis.RedisMessage) bool {
	_, err := a.AsFloat64()
	return err == nil
}

// isList says whether an answer has so many elements, each nil or of a shape.
func isList(a *rueidis.RedisMessage, length int, shape func(*Command, *rueidis.RedisMessage) bool) bool {
	all, err := a.ToArray()
	if err != nil || len(all) != length {
		return false
	}
	for i := range all {
		if !all[i].IsNil() && !shape(nil, &all[i]) {
			return false
		}
	}
	return true
}

// isMap says whether an answer has pairs of a text and of something.
func isMap(_ *Command, a *rueidis.RedisMessage) bool {
	_, err := a.AsMap()
	return err == nil
}

// mostSeconds bounds what TIME may answer: milliseconds are a number below 2^53 then.
const mostSeconds = 1e12

func isTime(_ *Command, a *rueidis.RedisMessage) bool {
	parts, err := a.ToArray()
	if err != nil || len(parts) != 2 {
		return false
	}
	seconds, err := parts[0].AsInt64()
	micros, err2 := parts[1].AsInt64()
	return err == nil && err2 == nil && seconds >= 0 && seconds < mostSeconds && micros >= 0 && micros < 1e6
}

// isRange says whether an answer is of members, each with its score.
func isRange(_ *Command, a *rueidis.RedisMessage) bool {
	all, err := a.ToArray()
	if err != nil {
		return false
	}
	scores, err := a.AsZScores()
	return err == nil && (len(scores) == len(all) || 2*len(scores) == len(all))
}

// isScan says whether an answer has a cursor and texts: of a hash pairs of them. A cursor that stays where it was would have
// its caller ask for ever.
func isScan(c *Command, a *rueidis.RedisMessage) bool {
	parts, err := a.ToArray()
	if err != nil || len(parts) != 2 {
		return false
	}
	found, err := parts[1].ToArray()
	if err != nil || !isList(&parts[1], len(found), isText) || c.Verb[0] == "HSCAN" && len(found)%2 > 0 {
		return false
	}
	next, err := parts[0].AsUint64()
	from := slices.Concat(c.Verb[1:], c.Args)[0]
	return err == nil && (next == 0 || strconv.FormatUint(next, 10) != from)
}
