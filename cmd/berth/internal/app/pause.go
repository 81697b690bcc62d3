package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// pausing is a command that pauses, or ends a pause: of one name, or of all names.
type pausing struct {
	*Verb
	pause *berth.Pause // nil ends one

	all, forced bool
}

// PauseCommand makes a command that has nothing granted for some time.
func (a *App) PauseCommand(v *Verb) *cobra.Command {
	p := &pausing{Verb: v, pause: &berth.Pause{}}
	cmd := p.completed(a, &cobra.Command{
		Use:   "pause {NAME | --all --force} --for D [--reason TEXT]",
		Short: "Have nothing granted for a while",
		Long: fmt.Sprintf(`Pause a %s: nothing is granted of it. What is held stays held and is renewed, who waits
keeps its place in line, who comes joins the line. The pause ends by itself, and who waits is
then granted in its order; 'berth unpause' ends it now. Pausing again sets another end.

With --all all names of the namespace are paused, also those that are not there yet: of all
kinds, or of one. It takes 7 s and a walk over the names: then each process that reaches the
server has heard. 'berth unpause --all' ends it; 'berth unpause NAME' sets one name apart.

Exit code 1: another operator has paused it, or ended its pause, meanwhile; then nothing is
changed, with --all of some names; or some names could not be asked.`, v.noun()),
		Example: fmt.Sprintf("  %s --for 2h --reason migration\n  %s --for 10m --force", v.command("pause "+sample[v.below]), v.command("pause --all")),
	})
	TimeVar(cmd.Flags(), &p.pause.Left, "for", 0, "how long it is paused, at most 8784h (required)")
	cmd.Flags().StringVar(&p.pause.Reason, "reason", "", "why, for whoever asks for it or looks at it")
	cmd.Flags().BoolVar(&p.forced, "force", false, "required with --all: it stops whoever waits or comes, for whatever name")
	return cmd
}

// UnpauseCommand makes a command that ends a pause.
func (a *App) UnpauseCommand(v *Verb) *cobra.Command {
	return (&pausing{Verb: v, forced: true}).completed(a, &cobra.Command{
		Use:   "unpause {NAME | --all}",
		Short: "End a pause, and hand on",
		Long: fmt.Sprintf(`End the pause of a %s now. The first in line gets what is free, in the same step.

With --all the pause ends that 'berth pause --all' has begun: of all kinds, or of one. What was
paused by its name stays paused. It takes 7 s and a walk over the names.

Exit code 1: another operator has paused it, or ended its pause, meanwhile; then nothing is
changed, with --all of some names; or some names could not be asked.`, v.noun()),
		Example: "  " + v.command("unpause "+sample[v.below]),
	})
}

func (p *pausing) completed(a *App, cmd *cobra.Command) *cobra.Command {
	cmd.Args = ArgumentsFrom(0, "NAME")
	cmd.ValidArgsFunction = Completing(p.names(a))
	cmd.RunE = a.Runs(func(cmd *cobra.Command, args []string) error {
		if err := p.check(cmd, args); err != nil {
			return err
		}
		return a.acting(cmd.Context(), node.Config{}, func(ctx context.Context, n *node.Node, read *inspect.Reader) error {
			if p.all {
				return p.everything(ctx, a, n)
			}
			return p.one(ctx, a, n, read, args[0])
		})
	})
	cmd.Flags().BoolVar(&p.all, "all", false, "all names of the namespace")
	p.bind(cmd, "the one in which NAME is in use, or with --all all")
	return cmd
}

// check looks at what was given before anything is sent.
func (p *pausing) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && !p.all:
		return Usage("NAME is missing; or --all")
	case len(args) > 0 && p.all:
		return berth.Invalid("--all", "it is about all names; leave out %q", args[0])
	case len(args) > 0 && CheckName(args[0]) != nil:
		return CheckName(args[0])
	case p.pause != nil && !cmd.Flags().Changed("for"):
		return Usage("--for D is missing: how long it is to be paused, such as 10m or 2h")
	case p.all && !p.forced:
		return NeedForce(false)
	case p.pause != nil && (p.pause.Left <= 0 || p.pause.Left > act.MaxPause):
		return berth.Invalid("--for", "%s is not above 0 and at most %s", p.pause.Left, act.MaxPause)
	case p.pause != nil:
		return settings.Text("--reason", p.pause.Reason)
	}
	return nil
}

func (p *pausing) one(ctx context.Context, a *App, n *node.Node, read *inspect.Reader, name string) error {
	kind, err := p.meant(ctx, a, read, name)
	says := pausedText(p.pause)
	switch {
	case err != nil:
		return err
	case p.pause == nil:
		if before, unread := read.Name(ctx, kind, name); unread == nil && before.Err == nil && before.Pause == nil {
			says = "it was not paused"
		}
		err = n.Operator().Unpause(ctx, kind, name) // a pause may be on its way
	default:
		err = n.Operator().Pause(ctx, kind, name, p.pause.Left, p.pause.Reason)
	}
	if err != nil {
		return InFlags(err, "lasts", "--for")
	}
	return Told(a, "", pauseDocument{Kind: kind, Name: name, Pause: p.pause}, act.Nouns[kind]+" "+text.Plain(name)+": "+says)
}

func (p *pausing) everything(ctx context.Context, a *App, n *node.Node) (err error) {
	var paused berth.PausedAll
	counts := "in use"
	if p.pause == nil {
		counts = "pauses that were ended"
		paused, err = n.Operator().UnpauseAll(ctx, p.kinds()...)
	} else {
		paused, err = n.Operator().PauseAll(ctx, p.pause.Left, p.pause.Reason, p.kinds()...)
	}
	if err = InFlags(err, "lasts", "--for"); paused.Unread > 0 {
		err = Exit(ExitFailed, err)
	}
	return Listed(err, paused.Names, func() error {
		says := fmt.Sprintf("%s; %s: %s", pausedText(p.pause), counts, view.Count(paused.Names, "name"))
		return Told(a, "", pauseDocument{Kind: p.kind, Pause: p.pause, Names: &paused.Names, Unread: &paused.Unread}, says)
	})
}

// pauseDocument is what has been decided of a name, or of all names and how many those are; the pause is nil where it has ended.
type pauseDocument struct {
	Kind   keyspace.Kind `json:"kind,omitzero"`
	Name   string        `json:"name,omitzero"`
	Pause  *berth.Pause  `json:"pause"`
	Names  *int          `json:"names,omitzero"`
	Unread *int          `json:"unread,omitzero"`
}

func pausedText(p *berth.Pause) string {
	switch {
	case p == nil:
		return "no longer paused"
	case p.Reason == "":
		return "paused for " + text.Human(p.Left)
	}
	return "paused for " + text.Human(p.Left) + ": " + text.Plain(p.Reason)
}
