package scriptkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/failover"
)

// Error is what a call failed with.
type Error struct {
	// Script is the script's name, "" of a Read.
	Script string
	// Keys are the keys of the call.
	Keys []string
	// Attempts is how often the call was sent.
	Attempts int
	// MaybeRan says that an attempt may have run, or may still run, without
	// its answer having been read. It is false if the server answered every
	// attempt or was sent none, also where its answer was an error.
	MaybeRan bool
	// Repeatable says that the same call may be sent again with a hope that it
	// succeeds: the server did not run the script, or did not answer.
	Repeatable bool
	// Unavailable says that the server did not answer the last attempt, or did not
	// run it for now. The error matches berth.ErrUnavailable then.
	Unavailable bool
	// Err is what ended the call.
	Err error
}

// Repeatable reports whether the call that ended with err may be sent again with
// a hope that it succeeds: the server did not run the script, or did not answer.
func Repeatable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Repeatable
}

// MaybeRan reports whether the call that ended with err may have run, or may
// still run, without its answer having been read.
func MaybeRan(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.MaybeRan
}

// Is reports whether target is berth.ErrUnavailable, and the server was.
func (e *Error) Is(target error) bool { return e.Unavailable && target == berth.ErrUnavailable }

// Error names the script, the first key and the cause, and never an argument.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("berth: ")
	if e.Script != "" {
		b.WriteString("script " + e.Script)
		if len(e.Keys) > 0 {
			fmt.Fprintf(&b, " on %q", e.Keys[0])
		}
		b.WriteString(": ")
	}
	b.WriteString(strings.TrimPrefix(e.Err.Error(), "berth: "))
	switch {
	case e.Attempts > 1 && e.MaybeRan:
		fmt.Fprintf(&b, " (%d attempts, one may have run)", e.Attempts)
	case e.Attempts > 1:
		fmt.Fprintf(&b, " (%d attempts)", e.Attempts)
	case e.MaybeRan:
		b.WriteString(" (it may have run)")
	}
	return b.String()
}

// Unwrap returns what ended the call.
func (e *Error) Unwrap() error { return e.Err }

// verdict says what a failed attempt means.
type verdict struct {
	repeat     bool // the same call may be sent again
	mayHaveRun bool // nobody knows whether the script ran
}

// unavailable says that the server did not answer, or did not run the call for now.
func (v verdict) unavailable() bool { return v.repeat || v.mayHaveRun }

// judge tells what the error of an attempt means that started at the given time.
func (r *Runner) judge(err error, started time.Time) verdict {
	if errors.Is(err, rueidis.ErrClosing) {
		// What was on a connection that is closed may have been sent.
		return verdict{repeat: !r.closed(started), mayHaveRun: true}
	}
	r.open()
	return judge(err, r.served.Load())
}

// judge tells what the error of an attempt means, but for that of a closed client. served says
// that the server has served the client before.
func judge(err error, served bool) verdict {
	var answer *rueidis.RedisError
	var dial *net.OpError
	switch {
	case errors.As(err, &answer):
		return refused(answer.Error(), served)
	case errors.Is(err, rueidis.ErrNoSlot), errors.As(err, &dial) && dial.Op == "dial":
		return verdict{repeat: true} // there was no connection to send it on
	case errors.Is(err, rueidis.ErrNoCache), errors.Is(err, rueidis.ErrNoAddr), errors.Is(err, rueidis.ErrDedicatedClientRecycled):
		return verdict{} // the client is set up wrong
	default:
		// An error of package context may be of a context that is not this attempt's: rueidis
		// connects under that of the call that comes first, and its error is that of all who
		// wait for the connection. They were not sent, but it does not tell them apart from
		// those that were, and a client that somebody has wrapped may have limits of its own.
		return verdict{repeat: true, mayHaveRun: true}
	}
}

// closedGrace is for how long ErrClosing is taken for a failover. A rueidis
// client answers it when it is closed, but also on a connection that it replaced,
// until it has asked for the topology anew, which takes it up to a second.
const closedGrace = 2 * time.Second

// closed reports whether ErrClosing, on an attempt that started at the given
// time, means that the client is closed.
func (r *Runner) closed(started time.Time) bool {
	since := r.closedSince.Load()
	if since == 0 {
		r.closedSince.CompareAndSwap(0, max(1, int64(time.Since(r.made))))
		return false
	}
	return started.Sub(r.made)-time.Duration(since) >= closedGrace
}

// open notes that the client is not closed.
func (r *Runner) open() {
	if r.closedSince.Load() != 0 {
		r.closedSince.Store(0)
	}
}

// answered notes that the server has served the client, which is not closed.
func (r *Runner) answered() {
	r.open()
	if !r.served.Load() {
		r.served.Store(true)
	}
}

// heard notes the answers to a Read: some of its commands may have been refused.
func (r *Runner) heard(results []rueidis.RedisResult) {
	r.open()
	if slices.ContainsFunc(results, func(result rueidis.RedisResult) bool { return result.Error() == nil || isOfCommand(result.Error()) }) {
		r.answered()
	}
}

// ByReplica reports whether a call failed because a replica answered it.
func ByReplica(err error) bool {
	var answer *rueidis.RedisError
	if errors.As(err, &answer) {
		return strings.HasPrefix(answer.Error(), "READONLY ") || strings.HasPrefix(answer.Error(), "MASTERDOWN ")
	}
	return errors.Is(err, errReplica)
}

