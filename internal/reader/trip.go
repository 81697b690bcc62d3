package reader

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// trip is what is sent together for one name, and what is answered.
type trip struct {
	commands []scriptkit.Command
	parts    []part
	known    map[word]int // where the arguments stand that parts share; see merged
	last     int          // which command is sent behind the others, from 1 on; 0 for none
	results  []rueidis.RedisResult
	err      error // the first error of those answers that were looked at
	long     *long // where fields are noted that are longer than may be; nil for nowhere
}

// part is an answer that is asked for: that of a command, or some elements of it.
type part struct {
	command  int
	elements []int // nil for all; below 0 one of letters, from -1 on
	letters  []string
}

// word is an argument of a command.
type word struct {
	command int
	text    string
}

// add adds a command, and returns where its answer will be.
func (p *trip) add(verb, key string, args ...string) int {
	p.commands = append(p.commands, scriptkit.Command{Verb: []string{verb}, Keys: []string{key}, Args: args})
	p.parts = append(p.parts, part{command: len(p.commands) - 1})
	return len(p.parts) - 1
}

// merged adds arguments that begin alike to the command of a verb and a key, of which there is one; -1 without any. What was
// asked for before is not asked again.
func (p *trip) merged(verb, key, prefix string, of []string) int {
	if len(of) == 0 {
		return -1
	}
	at := slices.IndexFunc(p.commands, func(c scriptkit.Command) bool { return c.Verb[0] == verb && c.Keys[0] == key })
	if at < 0 {
		at = len(p.commands)
		p.commands = append(p.commands, scriptkit.Command{Verb: []string{verb}, Keys: []string{key}})
	}
	if p.known == nil {
		p.known = map[word]int{}
	}
	command, elements := &p.commands[at], make([]int, len(of))
	for i, field := range of {
		arg := prefix + field
		n, known := p.known[word{at, arg}]
		if !known {
			n = len(command.Args)
			p.known[word{at, arg}], command.Args = n, append(command.Args, arg)
		}
		elements[i] = n
	}
	p.parts = append(p.parts, part{command: at, elements: elements})
	return len(p.parts) - 1
}

// fields adds an HMGET of fields that begin alike; -1 without any. All of one hash are asked in one command.
func (p *trip) fields(key, prefix string, of ...string) int {
	return p.merged("HMGET", key, prefix, of)
}

// scores adds a ZMSCORE of members that begin alike, likewise.
func (p *trip) scores(key, prefix string, of ...string) int {
	return p.merged("ZMSCORE", key, prefix, of)
}

// sent are the commands in the order in which they are sent.
func (p *trip) sent() []scriptkit.Command {
	if p.last == 0 {
		return p.commands
	}
	n := p.last - 1
	return append(slices.Concat(p.commands[:n], p.commands[n+1:]), p.commands[n])
}

