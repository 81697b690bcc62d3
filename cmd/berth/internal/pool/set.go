package pool

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// policies are the words of the flag --policy.
var policies = map[string]allocator.Policy{
	"least-recent": allocator.LeastRecent, "most-recent": allocator.MostRecent, "random": allocator.Random,
}

func setCommand(a *app.App) *cobra.Command {
	var s allocator.Settings
	var policy string
	var quoted bool
	cmd := &cobra.Command{
		Use:   "set NAME [RESOURCE] [flags]",
		Short: "Set what a pool goes by, or what one resource of it has of its own",
		Long: `Set what all processes go by that use a pool, at once and whatever they say of it
themselves: --cooldown from the next return on, --policy with the next grant, --bind-for
with the next binding, --max-lease and --max-hold with the next call. A call that asks for
more than a limit is refused; one that asks for none goes by it, and hears within a minute
that it is higher or gone. --max-sharers counts for all resources; nobody loses a hold by it.
What is not named stays as it is. The pool need not have resources yet.

With RESOURCE set what that one has of its own: --cooldown, --max-sharers and --bind-for. It
goes with the resource.

--reset takes back what is not named: then the pool goes by what processes say, and the
resource by what the pool does; the resources that are there keep the sharers that they
have. A pool of which something is set is never forgotten.

Exit code 1: the resource is not in the pool, or another operator has changed the same
meanwhile; then nothing is changed.`,
		Example: `  berth pool set proxies --cooldown 30s --max-sharers 2
  berth pool set proxies 10.0.0.1:3128 --cooldown 5m
  berth pool set proxies --reset`,
		Args:              app.ArgumentsFrom(1, "NAME", "RESOURCE"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Pool), a.ResourcesOf),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			var resource string
			var err error
			if len(args) > 1 {
				resource, err = app.KeyArgument("RESOURCE", args[1], quoted)
			}
			given := cmd.Flags().Changed
			if err := cmp.Or(err, app.CheckName(args[0]), checkSet(&s, policy, len(args) > 1, given)); err != nil {
				return err
			}
			return set(cmd.Context(), a, args[0], resource, s)
		}),
	}
	flags := cmd.Flags()
	app.TimeVar(flags, &s.Cooldown, "cooldown", 0, "how long a resource rests after each hold, 0 for not at all")
	flags.IntVar(&s.MaxSharers, "max-sharers", 0, "how many may hold one resource at once, 1 to 100")
	flags.StringVar(&policy, "policy", "", "which free resource comes next: "+strings.Join(policyWords(), ", "))
	app.EndlessVar(flags, &s.BindFor, "bind-for", 0, "how long a binding lasts where nobody says, or forever")
	app.EndlessVar(flags, &s.MaxLease, "max-lease", 0, "the longest lease that a call may ask for, or forever for no limit")
	app.EndlessVar(flags, &s.MaxHold, "max-hold", 0, "the longest maximum hold that a call may ask for, or forever for no limit")
	flags.BoolVar(&s.Reset, "reset", false, "take back what is not named")
	app.QuotedFlag(cmd, &quoted)
	return cmd
}

func policyWords() []string {
	words := make([]string, 0, len(policies))
	for word := range policies {
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}

// checkSet looks at the flags, and completes the settings.
func checkSet(s *allocator.Settings, policy string, own bool, given func(string) bool) error {
	some := s.Reset
	for _, flag := range []string{"cooldown", "max-sharers", "policy", "bind-for", "max-lease", "max-hold"} {
		some = some || given(flag)
		if own && given(flag) && slices.Contains([]string{"policy", "max-lease", "max-hold"}, flag) {
			return berth.Invalid("--"+flag, "a RESOURCE has none of its own: it is asked for before the resource is known")
		}
	}
	switch {
	case !some:
		return app.Usage("there is nothing to set: --cooldown, --max-sharers, --policy, --bind-for, --max-lease, --max-hold or --reset")
	case s.Cooldown < 0:
		return berth.Invalid("--cooldown", "%s is below 0; 0 is no rest", s.Cooldown)
	case given("max-sharers") && s.MaxSharers < 1:
		return berth.Invalid("--max-sharers", "%d is not within 1 to 100", s.MaxSharers)
	case given("bind-for") && s.BindFor <= 0:
		return berth.Invalid("--bind-for", "%s is not above 0", s.BindFor)
	case given("max-lease") && s.MaxLease <= 0:
		return berth.Invalid("--max-lease", "%s is not above 0; forever is no limit", s.MaxLease)
	case given("max-hold") && s.MaxHold <= 0:
		return berth.Invalid("--max-hold", "%s is not above 0; forever is no limit", s.MaxHold)
	case given("cooldown") && s.Cooldown == 0:
		s.Cooldown = -1
	}
	if !given("policy") {
		return nil
	}
	if s.Policy = policies[policy]; s.Policy == 0 {
		return berth.Invalid("--policy", "%q is none of %s", policy, strings.Join(policyWords(), ", "))
	}
	return nil
}

func set(ctx context.Context, a *app.App, name, resource string, s allocator.Settings) error {
	return a.WithNode(ctx, node.Config{}, func(ctx context.Context, n *node.Node) error {
		ops := allocator.NewOperator(n)
		err := ops.Set(ctx, name, resource, s)
		if errors.Is(err, berth.ErrAbsent) {
			return a.Absent(name, resource)
		}
		if err != nil {
			return app.InFlags(err, "Cooldown", "--cooldown", "MaxSharers", "--max-sharers", "BindFor", "--bind-for",
				"MaxLease", "--max-lease", "MaxHold", "--max-hold", "resource", "RESOURCE")
		}
		if resource != "" {
			info, err := ops.Resource(ctx, name, resource)
			if err != nil {
				return err
			}
			return printSet(a, name, resource, info.Own)
		}
		now, err := ops.Settings(ctx, name)
		if err != nil {
			return err
		}
		return printSet(a, name, "", now)
	})
}

type setDocument struct {
	Resource string             `json:"resource,omitzero"`
	Settings allocator.Settings `json:"settings,omitzero"` // where anything is set
}

func printSet(a *app.App, name, resource string, now allocator.Settings) error {
	about := text.Plain(name)
	if resource != "" {
		about += ": " + view.Key(resource)
	}
	return app.Told(a, name, setDocument{resource, now}, about+": "+cmp.Or(settingsText(now), "nothing is set"))
}

// settingsText is what is set, in a line; "" for nothing.
func settingsText(s allocator.Settings) string {
	var texts []string
	if s.Policy != 0 {
		texts = append(texts, s.Policy.String()+" first")
	}
	switch {
	case s.Cooldown > 0:
		texts = append(texts, "cooldown "+text.Human(s.Cooldown))
	case s.Cooldown < 0:
		texts = append(texts, "no cooldown")
	}
	if s.MaxSharers != 0 {
		texts = append(texts, view.Count(s.MaxSharers, "sharer"))
	}
	for _, one := range []struct {
		what string
		d    time.Duration
		none string
	}{
		{"bindings for", s.BindFor, "bindings forever"},
		{"leases up to", s.MaxLease, "leases without limit"},
		{"holds up to", s.MaxHold, "holds without limit"},
	} {
		switch {
		case one.d == berth.Forever:
			texts = append(texts, one.none)
		case one.d != 0:
			texts = append(texts, one.what+" "+text.Human(one.d))
		}
	}
	return strings.Join(texts, ", ")
}