// refused notes the error of an attempt that started at the given time, and breaks the connections where they have led to a
// replica for long enough.
func (r *Runner) refused(err error, started time.Time) {
	if r.opts.KeepConnections || !ByReplica(err) || r.client.Mode() != rueidis.ClientModeStandalone {
		return
	}
	m := r.moved.Load()
	if m == nil {
		m = failover.Of(r.client)
		r.moved.Store(m)
	}
	if count, pause, broken := m.Refused(started); broken && r.opts.OnBreak != nil {
		r.opts.OnBreak(count, pause, err)
	}
}

// endedError is the end of the caller's context, with what the last attempt met.
type endedError struct {
	end  error
	last error // nil if nothing was sent
}

func (e *endedError) Error() string {
	text := strings.ReplaceAll(e.end.Error(), "\n", ": ")
	if e.last != nil {
		text += "; the last attempt: " + e.last.Error()
	}
	return text
}

func (e *endedError) Unwrap() []error {
	if e.last == nil {
		return []error{e.end}
	}
	return []error{e.end, e.last}
}

// answerError is an error that the server answered, in words that help.
type answerError struct {
	text   string
	answer *rueidis.RedisError
	is     error // a sentinel that it matches too, or nil
}

func (e *answerError) Error() string { return e.text }

func (e *answerError) Unwrap() []error {
	if e.is == nil {
		return []error{e.answer}
	}
	return []error{e.answer, e.is}
}

// explain turns an attempt's error into one that helps. All errors of Redis and
// of the network come through here.
func (r *Runner) explain(ctx context.Context, c *call, v verdict, err error) error {
	var answer *rueidis.RedisError
	if errors.As(err, &answer) {
		return r.explainAnswer(ctx, c.script, c.keys, answer)
	}
	return mask(v, err)
}

// mask takes the words of package context out of an error of the network: they say
// that the caller's context ended, and it was a limit of an attempt that did.
func mask(v verdict, err error) error {
	switch {
	case !isContextError(err):
		return err
	case v.mayHaveRun:
		return errNoAnswer
	default: // a connection that could not be made
		return errors.New(strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), "no answer in time"))
	}
}

// errNoAnswer stands for the end of an attempt.
var errNoAnswer = errors.New("no answer in time")

// Failure returns the error of a command that only reads and was sent beside the
// scripts, under ctx: nil for nil, else an *Error, like that of a script. what names
// the command.
func Failure(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	return failed(ctx, what, err)
}

func failed(ctx context.Context, what string, err error) *Error {
	v := judge(err, false)
	v.mayHaveRun = v.mayHaveRun || errors.Is(err, rueidis.ErrClosing)
	last := mask(v, err)
	if end := CallersEnd(ctx); end != nil && v.repeat {
		last = &endedError{end, last}
	}
	return &Error{Attempts: 1, Repeatable: v.repeat, Unavailable: v.unavailable(), Err: fmt.Errorf("%s: %w", what, last)}
}

func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// explainAnswer finds words for a server's error.
func (r *Runner) explainAnswer(ctx context.Context, s *Script, keys []string, answer *rueidis.RedisError) error {
	e := &answerError{answer: answer}
	words := serverWords(answer.Error())
	code, _, _ := strings.Cut(words, " ")
	switch {
	case IsWrongType(answer):
		e.text = r.wrongType(ctx, s, keys)
	case code == "NOPERM", strings.HasPrefix(words, "The user executing the script can't"),
		strings.HasPrefix(words, "ACL failure in script"):
		needs := "is needed ("
		if !s.reads() {
			needs = "the script needs (EVALSHA, EVAL and what it calls: "
		}
		e.text = "the ACL of this user lacks something that " + needs + strings.Join(s.Commands, ", ") + "): " + words
	case code == "OOM":
		e.text = "the server is full: " + words
	case strings.HasPrefix(words, "unknown command"), strings.Contains(words, "Unknown Redis command"):
		e.text = berth.ErrIncompatible.Error() + ": needs Redis 7 or Valkey 7.2: " + words
		e.is = berth.ErrIncompatible
	case code == "MOVED" || code == "ASK":
		e.text = "the server belongs to a Redis Cluster, and this client does not follow it further: " + words
	default:
		e.text = words
	}
	return e
}

// serverWords is a server's error without the arguments that some versions
// repeat, and without the script's hash.
func serverWords(answer string) string {
	answer, _, _ = strings.Cut(answer, ", with args beginning with")
	i := strings.LastIndex(answer, " script: ")
	if i < 0 {
		return answer
	}
	_, line, ok := strings.Cut(answer[i:], "@user_script:")
	if !ok {
		return answer
	}
	return strings.TrimSuffix(answer[:i], ".") + " (line " + strings.TrimSuffix(line, ".") + ")"
}

// wrongType asks which key has another type than the header says. If that cannot
// be asked, it says what the types should be.
func (r *Runner) wrongType(ctx context.Context, s *Script, keys []string) string {
	ctx, cancel := context.WithTimeout(ctx, r.opts.CallTimeout)
	defer cancel()
	var want []string
	other := ""
	for i, key := range keys {
		p := &s.Keys[i%len(s.Keys)]
		has, err := r.client.Do(ctx, r.client.B().Type().Key(key).Build()).ToString()
		if err == nil && has != "none" && has != p.Type {
			text := fmt.Sprintf("the key %q (%s) holds a %s instead of a %s", key, p.Name, has, p.Type)
			if has != p.Also {
				return text
			}
			other = text // of the right type, but not what it should be
		}
		want = append(want, fmt.Sprintf("%q (%s) a %s", key, p.Name, p.Type))
	}
	if other != "" {
		return other
	}
	return "a key holds something of another type: the script wants " + strings.Join(want, ", ")
}
