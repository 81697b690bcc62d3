package scriptkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/pace"
	"github.com/berth-go/berth/internal/shape"
)

// Command is one command of a Read: its words, the Redis keys behind those, and what follows. All
// keys of a Read lie in one slot. The verb is one of HGETALL, HLEN, HMGET, HSCAN, INFO, MGET, SCAN, TYPE, ZCOUNT, ZMSCORE,
// ZRANGE and ZRANGEBYSCORE, both WITHSCORES, and ZRANK.
type Command struct {
	Verb, Keys, Args []string
	// Optional says that its error is told with its result, and fails nothing else: the user may not be allowed to send it.
	Optional bool
}

// shape is that of the answers to the command.
func (c *Command) shape() shape.Command {
	return shape.Command{Verb: c.Verb, Keys: c.Keys, Args: c.Args}
}

// check refuses a command of which no shape is known.
func (c *Command) check() error {
	if !c.shape().Known() {
		return berth.Invalid("commands", "what %q is answered is not known", c.Verb)
	}
	return nil
}

// oddError says that a command was answered with what is no answer to it.
type oddError struct{ verb string }

func (e *oddError) Error() string {
	return fmt.Sprintf("the answer to %s has another shape than asked for", e.verb)
}

// judge returns the error of an answer that ends the attempt: not one that is for the caller, with the result.
func (c *Command) judge(result rueidis.RedisResult) error {
	switch err := result.Error(); {
	case err == nil || rueidis.IsRedisNil(err):
		if answer, _ := result.ToMessage(); !c.shape().Fits(&answer) {
			return &oddError{c.Verb[0]}
		}
		return nil
	case isOfCommand(err) && len(c.Keys) == 0: // there is no key that could be of another type, or elsewhere
		return &oddError{c.Verb[0]}
	case isOfCommand(err), c.Optional && isAnswer(err):
		return nil
	default:
		return err
	}
}

// From says whom a Read asks.
type From struct {
	// Node is a client of one server; nil for the Runner's client, which knows the server of the keys.
	Node rueidis.Client
	// Primary refuses the answer of a replica: what is read leads to a write.
	Primary bool
	// Unasked leaves HELLO out, so Answers.Replica is false; not with Primary. Untimed leaves TIME out, so Answers.Now is 0.
	// Both are for whoever was told already.
	Unasked, Untimed bool
}

// Answers are what a Read was told.
type Answers struct {
	// Now is the time of the server that answered (ms).
	Now int64
	// Replica says that a replica answered, so that all is as of the replica.
	Replica bool
	// Repeated says that an attempt failed before: another server may have answered than the last time.
	Repeated bool
	// Results are those of the commands, in their order. Their errors are WRONGTYPE, MOVED or ASK, of ZRANK rueidis.Nil, and
	// those of an Optional command. Without an error a result has the shape that was asked for: as many elements as HMGET,
	// MGET or ZMSCORE has fields, Redis keys or members, each a text, a number or nil.
	Results []rueidis.RedisResult
}

// errReplica is the answer of a replica where only the primary may decide.
var errReplica = errors.New("a replica answered, and this needs the primary")

// Read sends commands that only read in one pipeline, which begins with HELLO and TIME unless From leaves them out: they
// tell who answered, and when. It is repeated by Options.Retry, each attempt within CallTimeout, if the server
// did not answer or did not run a command for now; and with From.Primary if a replica answered. It is not repeated if an answer
// has a shape that the command's answers do not have: then something else than a server of ours has answered. what
// names the read in errors, which are those of Run; see For.
//
// rueidis neither repeats the commands nor sends them to a replica by itself: it does not know that
// they only read.
func (r *Runner) Read(ctx context.Context, what string, from From, commands ...Command) (Answers, error) {
	if named, ok := ctx.Value(callKey{}).(string); ok {
		what = named
	}
	c := call{runner: r, script: &Script{Name: what}, pace: pace.Of(r.opts.Retry)}
	for i, command := range commands {
		if err := commands[i].check(); err != nil {
			return Answers{}, c.error(err, false, false)
		}
		if verb := command.Verb[0]; !command.Optional && !slices.Contains(c.script.Commands, verb) {
			c.script.Commands = append(c.script.Commands, verb)
		}
		c.keys = append(c.keys, command.Keys...)
	}
	if ended(ctx) != nil {
		return Answers{}, c.fail(ctx, verdict{repeat: true}, nil)
	}
	for repeated, now := false, c.pace.Started(); ; repeated, now = true, time.Now() {
		answers, err := c.read(ctx, now, from, commands)
		if err == nil {
			r.heard(answers.Results)
			answers.Repeated = repeated
			return answers, nil
		}
		r.refused(err, now)
		v := verdict{repeat: true}
		if odd := (*oddError)(nil); errors.As(err, &odd) {
			r.answered()
			return Answers{}, c.error(err, false, false)
		} else if !errors.Is(err, errReplica) {
			v = r.judge(err, now)
		}
		if !c.again(ctx, v, err) {
			return Answers{}, c.fail(ctx, v, err)
		}
	}
}

