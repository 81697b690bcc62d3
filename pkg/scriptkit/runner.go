package scriptkit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/failover"
	"github.com/berth-go/berth/internal/pace"
)

// Mode says how long a call is repeated.
type Mode int

const (
	// Bounded repeats within the limits of Options.Retry. The last attempt may
	// have less than CallTimeout: Retry.Within ends it too.
	Bounded Mode = iota
	// UntilDone repeats until the caller's context ends. Its pauses grow to
	// Retry.Cap.
	UntilDone
	// Once does not repeat.
	Once
)

// Runner runs scripts on one client. It is safe for concurrent use and need not
// be closed.
type Runner struct {
	client rueidis.Client
	opts   Options
	window atomic.Pointer[window]
	made   time.Time
	// closedSince is when the client began to answer nothing but ErrClosing,
	// counted from made; 0 if it does not.
	closedSince atomic.Int64
	served      atomic.Bool // see PassesOnceServed
	owners      owners
	sent        sync.Map                             // *Script, of those that were sent by an attempt
	moved       atomic.Pointer[failover.Connections] // nil until a replica has answered
}

// NewRunner returns a Runner. It does no I/O and never closes the client.
func NewRunner(client rueidis.Client, opts Options) *Runner {
	return &Runner{client: client, opts: opts.withDefaults(), made: time.Now()}
}

// CallTimeout is how long one attempt may take.
func (r *Runner) CallTimeout() time.Duration { return r.opts.CallTimeout }

// Run runs the script and returns its reply. The keys and args must be as many
// as the header declares, a group any number of times. In Redis Cluster the keys
// decide the node, and must share a slot.
//
// The first attempt of all calls of the script sends EVAL, unless Load has loaded it. Each other attempt sends EVALSHA, and
// EVAL if the server does not know the script. An attempt is given up after CallTimeout, but under Patient (up to a sixteenth earlier,
// when the limit is shared with other calls). Attempts are repeated as mode says, if the server
// did not run the script or did not answer; see the package's comment. If ctx
// ends during a pause, Run returns at once; if it ends during an attempt, Run
// may return only when the attempt does. A ctx that never ends, like one of
// context.WithoutCancel, makes calls cheaper.
//
// Every error is an *Error. It matches berth.ErrInvalidConfig for a wrong number
// of keys or args, ctx.Err() and context.Cause(ctx) if ctx ended the call,
// berth.ErrUnavailable if the server did not answer, or did not run the script for
// now, berth.ErrIncompatible for a server that lacks a command, and
// rueidis.ErrClosing for a closed client. The end of an attempt by CallTimeout, or
// of a ctx by Limit or Internal, never matches an error of package context. A *rueidis.RedisError is in it if the
// server answered with an error.
func (r *Runner) Run(ctx context.Context, s *Script, mode Mode, keys, args []string) (Reply, error) {
	if err := s.checkCounts(len(keys), len(args)); err != nil {
		return Reply{}, &Error{Script: s.Name, Keys: keys, Err: err}
	}
	c := call{runner: r, script: s, mode: mode, keys: keys, pace: pace.Of(r.opts.Retry)}
	if ended(ctx) != nil { // so nothing is sent, and nothing may run
		return Reply{}, c.fail(ctx, verdict{repeat: true}, nil)
	}
	for now := c.pace.Started(); ; now = time.Now() {
		reply, again, err := c.settle(ctx, now, c.attempt(ctx, now, args))
		if !again {
			return reply, err
		}
	}
}

// checkCounts refuses a call with more or fewer keys or args than declared.
func (s *Script) checkCounts(keys, args int) error {
	if several := s.Several && keys > 0 && keys%len(s.Keys) == 0; keys != len(s.Keys) && !several {
		names := make([]string, len(s.Keys))
		for i, key := range s.Keys {
			names[i] = key.Name
		}
		return berth.Invalid("keys", "the script takes %d (%s), not %d", len(names), strings.Join(names, ", "), keys)
	}
	list := func(names []string) string { return strings.Join(names, ", ") }
	extra := args - len(s.Args)
	switch {
	case len(s.Group) == 0 && extra != 0:
		return berth.Invalid("args", "the script takes %d (%s), not %d", len(s.Args), list(s.Args), args)
	case extra < 0 || len(s.Group) > 0 && extra%len(s.Group) != 0:
		return berth.Invalid("args", "the script takes %d (%s) and groups of %d (%s), not %d",
			len(s.Args), list(s.Args), len(s.Group), list(s.Group), args)
	}
	return nil
}

// call is one Run. Its args are handed on beside it: the keys end up in errors, so
// that whatever is in here is for the garbage collector.
type call struct {
	runner *Runner
	script *Script
	mode   Mode
	keys   []string
	pace   pace.Pace

	unanswered bool // an attempt may have run without its answer being read
}

