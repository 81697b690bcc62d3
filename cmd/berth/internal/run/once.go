package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// onceOptions are the flags that only --once has, and what came of it.
type onceOptions struct {
	name     string
	every    time.Duration
	offset   time.Duration
	daily    string
	weekly   string
	monthly  string
	zone     string
	attempts int
	rest     time.Duration
	strict   bool

	run     *once.Run // nil until it has begun
	failure error     // how the command ended, nil for success
	stopped bool      // berth itself was told to end: a failure is no attempt then
	kept    bool      // the server has been told how it ended
}

// add adds the flags.
func (o *onceOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.name, "once", "", "`NAME` of what is done once in each period")
	app.TimeVar(flags, &o.every, "every", 0, "how long a period is, for --once; what comes near the edge of one may run twice or be skipped, see --offset")
	app.TimeVar(flags, &o.offset, "offset", 0, "when periods begin, counted from midnight UTC of 1970-01-01 (default half of --every: a day begins at noon UTC, give 0 for what comes at noon)")
	flags.StringVar(&o.daily, "daily", "", "the `TIME` of day around which periods lie, such as 02:00, in place of --every")
	flags.StringVar(&o.weekly, "weekly", "", "the `DAY TIME` of the week likewise, such as \"monday 02:00\"")
	flags.StringVar(&o.monthly, "monthly", "", "the `DAY TIME` of the month likewise, such as \"1 02:00\"; above 28 a shorter month has it on its last day")
	flags.StringVar(&o.zone, "zone", "", "the time `ZONE` of --daily, --weekly and --monthly, such as Europe/Berlin (default UTC)")
	flags.IntVar(&o.attempts, "attempts", 3, "how often a period is begun at most, by all together")
	app.TimeVar(flags, &o.rest, "retry-after", 0, "how long nobody begins again after the command has failed (default with --wait a tenth of --every, at most 1m; else not at all)")
	flags.BoolVar(&o.strict, "strict", false, "end with exit code 77, and not 0, if somebody has done it or is at it")
}

// validate looks at what only --once has.
func (o *onceOptions) validate(flags *pflag.FlagSet) error {
	for _, other := range []string{"access", "owner", "conflict", "capacity", "weight"} {
		if flags.Changed(other) {
			return berth.Invalid("--"+other, "it is not for --once")
		}
	}
	switch {
	case flags.Changed("try"):
		return berth.Invalid("--try", "--once does not wait anyway, unless --wait is given")
	case o.scheduled() != "" && (flags.Changed("every") || flags.Changed("offset")):
		return berth.Invalid(o.scheduled(), "it stands in place of --every and --offset")
	case o.scheduled() == "" && flags.Changed("zone"):
		return berth.Invalid("--zone", "it is for --daily, --weekly and --monthly")
	case o.scheduled() == "" && !flags.Changed("every"):
		return app.Usage("--every is missing, or --daily, --weekly or --monthly: how long a period is")
	}
	if o.scheduled() == "" && !flags.Changed("offset") {
		o.offset = once.Around(o.every, 0).Offset
	}
	switch {
	case o.every > 0 && o.offset >= o.every:
		return berth.Invalid("--offset", "%s is not below --every, %s", o.offset, o.every)
	case o.attempts < 1:
		return berth.Invalid("--attempts", "%d is below 1", o.attempts)
	case flags.Changed("retry-after") && o.rest == 0:
		return berth.Invalid("--retry-after", "it is 0: give at least 1ms, or leave it out")
	}
	if err := keyspace.CheckName(o.name); err != nil {
		return app.InFlags(err, "name", "--once")
	}
	cfg, err := o.config()
	return app.InFlags(cmp.Or(err, cfg.Validate()), "Every", "--every", "Offset", "--offset", "Attempts", "--attempts", "RetryAfter", "--retry-after",
		"at", o.scheduled(), "day", o.scheduled(), "zone", "--zone")
}

// scheduled is the flag that says around which moments periods lie, "" for none.
func (o *onceOptions) scheduled() string {
	switch {
	case o.daily != "":
		return "--daily"
	case o.weekly != "":
		return "--weekly"
	case o.monthly != "":
		return "--monthly"
	}
	return ""
}

// config is that of the library.
func (o *onceOptions) config() (cfg once.Config, err error) {
	switch given := len(o.daily) + len(o.weekly) + len(o.monthly); {
	case given == 0:
		cfg = once.Config{Every: o.every, Offset: o.offset}
	case given > max(len(o.daily), len(o.weekly), len(o.monthly)):
		return cfg, berth.Invalid(o.scheduled(), "of --daily, --weekly and --monthly give one")
	case o.daily != "":
		cfg = once.Daily(o.daily, o.zone)
	case o.weekly != "":
		day, at, _ := strings.Cut(o.weekly, " ")
		weekday := time.Sunday
		for weekday <= time.Saturday && !strings.EqualFold(day, weekday.String()) && !strings.EqualFold(day, weekday.String()[:3]) {
			weekday++
		}
		if weekday > time.Saturday {
			return cfg, berth.Invalid("--weekly", "%q is no day of the week such as monday", day)
		}
		cfg = once.Weekly(weekday, at, o.zone)
	default:
		day, at, _ := strings.Cut(o.monthly, " ")
		number, err := strconv.Atoi(day)
		if err != nil {
			return cfg, berth.Invalid("--monthly", "%q is no day of the month such as 1", day)
		}
		cfg = once.Monthly(number, at, o.zone)
	}
	cfg.Attempts, cfg.RetryAfter = o.attempts, o.rest
	return cfg, nil
}

