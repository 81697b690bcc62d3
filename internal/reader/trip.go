package reader

import (
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// trip is what is sent together for one name, and what is answered.
type trip struct {
	commands []scriptkit.Command
	results  []rueidis.RedisResult
	err      error // the first error of those answers that were looked at
}

// add adds a command, and returns where its answer will be.
func (p *trip) add(verb, key string, args ...string) int {
	p.commands = append(p.commands, scriptkit.Command{Verb: []string{verb}, Keys: []string{key}, Args: args})
	return len(p.commands) - 1
}

// fields adds an HMGET of fields that begin alike; -1 without any.
func (p *trip) fields(key, prefix string, of ...string) int {
	if len(of) == 0 {
		return -1
	}
	args := make([]string, len(of))
	for i, field := range of {
		args[i] = prefix + field
	}
	return p.add("HMGET", key, args...)
}

// scores adds a ZMSCORE of members that begin alike; -1 without any.
func (p *trip) scores(key, prefix string, of ...string) int {
	if len(of) == 0 {
		return -1
	}
	i := p.fields(key, prefix, of...)
	p.commands[i].Verb = []string{"ZMSCORE"}
	return i
}

// count adds a ZCOUNT of the scores from one to another.
func (p *trip) count(line string, from, to int64) int {
	return p.add("ZCOUNT", line, number(from), number(to))
}

// ranged adds a ZRANGEBYSCORE of up to so many members.
func (p *trip) ranged(line string, from, to int64, most int) int {
	return p.add("ZRANGEBYSCORE", line, number(from), number(to), "WITHSCORES", "LIMIT", "0", strconv.Itoa(most))
}

// ranks adds a ZRANGE of so many members from a rank on.
func (p *trip) ranks(line string, from int64, most int) int {
	return p.add("ZRANGE", line, number(from), number(from+int64(most)-1), "WITHSCORES")
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// fail notes an error, and reports whether there is one.
func (p *trip) fail(err error) bool {
	if err != nil && p.err == nil {
		p.err = err
	}
	return err != nil
}

// texts are the strings of an answer, "" for nil; none for -1.
func (p *trip) texts(i int) []string {
	if i < 0 {
		return nil
	}
	all, err := p.results[i].ToArray()
	if p.fail(err) {
		return make([]string, max(len(p.commands[i].Args), 1))
	}
	texts := make([]string, len(all))
	for n := range all {
		if !all[n].IsNil() {
			texts[n], err = all[n].ToString()
			p.fail(err)
		}
	}
	return texts
}

// isNil says that an element of an answer is nil.
func (p *trip) isNil(i, n int) bool {
	all, err := p.results[i].ToArray()
	return !p.fail(err) && all[n].IsNil()
}

// all are the strings of all answers one after the other, "" for nil and for an error.
func (p *trip) all() (texts []string) {
	for i := range p.results {
		texts = append(texts, p.texts(i)...)
	}
	return texts
}

// int is a number.
func (p *trip) int(i int) int64 {
	n, err := p.results[i].AsInt64()
	p.fail(err)
	return n
}

// member is one of a line.
type member struct {
	name  string
	score int64
}

// members are those of an answer; none for -1.
func (p *trip) members(i int) []member {
	if i < 0 {
		return nil
	}
	scores, err := p.results[i].AsZScores()
	if p.fail(err) {
		return nil
	}
	all := make([]member, len(scores))
	for n, s := range scores {
		all[n] = member{s.Member, int64(s.Score)}
	}
	return all
}

// absent is the score of a member that is not there.
const absent = -1

// at are the scores of a ZMSCORE.
func (p *trip) at(i int) []int64 {
	if i < 0 {
		return nil
	}
	all, err := p.results[i].ToArray()
	if p.fail(err) {
		return make([]int64, len(p.commands[i].Args))
	}
	scores := make([]int64, len(all))
	for n := range all {
		scores[n] = absent
		if !all[n].IsNil() {
			score, err := all[n].AsFloat64()
			p.fail(err)
			scores[n] = int64(score)
		}
	}
	return scores
}

// deadline is the end of a hold by its score (ms), 0 where it is not there.
func deadline(score int64) int64 {
	if score == absent {
		return 0
	}
	return score - state.Holds
}

// isMoved reports whether a command was told that another server has its key.
func isMoved(err error) bool {
	code, _, _ := strings.Cut(err.Error(), " ")
	return code == "MOVED" || code == "ASK"
}
