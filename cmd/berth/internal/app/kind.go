package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// kindWords are what --kind may be.
var kindWords = []string{"sem", "lock", "pool"}

// allKinds are the kinds of the names that a command may be about.
var allKinds = []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool}

// KindsOf are the kinds that --kind names.
func KindsOf(words ...string) (kinds []keyspace.Kind, err error) {
	for _, word := range words {
		if !slices.Contains(kindWords, word) {
			return nil, berth.Invalid("--kind", "%q is none of %s", word, strings.Join(kindWords, ", "))
		}
		kinds = append(kinds, keyspace.Kind(word))
	}
	return kinds, nil
}

// CompleteKind completes --kind.
func CompleteKind(cmd *cobra.Command) { completeFlag(cmd, "kind", kindWords) }

// Verb is where a command stands that means the same for all kinds: below the command of one kind, whose names it is about, or
// at the top, where --kind says the kind. Without --kind the kind of a name is the one in which the name is in use.
type Verb struct {
	below keyspace.Kind // "" for the top
	kind  keyspace.Kind // below, or --kind; "" where it was not given
}

// VerbOf is the place of a command below the command of a kind, "" for the top.
func VerbOf(kind keyspace.Kind) *Verb { return &Verb{kind, kind} }

// Set reads --kind.
func (v *Verb) Set(word string) error {
	kinds, err := KindsOf(word)
	if err == nil {
		v.kind = kinds[0]
	}
	return err
}

func (v *Verb) String() string { return "" } // the default is in the help

// Type makes its errors say which kinds there are.
func (v *Verb) Type() string { return "kind" }

// bind adds --kind to a command at the top, with what is meant without it.
func (v *Verb) bind(cmd *cobra.Command, otherwise string) {
	if v.below == "" {
		cmd.Flags().Var(v, "kind", "only of `KIND`: sem, lock or pool (default "+otherwise+")")
		CompleteKind(cmd)
	}
}

// command is how the command is called, with what follows it.
func (v *Verb) command(rest string) string {
	return strings.Join(strings.Fields("berth "+string(v.below)+" "+rest), " ")
}

// noun is what the command is about.
func (v *Verb) noun() string {
	if v.below == "" {
		return "name"
	}
	return act.Nouns[v.below]
}

// mayBe reports whether a command that stands there may be about a kind.
func (v *Verb) mayBe(kind keyspace.Kind) bool { return v.below == "" || v.below == kind }

// kinds are those that may be meant.
func (v *Verb) kinds() []keyspace.Kind {
	if v.kind == "" {
		return allKinds
	}
	return []keyspace.Kind{v.kind}
}

// names lists the names of those kinds, for completion.
func (v *Verb) names(a *App) listing {
	return func(ctx context.Context, prefix string) ([]string, error) { return a.Names(v.kinds()...)(ctx, prefix) }
}

// of are the kinds that a name is meant of: the one that is given, or each in which the name is in use, none where it is in none.
func (v *Verb) of(ctx context.Context, read *inspect.Reader, name string) (kinds []keyspace.Kind, err error) {
	if v.kind != "" {
		return v.kinds(), nil
	}
	for _, kind := range allKinds {
		n, err := read.Name(ctx, kind, name)
		if err != nil {
			return nil, err
		}
		if n.Holders > 0 || n.Waiting > 0 || !Unused(n) || kind != keyspace.Lock && n.Capacity > 0 || n.Pool != nil {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// meant returns the kind of the name that an action is for; without a name, the given kind, if any.
func (v *Verb) meant(ctx context.Context, a *App, read *inspect.Reader, name string) (keyspace.Kind, error) {
	if name == "" {
		return v.kind, nil
	}
	kinds, err := v.of(ctx, read, name)
	switch {
	case err != nil:
		return "", err
	case len(kinds) == 0:
		return "", v.none(a, name)
	case len(kinds) == 1:
		return kinds[0], nil
	}
	var nouns, words []string
	for _, kind := range kinds {
		nouns, words = append(nouns, "a "+act.Nouns[kind]), append(words, "--kind "+string(kind))
	}
	return "", Usage("%q is %s: say %s", name, strings.Join(nouns, " and "), strings.Join(words, " or "))
}

// none says that a name is of no kind.
func (v *Verb) none(a *App, name string) error {
	says := "; of a name that is not, say --kind"
	if kind, rest, found := strings.Cut(name, "/"); found && slices.Contains(kindWords, kind) && CheckName(rest) == nil {
		says = fmt.Sprintf(". Did you mean this? --kind %s %s", kind, text.Plain(rest)) // as 'ls -o name' has it
	}
	return Exit(ExitFailed, fmt.Errorf("no semaphore, lock or pool %q in namespace %q is in use%s", name, a.Namespace, says))
}

// ActingCommands are the commands that change something and mean the same for all kinds: below the command of a kind, "" for the top.
func (a *App) ActingCommands(kind keyspace.Kind) (commands []*cobra.Command) {
	for _, make := range []func(*Verb) *cobra.Command{a.ReleaseCommand, a.WantCommand, a.PauseCommand, a.UnpauseCommand, a.SweepCommand} {
		commands = append(commands, make(VerbOf(kind)))
	}
	return commands
}