// period begins a run. Without a hold and an error there is nothing to do.
func (o *runOptions) period(
	ctx context.Context, conn *app.Connection, n *node.Node, read *inspect.Reader, label string, notes *notes,
) (berth.Handle, error) {
	cfg, err := o.once.config()
	if err != nil {
		return nil, err
	}
	stop := context.CancelFunc(func() {})
	cfg.Priority, cfg.Lease, cfg.NoRenew, cfg.MaxHold, cfg.Meta = o.priority, o.lease, o.noRenew, o.maxHold, o.meta
	if o.wait > 0 {
		cfg.Wait = true
		ctx, stop = context.WithTimeoutCause(ctx, o.wait, fmt.Errorf("--wait %s is over", o.wait))
		defer o.tellWaiting(ctx, read, label, notes)()
	}
	defer stop()
	run, result, err := once.New(n, o.once.name, cfg).Begin(ctx)
	switch {
	case err != nil:
		return nil, o.notBegun(ctx, conn, err)
	case run == nil:
		return nil, o.nothingToDo(result, notes)
	}
	o.once.run, o.once.failure = run, errNotStarted
	o.warnAtTheEdge(result.Info, notes)
	if err := o.secure(ctx, run.Hold()); err != nil {
		return nil, notStarted(conn, o.names(), err) // the caller abandons the run
	}
	return run.Hold(), nil
}

// end tells the server how the command ended, and gives back the lock.
func (o *onceOptions) end(ctx context.Context) error {
	if o.stopped {
		stopped, stop := context.WithCancel(ctx)
		stop()
		ctx = stopped
	}
	return o.run.End(ctx, o.failure)
}

// abandon ends a run whose command was not started, for no fault of the command's. It does not count as
// an attempt.
func (o *onceOptions) abandon() {
	if o.run == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closingHold)
	defer cancel()
	o.stopped = true
	_ = app.UnlessOver(ctx, func() error { return o.end(ctx) })
}

var errNotStarted = errors.New("the command was not started")

// tellWaiting says who is at it while the call waits, until the returned function is called.
func (o *runOptions) tellWaiting(ctx context.Context, read *inspect.Reader, label string, notes *notes) func() {
	told, over := context.WithCancel(ctx)
	if !o.quiet {
		crowd := &spot{crowd: func(ctx context.Context, _ func()) (string, error) { return o.lockers(ctx, read, label) }}
		go tellWait(told, time.Now(), crowd, func(text string) { notes.say("still waiting for %q after %s", o.once.name, text) })
	}
	return over
}

// notBegun gives the error of a Begin its exit code.
func (o *runOptions) notBegun(ctx context.Context, conn *app.Connection, err error) error {
	var refused *berth.AcquireError
	if errors.As(err, &refused) && refused.Reason == berth.ReasonTimedOut && ctx.Err() != nil {
		err = fmt.Errorf("%q is neither done nor free: %w", o.once.name, context.Cause(ctx))
	} else if !errors.Is(err, once.ErrUsedUp) && !errors.Is(err, once.ErrLate) && (refused == nil || refused.Reason == berth.ReasonFailed) {
		return notStarted(conn, o.names(), err)
	}
	return app.Exit(app.ExitNotAcquired, err)
}

// nothingToDo says that somebody has done it, or is at it.
func (o *runOptions) nothingToDo(r once.Result, notes *notes) error {
	by, what := "", "is being done"
	if r.Label != "" {
		by = " by " + text.Plain(r.Label)
	}
	switch {
	case r.Status == once.Running && by == "": // perhaps no run has it
		what = "has not begun, as somebody holds its lock,"
	case r.Status == once.Done:
		what = "is done"
	case r.Status == once.HasFailed:
		what = "has failed, and may not be tried again yet,"
	}
	period := r.Period.String()
	if every := r.Period.End.Sub(r.Period.Start); r.Status == once.Done && o.once.every > 0 && every != o.once.every {
		period += fmt.Sprintf(", which lasts %s and not --every %s,", text.Human(every), text.Human(o.once.every))
	}
	line := fmt.Sprintf("%q %s for the period from %s%s; the command did not run", o.once.name, what, period, by)
	if o.once.strict {
		return app.Exit(app.ExitNotRun, errors.New(line))
	}
	notes.say("%s", line)
	return nil
}

// warnAtTheEdge says where the command came so near to the edge of its period that clocks and delays
// may carry the next one across.
func (o *runOptions) warnAtTheEdge(run once.Info, notes *notes) {
	near := min(time.Minute, run.Period.End.Sub(run.Period.Start)/20)
	after, before := run.Begun.Sub(run.Period.Start), run.Period.End.Sub(run.Begun)
	if !o.quiet && min(after, before) < near {
		notes.say("warning: %q came %s after its period began and %s before it ends; have it come well inside of it, or give another --offset or --daily",
			o.once.name, text.Human(after), text.Human(before))
	}
}

// environment is what a command finds of its period.
func (o *onceOptions) environment() []string {
	if o.run == nil {
		return nil
	}
	return []string{"BERTH_PERIOD=" + o.run.Period().String(), fmt.Sprintf("BERTH_ATTEMPT=%d", o.run.Attempt())}
}
