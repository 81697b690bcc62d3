// Package run is the command that runs another one under a hold.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
)

const runHelp = `Wait in line for a permit of a semaphore, for locks, or for a resource of a pool,
run the command under it, and give it back when the command ends. Or run the command
once in each period, whoever asks.

SEMAPHORE
A semaphore lets in as many as its capacity. The first to use a name stores the
capacity. A run without --capacity uses the stored one. A run with another one uses
the stored one too, and warns; 'berth sem resize' changes it.

LOCK
A lock lets in one. With several --lock the command gets all of them or none; they are
taken in one order everywhere, so that two such runs never wait for each other. The
loss of one ends the command, and --max-hold counts from the first. Semaphores, locks
and pools of the same name have nothing to do with each other.

With --owner a run may enter a lock that the same owner holds: --conflict work runs
the command at once, extend does too and lengthens the owner's hold by the lease, wait
stands in line behind that hold, and fail, the default, ends with exit code 75. A
nested run does not take BERTH_OWNER by itself; it has to say so:

  berth run --lock nightly --owner "$(uuidgen)" -- ./nightly.sh    # and in there:
  berth run --lock nightly --owner "$BERTH_OWNER" --conflict work -- ./step.sh

An owner must be unique to one run of work: whoever names the same owner enters too.

POOL
A pool has resources, which 'berth pool add' gives it. The command gets the one that
came back first. With --bind it gets the one that was bound to that name, if it is
free; else another one, which is bound from then on. With --bind-wait it waits so long
for the bound one, while that is held or rests, before another one will do; with
--bind-wait forever no other one will. Where nothing is bound to the name yet when it
comes, or the bound one leaves the pool, any will do. With --resource it gets that one
or none. Others are served meanwhile with what it does not want. With --try it does not
wait: it gets what a run that waits would get at once. A command that finds its resource
worn out lets it rest:

  berth pool rest "$BERTH_NAME" "$BERTH_RESOURCE" --for 10m --reason "answers 429"

ONCE
With --once the command runs if nobody has done it yet in the period that it is now by
the server's clock, and nobody is at it; else berth says so and ends at once with exit
code 0 (77 with --strict). It is done when a command has ended with 0. With --wait it
waits for so long, and at most to the end of the period, for whoever is at it, and takes
over if that one dies, or fails: then after --retry-after of the one that failed, by default
a tenth of the period, at most 1 min. A period is begun --attempts times at most. What comes
when its period is over does not run.

Periods begin at --offset and then each --every, counted from 1970-01-01 00:00 UTC. Have
cron call in the middle of a period: near the edge a clock that is wrong or a delay puts
a call into another period, and the command runs twice or is skipped. By default --offset
is half of --every. That is right for what comes at full hours each hour ('0 * * * *'), or
at midnight UTC each day. A day then begins at noon UTC: for what comes at noon each day,
give --offset 0. Give --wait, so that another machine takes over:

  0 * * * * berth run --once digest --every 1h --wait 15m -- ./digest.sh

For days in a time zone give --daily, or --weekly or --monthly, and --zone: a period lies
around the moment, half a day before and after. It has the moment once also as clocks
change: a day that has the time twice has it at the first, one that does not have it at
the moment of the change. Have cron call at that time in the same zone:

  0 2 * * * berth run --once digest --daily 02:00 --zone Europe/Berlin --wait 2h -- ./digest.sh

The runs of --once NAME stand under the lock NAME: 'berth lock show NAME' also says what
became of the newest, and 'berth pause' and 'release' are for them too.

WAITING
Before the wait, berth looks for the command and connects, for up to dial_timeout of the
URL (5s by default), or up to --wait if that is shorter. After 5s of waiting, and then
ever more seldom, a line says who holds and for how long (not with --quiet). If the
server does not answer, or refuses as a replica does, a line says so after a few seconds
and then each minute; the wait goes on.

HOLDING
The hold is a lease that berth renews while the command runs. If renewals fail until the
lease is almost over, the command gets SIGTERM one grace before the lease ends and
SIGKILL when the lease ends: the command is gone before anybody else is let in. The
same goes for the end of a lease with --no-renew, and of --max-hold. If the server says
that the hold is over, or somebody else has released it, SIGTERM comes at once and
SIGKILL one grace later.

If somebody asks for the hold back ('berth want', or a claim that waits with WantAfter), a
line says so, and the command gets the signal of --on-wanted, once. The hold goes on: the
command ends by itself when it can.

The command has a process group of its own. SIGTERM and SIGKILL reach the whole group,
so what the command has started, too. SIGINT, SIGTERM, SIGHUP and SIGQUIT to berth are
passed on to the group, SIGUSR1, SIGUSR2 and SIGWINCH to the command alone. Ctrl-C and
Ctrl-Z work as usual; a job that is stopped for longer than its lease is killed when it
is continued. If berth itself is killed (SIGKILL), the command is killed too on Linux,
but not what the command has started; elsewhere all of it goes on, and only its fence
tells.

The hold is given back when the command ends, even if something that the command has put
into the background goes on. A server that does not answer then is asked again for as
long as the lease, at most 10s, or until a signal. After that a line says so, the hold
ends with its lease, and the exit code stays that of the command. With --once the period
may run again then. A --once command that fails after berth was asked to end, as by a
reboot, has used no attempt.

ENVIRONMENT
The command finds:
  BERTH_NAME      the name of the semaphore, the lock or the pool
  BERTH_CLAIM     the id of its claim
  BERTH_FENCE     the number of its grant, higher than all before; pass it on to
                  what the name protects, and refuse lower ones there
  BERTH_FENCES    the same as a JSON object, name to number as text:
                  {"nightly":"1764000000000000"}
  BERTH_RESOURCE  the key of its resource, where that is of a pool
  BERTH_OWNER     the owner, where --owner gives one
  BERTH_PERIOD    when the period starts, such as 2026-01-01T00:30:00Z, with --once
  BERTH_ATTEMPT   which run of the period this is, from 1, with --once
With several locks BERTH_NAME, BERTH_CLAIM and BERTH_FENCE are not set: one number
would not fit all locks. It finds BERTH_REDIS without the password in it, and no
BERTH_REDIS_PASSWORD, unless --pass-redis-env is set.

EXIT CODES
  that of the command, or 128+n if signal n ended it
  64    wrong usage
  67    what --resource names is not in the pool, or has left it during the wait; the
        command did not run
  69    the server cannot be reached or refuses; the command did not run
  75    not acquired in time, or not at all, or lost again before the command
        could start; or, with --once, the attempts of the period are used up or the
        period is over; the command did not run
  76    the hold ended while the command ran, or was about to and berth told the
        command to end: the lease was lost, or somebody else released it, or
        --max-hold or --no-renew let it end; it takes precedence over the
        command's code
  77    with --once and --strict, somebody has done it or is at it; the command did
        not run
  126   the command may not be executed or is no program, or its resource has a
        NUL byte, which no environment can have
  127   there is no such command; it is looked for before anything waits
  128+n signal n ended the wait; the command did not run`