// reads says that this stands for the commands of a Read.
func (s *Script) reads() bool { return s.File == nil }

// read sends the commands once.
func (c *call) read(ctx context.Context, now time.Time, from From, commands []Command) (Answers, error) {
	ctx, cancel := c.limit(ctx, now)
	defer cancel()
	client := from.Node
	if client == nil {
		client = c.runner.client
	}
	hello, timed := from.Primary || !from.Unasked, !from.Untimed
	var asked []Command
	if hello {
		asked = append(asked, Command{Verb: []string{"HELLO"}, Optional: true}) // isReplica looks at its errors
	}
	if timed {
		asked = append(asked, Command{Verb: []string{"TIME"}})
	}
	first := len(asked)
	asked = append(asked, commands...)
	all := make([]rueidis.Completed, len(asked))
	for i, command := range asked {
		all[i] = client.B().Arbitrary(command.Verb...).Keys(command.Keys...).Args(command.Args...).Build()
	}
	results := multi(ctx, client, all)
	for i := range asked {
		if err := asked[i].judge(results[i]); err != nil {
			return Answers{}, err
		}
	}
	answers := Answers{Results: results[first:]}
	if hello {
		var err error
		if answers.Replica, err = isReplica(results[0]); err != nil {
			return Answers{}, err
		}
		if answers.Replica && from.Primary {
			return Answers{}, errReplica
		}
	}
	if timed {
		t, err := results[first-1].AsIntSlice()
		if err != nil {
			return Answers{}, err
		}
		answers.Now = t[0]*1000 + t[1]/1000
	}
	return answers, nil
}

// isAnswer says that a server answered with an error.
func isAnswer(err error) bool {
	_, ok := rueidis.IsRedisErr(err)
	return ok
}

// multi sends a pipeline. On a connection with nothing else on it rueidis would write all before it
// reads the first answer, and stand still where the connection has no room for both. It does not where
// a context ends at no known moment.
func multi(ctx context.Context, client rueidis.Client, commands []rueidis.Completed) []rueidis.RedisResult {
	ctx, cancel := context.WithCancel(undated{ctx})
	defer cancel()
	return client.DoMulti(ctx, commands...)
}

// isReplica reads the answer to HELLO. The embedded server does not know HELLO without arguments.
func isReplica(hello rueidis.RedisResult) (bool, error) {
	fields, err := hello.AsMap()
	if answer, ok := rueidis.IsRedisErr(err); ok &&
		(strings.HasPrefix(answer.Error(), "unknown command") || strings.HasPrefix(answer.Error(), "wrong number of arguments")) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	role := fields["role"]
	word, _ := role.ToString()
	return word == "replica", nil
}

// isOfCommand says that an error concerns its command alone: the key's type, or its server.
func isOfCommand(err error) bool {
	code, _, _ := strings.Cut(err.Error(), " ")
	return rueidis.IsRedisNil(err) || code == "MOVED" || code == "ASK" || IsWrongType(err)
}

// IsWrongType reports whether a command met a key of another type.
func IsWrongType(err error) bool {
	answer, ok := rueidis.IsRedisErr(err)
	return ok && strings.Contains(answer.Error(), "WRONGTYPE ") // the embedded server puts words before it
}
