package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

func addCommand(a *app.App) *cobra.Command {
	var in input
	var opts allocator.AddOptions
	cmd := &cobra.Command{
		Use:   "add NAME {RESOURCE... | --file F}",
		Short: "Put resources into a pool",
		Long: `Put resources at the end of a pool, in their order. Those that are in it already
stay where they are; with --expiry their time counts anew, without it they stay for
good; without --max-sharers as many may hold them as before. What waits gets the new
ones at once.

` + inputHelp + `

Many are sent in steps. Where it ends early (Ctrl-C, the server does not answer), a
line says how much was sent; that stays, and the same command again does the rest.`,
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			name, keys, err := in.named(cmd, args)
			if err := cmp.Or(err, checkExpiry(cmd, opts.Expiry)); err != nil {
				return err
			}
			return fill(cmd.Context(), a, name, "added", len(keys), func(ctx context.Context, pool *allocator.Pool[string], told func(done, total int)) (allocator.Change, error) {
				opts.Progress = told
				return pool.Add(ctx, keys, &opts)
			})
		}),
	}
	return filling(a, cmd, &in, &opts)
}

func replaceCommand(a *app.App) *cobra.Command {
	var in input
	var opts allocator.AddOptions
	var empty bool
	cmd := &cobra.Command{
		Use:   "replace NAME {RESOURCE... | --file F}",
		Short: "Make a pool have these resources and no others",
		Long: `Make a pool have these resources and no others. New ones are put at the end, those
that are in it already stay where they are (--expiry and --max-sharers as in add), and
all others are removed: one that is leased stays with its holder and leaves when it comes back. While two replace the
same pool, the one that began later decides; so does whoever removes resources meanwhile.

An empty list is refused, as it is rather a mistake upstream; to empty the pool,
say --allow-empty.

` + inputHelp + `

Many are sent in steps, and others are removed last. Where it ends early (Ctrl-C,
the server does not answer), a line says how much was sent; that stays, and the same
command again does the rest.

Exit code 1: a newer replace of the same pool has begun, or resources were removed
meanwhile. Look at the pool before you replace it again: that undoes what was newer.`,
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			name, keys, err := in.named(cmd, args)
			if err := cmp.Or(err, checkExpiry(cmd, opts.Expiry)); err != nil {
				return err
			}
			if len(keys) == 0 && !empty {
				return berth.Invalid("RESOURCE", "there is none to replace those of %q with; to empty the pool, say --allow-empty", name)
			}
			return fill(cmd.Context(), a, name, "replaced", len(keys), func(ctx context.Context, pool *allocator.Pool[string], told func(done, total int)) (allocator.Change, error) {
				if len(keys) == 0 {
					return pool.Clear(ctx)
				}
				opts.Progress = told
				return pool.Replace(ctx, keys, &opts)
			})
		}),
	}
	cmd.Flags().BoolVar(&empty, "allow-empty", false, "let an empty list empty the pool")
	return filling(a, cmd, &in, &opts)
}

func removeCommand(a *app.App) *cobra.Command {
	var in input
	cmd := &cobra.Command{
		Use:   "remove NAME {RESOURCE... | --file F}",
		Short: "Take resources out of a pool", SuggestFor: []string{"rm", "delete"},
		Long: `Take resources out of a pool. One that is leased stays with its holder and leaves
when it comes back; added again before, it is as if never removed. One that is not
in the pool is none too many: it is counted, and the exit code is 0. Exit code 1: another
operator has changed one of them, or replaced the pool, meanwhile.

` + inputHelp,
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			name, keys, err := in.named(cmd, args)
			if err != nil {
				return err
			}
			return fill(cmd.Context(), a, name, "removed", distinct(keys), func(ctx context.Context, pool *allocator.Pool[string], _ func(done, total int)) (allocator.Change, error) {
				return pool.Remove(ctx, keys)
			})
		}),
	}
	cmd = filling(a, cmd, &in, nil)
	cmd.ValidArgsFunction = app.CompletingMany(a.Names(keyspace.Pool), a.ResourcesOf)
	return cmd
}