const runExamples = `  # at most two trainings at a time, over all machines
  berth run --sem gpu --capacity 2 -- python train.py

  # a nightly job that gives up if the last one still runs after a minute
  berth run --lock nightly --wait 1m -- ./nightly.sh

  # not at all if somebody is at it
  berth run --lock nightly --try -- ./nightly.sh

  # a proxy of its own for each, and the same one for the same customer
  berth run --pool proxies --bind customer-7 -- ./fetch.sh

  # the account of this customer, also where it has to rest first
  berth run --pool accounts --bind customer-7 --bind-wait forever -- ./post.sh

  # both accounts, or none of them
  berth run --lock account-1 --lock account-2 -- ./transfer.sh

  # once an hour, on whichever machine comes first
  berth run --once digest --every 1h --wait 15m -- ./digest.sh

  # each night, once over all machines
  berth run --once digest --daily 02:00 --zone Europe/Berlin --wait 2h -- ./digest.sh

  # whoever is drawn, for ten minutes at the most
  berth run --lock table --access random --lease 10m --no-renew -- ./play.sh`

// runOptions are the flags of run.
type runOptions struct {
	sem      string
	locks    []string
	pool     string
	bind     string
	bindFor  time.Duration
	bindWait time.Duration
	resource string // as it was given
	quoted   bool
	key      string // the resource that it is, "" for any
	cooldown time.Duration
	capacity int
	weight   int
	access   string
	conflict string
	owner    string
	metas    []string
	meta     map[string]string // metas, as validate has read them
	priority int
	lease    time.Duration
	// leaseGiven and graceGiven say that a flag has set them.
	leaseGiven, graceGiven bool
	noRenew                bool
	grace                  time.Duration
	maxHold                time.Duration
	wait                   time.Duration
	onWanted               string
	wanted                 os.Signal // that of onWanted, nil for none
	try                    bool
	passEnv                bool
	once                   onceOptions
	quiet                  bool
}