// hear takes the answers to what was sent.
func (p *trip) hear(results []rueidis.RedisResult) {
	if p.results = results; p.last > 0 {
		end := len(results) - 1
		p.results = slices.Insert(slices.Clone(results[:end]), p.last-1, results[end])
	}
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

// places adds a ZRANGE of up to so many members from one score to another, which may be the lower one.
func (p *trip) places(key string, from, to int64, most int) int {
	args := []string{number(from), number(to), "BYSCORE"}
	if from > to {
		args = append(args, "REV")
	}
	return p.add("ZRANGE", key, append(args, "LIMIT", "0", strconv.Itoa(most), "WITHSCORES")...)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// fail notes an error, and reports whether there is one.
func (p *trip) fail(err error) bool {
	if err != nil && p.err == nil {
		p.err = err
	}
	return err != nil
}

// elements are the messages of an array that is answered; after an error as many as were asked for, and all nil.
func (p *trip) elements(i int) (of []rueidis.RedisMessage, failed bool) {
	at := p.parts[i]
	all, err := p.results[at.command].ToArray()
	if p.fail(err) {
		n := max(len(p.commands[at.command].Args), 1)
		if at.elements != nil {
			n = len(at.elements)
		}
		return make([]rueidis.RedisMessage, n), true
	}
	if at.elements == nil {
		return all, false
	}
	of = make([]rueidis.RedisMessage, len(at.elements))
	for n, element := range at.elements {
		if element >= 0 {
			of[n] = all[element]
		}
	}
	return of, false
}

// texts are the strings of an answer, "" for nil; none for -1.
func (p *trip) texts(i int) []string {
	if i < 0 {
		return nil
	}
	all, failed := p.elements(i)
	texts := make([]string, len(all))
	part := p.parts[i]
	for n := range all {
		if !failed && part.elements != nil && part.elements[n] < 0 {
			texts[n] = part.letters[-1-part.elements[n]]
		} else if !failed && !all[n].IsNil() {
			text, err := all[n].ToString()
			p.fail(err)
			texts[n] = p.bounded(part, n, text)
		}
	}
	return texts
}

// resource is a text that is the key of a resource, or "" where it is none.
func resource(text string) string {
	if len(text) > state.MaxResource {
		return ""
	}
	return text
}

// isNil says that an element of an answer is nil.
func (p *trip) isNil(i, n int) bool {
	all, failed := p.elements(i)
	return !failed && all[n].IsNil()
}

// all are the strings of all answers one after the other, "" for nil and for an error.
func (p *trip) all() (texts []string) {
	for i := range p.parts {
		texts = append(texts, p.texts(i)...)
	}
	return texts
}

// result is the answer to a command that is added.
func (p *trip) result(i int) rueidis.RedisResult { return p.results[p.parts[i].command] }

// int is a number.
func (p *trip) int(i int) int64 {
	n, err := p.result(i).AsInt64()
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
	scores, err := p.result(i).AsZScores()
	if p.fail(err) {
		return nil
	}
	all := make([]member, len(scores))
	for n, s := range scores {
		all[n] = member{bounded(s.Member), int64(s.Score)}
	}
	return all
}

// bounded is a member, or where it is longer than any that Berth writes the next text behind all that begin alike: a page
// that ends with it is gone on with behind them.
func bounded(name string) string {
	if len(name) <= state.MaxMember {
		return name
	}
	next := bytes.TrimRight([]byte(name[:state.MaxMember+1]), "\xff")
	if n := len(next); n > 0 {
		next[n-1]++
	}
	return string(next)
}

// sound divides members into those that begin as a script writes them, with what stands behind, and those that are damaged.
func sound(members []member, behind func(string) (string, error)) (own []member, names []string, damaged []member) {
	for _, m := range members {
		if name, err := behind(m.name); err == nil {
			own, names = append(own, m), append(names, name)
		} else {
			damaged = append(damaged, m)
		}
	}
	return own, names, damaged
}

// Of the members of a line: the claims of holds and of places, and the resources of rests and expiries.
func claimHeld(member string) (string, error)       { return state.Behind(member, state.Hold("")) }
func resourceResting(member string) (string, error) { return state.Behind(member, "e:") }
func resourceLeaving(member string) (string, error) { return state.Behind(member, "x:") }

func claimPlaced(member string) (string, error) {
	_, claim, ok := state.PlaceOf(member)
	if !ok {
		return "", state.Damaged(member)
	}
	return claim, nil
}

// namesOf are the names in members that are all sound.
func namesOf(members []member, behind func(string) (string, error)) []string {
	_, names, _ := sound(members, behind)
	return names
}

// absent is the score of a member that is not there.
const absent = -1

// at are the scores of a ZMSCORE.
func (p *trip) at(i int) []int64 {
	if i < 0 {
		return nil
	}
	all, failed := p.elements(i)
	scores := make([]int64, len(all))
	if failed {
		return scores
	}
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