// settle returns what Run returns after an attempt that started at now, or that another
// one is due, after it has paused for it.
func (c *call) settle(ctx context.Context, now time.Time, result rueidis.RedisResult) (reply Reply, again bool, err error) {
	err = result.Error()
	if err == nil || rueidis.IsRedisNil(err) {
		c.runner.answered()
		if m := c.runner.moved.Load(); m != nil {
			m.Succeeded()
		}
		reply, err = c.reply(result)
		return reply, false, err
	}
	c.runner.refused(err, now)
	v := c.runner.judge(err, now)
	if c.unanswered = c.unanswered || v.mayHaveRun; c.again(ctx, v, err) {
		return Reply{}, true, nil
	}
	return Reply{Unanswered: c.unanswered}, false, c.fail(ctx, v, err)
}

// attempt sends the script once. The commands are never marked retryable.
func (c *call) attempt(ctx context.Context, now time.Time, args []string) rueidis.RedisResult {
	ctx, cancel := c.limit(ctx, now)
	defer cancel()
	first := c.runner.first(c.script)
	result := c.runner.client.Do(ctx, c.build(first, args))
	if !first && isNoScript(result) {
		result = c.runner.client.Do(ctx, c.build(true, args))
	}
	return result
}

// first reports whether the script is to be sent for the first time. The source goes along then: to hear first that a server
// does not know the script takes as long as the whole call.
func (r *Runner) first(s *Script) bool {
	if _, sent := r.sent.Load(s); sent {
		return false
	}
	_, sent := r.sent.LoadOrStore(s, nil)
	return !sent
}

// limit bounds an attempt that starts now.
func (c *call) limit(ctx context.Context, now time.Time) (context.Context, context.CancelFunc) {
	if ctx.Value(patientKey{}) != nil {
		return ctx, func() {}
	}
	d := c.runner.opts.CallTimeout
	if c.mode == Bounded {
		d = min(d, c.pace.Left(now))
	}
	return c.runner.limit(ctx, now, d)
}

// build returns the command of the call: EVALSHA, or EVAL, which has the source.
func (c *call) build(sourced bool, args []string) rueidis.Completed {
	client, keys := c.runner.client, int64(len(c.keys))
	if sourced {
		return client.B().Eval().Script(c.script.Source()).Numkeys(keys).Key(c.keys...).Arg(args...).Build()
	}
	return client.B().Evalsha().Sha1(c.script.SHA).Numkeys(keys).Key(c.keys...).Arg(args...).Build()
}

func isNoScript(result rueidis.RedisResult) bool {
	answer, ok := rueidis.IsRedisErr(result.Error())
	return ok && answer.IsNoScript()
}

func (c *call) reply(result rueidis.RedisResult) (Reply, error) {
	reply, err := newReply(c.script, result)
	reply.Unanswered = c.unanswered
	if err != nil {
		return reply, c.error(err, false, false)
	}
	return reply, nil
}

// again reports whether another attempt is due, after it has paused for it.
func (c *call) again(ctx context.Context, v verdict, err error) bool {
	due := c.pace.Next(c.mode == UntilDone)
	if !due || !v.repeat || c.mode == Once || ended(ctx) != nil {
		return false
	}
	if c.runner.opts.OnRetry != nil {
		c.runner.opts.OnRetry(ctx, c.script.Name, c.pace.Attempts(), c.runner.explain(ctx, c, v, err))
	}
	if !c.pace.Pause(ctx, nil) || ended(ctx) != nil {
		return false
	}
	return c.mode != Bounded || c.pace.Left(time.Now()) > 0
}

// error returns the *Error of this call.
func (c *call) error(err error, repeatable, unavailable bool) error {
	name := c.script.Name
	if c.script.reads() {
		err, name = fmt.Errorf("%s: %w", name, err), ""
	}
	return &Error{
		Script:      name,
		Keys:        c.keys,
		Attempts:    c.pace.Attempts(),
		MaybeRan:    c.unanswered,
		Repeatable:  repeatable,
		Unavailable: unavailable,
		Err:         err,
	}
}

// fail returns the *Error that ends this call after an attempt, or before the
// first one if err is nil.
func (c *call) fail(ctx context.Context, v verdict, err error) error {
	var last error
	if err != nil {
		last = c.runner.explain(ctx, c, v, err)
	}
	if !v.repeat || ended(ctx) == nil {
		return c.error(last, v.repeat, v.unavailable())
	}
	end := CallersEnd(ctx)
	switch {
	case end != nil:
		return c.error(&endedError{end, last}, true, last != nil)
	case last == nil:
		last = errNoAnswer // the limit ended before anything was sent
	}
	return c.error(last, true, true)
}

// ended returns the context's error. It looks at the clock too: an attempt that
// stopped at the context's deadline can be back before the context knows.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}