// Command is berth run.
func Command(a *app.App) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run {--sem NAME | --lock NAME... | --pool NAME | --once NAME {--every D | --daily TIME}} [flags] -- COMMAND [ARG]...",
		Short:   "Run a command under a semaphore, locks, with a resource of a pool, or once in each period",
		Long:    runHelp,
		Example: runExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no command to run is given")
			}
			return nil
		},
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := a.NoJSON(cmd); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return start(a, o, args)
		}),
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows COMMAND is the command's
	flags.StringVar(&o.sem, "sem", "", "`NAME` of the semaphore")
	flags.IntVar(&o.capacity, "capacity", 0, "how much of the semaphore may be held at once, all together (default what is stored)")
	flags.IntVar(&o.weight, "weight", 1, "how much of the capacity the command takes")
	flags.StringArrayVar(&o.locks, "lock", nil, "`NAME` of a lock; repeat it to take several, all or none")
	flags.StringVar(&o.access, "access", qlock.Queued.String(), "`HOW` to stand in line for the lock: queued, random or lifo")
	flags.StringVar(&o.owner, "owner", "", "`OWNER` whom the hold is for, shown in listings; see --conflict")
	flags.StringVar(&o.conflict, "conflict", qlock.FailDeadlock.String(), "`HOW` to go on if the owner holds the lock already: fail, wait, work or extend")
	flags.StringArrayVar(&o.metas, "meta", nil, "`KEY=VALUE` to show in listings with --json; repeat it for more")
	flags.StringVar(&o.pool, "pool", "", "`NAME` of the pool")
	flags.StringVar(&o.bind, "bind", "", "`BINDING` by which the same resource is given again, if it is free")
	app.TimeVar(flags, &o.bindFor, "bind-for", 0, "how long the binding lasts from the grant (default as the pool is set, 1h)")
	app.EndlessVar(flags, &o.bindWait, "bind-wait", 0, "how long to wait for the resource of the binding, before another one will do, or forever (default not at all)")
	flags.StringVar(&o.resource, "resource", "", "`RESOURCE` to wait for; no other one will do")
	app.QuotedFlag(cmd, &o.quoted)
	app.TimeVar(flags, &o.cooldown, "cooldown", 0, "how long the resource rests after the command at least (default as the pool is set)")
	o.once.add(flags)
	flags.IntVar(&o.priority, "priority", 0, "stand in line ahead of lower ones, -128 to 127")
	app.TimeVar(flags, &o.lease, "lease", 0, "how long a berth that has died keeps its hold (default 10s, of a lock 5s)")
	flags.BoolVar(&o.noRenew, "no-renew", false, "let the lease end, and the command with it, instead of renewing it")
	app.TimeVar(flags, &o.grace, "grace", 0, "from SIGTERM to SIGKILL, at most a third of the lease (default a sixth of it, and at most a quarter of --max-hold)")
	app.TimeVar(flags, &o.maxHold, "max-hold", 0, "end the command when it has held so long, at least 20ms and twice the grace (default no bound)")
	app.TimeVar(flags, &o.wait, "wait", 0, "give up when not granted after so long; connecting may take as long before (default wait as long as it takes)")
	flags.BoolVar(&o.try, "try", false, "give up at once if no place is free or others wait; connecting may take dial_timeout before")
	flags.StringVar(&o.onWanted, "on-wanted", "", "`SIGNAL` for the command when somebody asks for the hold back, such as TERM or USR1 (default a line alone)")
	flags.BoolVar(&o.quiet, "quiet", false, "do not say that it waits, and for whom; warnings are said all the same")
	flags.BoolVar(&o.passEnv, "pass-redis-env", false, "hand the password in BERTH_REDIS and BERTH_REDIS_PASSWORD on to the command")
	for _, group := range flagGroups {
		app.FlagGroup(cmd, group.heading, strings.Fields(group.flags)...)
	}
	_ = cmd.RegisterFlagCompletionFunc("sem", app.Completing(a.Names(keyspace.Sem))) // all of these flags exist
	_ = cmd.RegisterFlagCompletionFunc("once", app.Completing(a.Names(keyspace.Lock)))
	_ = cmd.RegisterFlagCompletionFunc("lock", app.Completing(a.Names(keyspace.Lock)))
	_ = cmd.RegisterFlagCompletionFunc("pool", app.Completing(a.Names(keyspace.Pool)))
	ofPool := func(list func(ctx context.Context, pool string) ([]string, error)) cobra.CompletionFunc {
		return app.Completing(func(ctx context.Context, _ string) ([]string, error) {
			if o.pool == "" {
				return nil, nil
			}
			return list(ctx, o.pool)
		})
	}
	_ = cmd.RegisterFlagCompletionFunc("bind", ofPool(a.BindingsOf))
	_ = cmd.RegisterFlagCompletionFunc("resource", ofPool(a.ResourcesOf))
	_ = cmd.RegisterFlagCompletionFunc("access", cobra.FixedCompletions(words(accesses), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("conflict", cobra.FixedCompletions(words(conflicts), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// flagGroups are the headings of the flags.
var flagGroups = []struct{ heading, flags string }{
	{"What to wait for", "sem lock pool once"},
	{"Semaphore", "capacity weight"},
	{"Lock", "access conflict"},
	{"Pool", "bind bind-for bind-wait resource quoted cooldown"},
	{"Once", "every offset daily weekly monthly zone attempts retry-after strict"},
	{"Waiting", "wait try priority quiet"},
	{"Holding", "lease no-renew max-hold grace on-wanted owner meta pass-redis-env"},
}

// accesses are what --access may be, conflicts what --conflict may be.
var (
	accesses  = []qlock.Access{qlock.Queued, qlock.Random, qlock.LIFO}
	conflicts = []qlock.Conflict{qlock.FailDeadlock, qlock.Wait, qlock.WorkThrough, qlock.ExtendAndWorkThrough}
)

func words[W fmt.Stringer](list []W) []string {
	texts := make([]string, len(list))
	for i, word := range list {
		texts[i] = word.String()
	}
	return texts
}

// wordOf is the value that a word stands for. The word must be one of the list's: validate
// looks at it.
func wordOf[W fmt.Stringer](list []W, word string) W {
	return list[slices.Index(words(list), word)]
}

// what is the flag that says what to wait for.
func (o *runOptions) what() string {
	switch {
	case len(o.locks) > 0:
		return "--lock"
	case o.pool != "":
		return "--pool"
	case o.once.name != "":
		return "--once"
	}
	return "--sem"
}

// names are what to wait for.
func (o *runOptions) names() []string {
	if len(o.locks) > 0 {
		return o.locks
	}
	return []string{cmp.Or(o.pool, o.once.name, o.sem)}
}

// lookUp finds the command before anybody waits for it.
func lookUp(args []string) (*exec.Cmd, error) {
	if _, err := exec.LookPath(args[0]); err != nil { // a path, too, where exec.Command would not look
		return nil, app.NotRun(err)
	}
	return exec.Command(args[0], args[1:]...), nil
}

// label is what listings show of the command: where it runs and what it is, but
// not its arguments, which may be secret.
func label(command string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text := host + "/" + filepath.Base(command) + "/" + strconv.Itoa(os.Getpid())
	return text[:min(len(text), settings.MaxText)]
}