// filling completes a command that changes what is in a pool.
func filling(a *app.App, cmd *cobra.Command, in *input, opts *allocator.AddOptions) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("NAME is missing")
		}
		return nil
	}
	cmd.ValidArgsFunction = app.Completing(a.Names(keyspace.Pool))
	in.bind(cmd)
	if opts != nil {
		app.TimeVar(cmd.Flags(), &opts.Expiry, "expiry", 0, "how long the resources stay in the pool (default for good)")
		cmd.Flags().IntVar(&opts.MaxSharers, "max-sharers", 0, "how many may hold one of them at once, 1 to 100 (default as it is, for new ones as the pool is set, 1)")
	}
	return cmd
}

// named returns the name and the keys that a command was given.
func (in *input) named(cmd *cobra.Command, args []string) (name string, keys []string, err error) {
	if err := app.CheckName(args[0]); err != nil {
		return "", nil, err
	}
	keys, err = in.keys(cmd, args[1:])
	return args[0], keys, err
}

func checkExpiry(cmd *cobra.Command, expiry time.Duration) error {
	switch {
	case !cmd.Flags().Changed("expiry"):
		return nil
	case expiry <= 0:
		return berth.Invalid("--expiry", "%s is not above 0; leave it out for good", expiry)
	case expiry == berth.Forever:
		return berth.Invalid("--expiry", "it must end; leave it out for good")
	}
	return settings.Duration("--expiry", expiry)
}

func distinct(keys []string) int {
	seen := make(map[string]struct{}, len(keys))
	for _, key := range keys {
		seen[key] = struct{}{}
	}
	return len(seen)
}

// fill has something sent to a pool in steps, shows how far it has come, and says
// so if it ends early.
func fill(ctx context.Context, a *app.App, name, verb string, total int, send func(context.Context, *allocator.Pool[string], func(done, total int)) (allocator.Change, error)) error {
	p := newProgress(a.Err, name, total)
	defer p.end()
	var change allocator.Change
	err := app.UntilInterrupted(ctx, func(ctx context.Context) error {
		return a.WithNode(ctx, node.Config{}, func(ctx context.Context, n *node.Node) (err error) {
			p.begun = ctx.Err() == nil // else no server is asked
			change, err = send(ctx, poolOf(n, name), p.told)
			return err
		})
	})
	p.end()
	if err != nil {
		return p.early(err, change)
	}
	return printChange(a, name, verb, total, change)
}

// many is how many resources are worth a bar: fewer are sent before anybody has
// looked.
const many = 2000

// progress is how far a command has come.
type progress struct {
	begun bool // something may have been sent
	done  int
	total int
	bar   *progressbar.ProgressBar // nil for none
}

func newProgress(out io.Writer, name string, total int) *progress {
	p := &progress{total: total}
	if total > many && app.IsTerminal(out) {
		p.bar = newBar(out, name, total)
	}
	return p
}

// newBar returns a bar that has the line to itself and leaves it empty.
func newBar(out io.Writer, name string, total int) *progressbar.ProgressBar {
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(text.Plain(name)),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
}

// told is what the library tells, on the goroutine that sends.
func (p *progress) told(done, total int) {
	p.done, p.total = done, total
	if p.bar != nil {
		_ = p.bar.Set(done) // a terminal that is gone is no reason to stop
	}
}

// end takes the bar away. It may be called twice.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

// early adds to the error of something that ended early how much of it was done.
func (p *progress) early(err error, change allocator.Change) error {
	if !p.begun || errors.Is(err, berth.ErrInvalidConfig) {
		return err
	}
	return app.Exit(app.CodeOf(err), fmt.Errorf("%w; %d of %d were sent before: %d added, %d kept, %d removed; the same command again does the rest",
		err, p.done, p.total, change.Added, change.Kept, change.Removed))
}
