package app

import (
	"context"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
)

// listing lists names that begin with a prefix.
type listing = func(ctx context.Context, prefix string) ([]string, error)

// listingOf lists what there is of a name.
type listingOf = func(ctx context.Context, name string) ([]string, error)

// offered is how many candidates are read at most: nobody looks through more.
const offered = 1000

// Completing completes a name that is in use, and what stands after it: each of next
// completes one more argument.
func Completing(names listing, next ...listingOf) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch n := len(args); {
		case n == 0:
			return complete(cmd.Context(), prefix, func(ctx context.Context) ([]string, error) { return names(ctx, prefix) })
		case n <= len(next) && next[n-1] != nil && CheckName(args[0]) == nil:
			return complete(cmd.Context(), prefix, func(ctx context.Context) ([]string, error) { return next[n-1](ctx, args[0]) })
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completingAll completes any number of names, each once.
func completingAll(names listing) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd.Context(), prefix, func(ctx context.Context) ([]string, error) {
			found, err := names(ctx, prefix)
			return slices.DeleteFunc(found, func(name string) bool { return slices.Contains(args, name) }), err
		})
	}
}

// CompletingMany completes a name that is in use, and behind it any number of what there is
// of the name, each once.
func CompletingMany(names listing, of listingOf) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		first := args[:min(len(args), 1)]
		found, directive := Completing(names, of)(cmd, first, prefix)
		return slices.DeleteFunc(found, func(text string) bool { return slices.Contains(args[len(first):], text) }), directive
	}
}

// completeFlag completes a flag, which exists, with words.
func completeFlag(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// filesAside has a shell offer no files for the flags that take none.
func filesAside(cmd *cobra.Command) {
	none := func(flag *pflag.Flag) {
		what, _ := pflag.UnquoteUsage(flag)
		if _, completed := cmd.GetFlagCompletionFunc(flag.Name); !completed && what != "FILE" && what != "CMD" {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.NoFileCompletions)
		}
	}
	cmd.PersistentFlags().VisitAll(none)
	cmd.Flags().VisitAll(none)
	for _, sub := range cmd.Commands() {
		filesAside(sub)
	}
}

// complete returns the candidates of a listing that begin with a prefix and that a shell
// may be offered. It gives up in time, whatever the listing heeds.
func complete(ctx context.Context, prefix string, list func(ctx context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, Times.Complete)
	defer cancel()
	var found []string // set before unlessOver returns nil
	if err := UnlessOver(ctx, func() (err error) {
		found, err = list(ctx)
		return err
	}); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	found = slices.DeleteFunc(found, func(text string) bool { return !strings.HasPrefix(text, prefix) })
	return offerable(found), cobra.ShellCompDirectiveNoFileComp
}

// offerable sorts candidates, each once, and leaves out those that a shell must not be offered. Others have chosen
// these texts. Bash types the beginning that several candidates share as it is, and runs it at the next Tab: so one
// that is more than a plain word is offered only where it is the only one, which each shell quotes.
func offerable(found []string) []string {
	slices.Sort(found)
	found = slices.DeleteFunc(slices.Compact(found), func(text string) bool {
		// No quotes make an argument of what looks like a flag, or a candidate of what the scripts take for a message. Fish
		// does not quote a first ~.
		return view.Key(text) != text || text[0] == '-' || text[0] == '~' || strings.HasPrefix(text, "_activeHelp_ ")
	})
	if len(found) == 1 {
		return found
	}
	return slices.DeleteFunc(found, func(word string) bool {
		return word[0] == '%' || strings.ContainsFunc(word, func(r rune) bool {
			return text.Special(r) && !unicode.In(r, unicode.Letter, unicode.Mark)
		})
	})
}

// completionCommand adds cobra's command that prints the scripts of completion, and below it the one that installs them.
func (a *App) completionCommand(root *cobra.Command) {
	root.SetOut(completionScripts{a.Out})
	root.InitDefaultCompletionCmd()
	root.SetOut(a.Out)
	child(root, "completion").AddCommand(a.installCommand())
}

// child is the command of that name below another one, which has it.
func child(of *cobra.Command, name string) *cobra.Command {
	return of.Commands()[slices.IndexFunc(of.Commands(), func(cmd *cobra.Command) bool { return cmd.Name() == name })]
}

// completionScripts is where cobra writes a script, in one piece. Those for zsh and fish evaluate arguments without the
// quotes that were typed around them, and zsh reads a backslash in a candidate as a quote.
type completionScripts struct{ io.Writer }

func (w completionScripts) Write(script []byte) (int, error) {
	_, err := strings.NewReplacer(
		`flagPrefix="-P ${BASH_REMATCH}"`, `flagPrefix="-P ${(q)BASH_REMATCH}"`,
		`comp=${comp//:/\\:}`, `comp=${${comp//\\/\\\\}//:/\\:}`,
		// A word that is only a variable, or a path in the home, still stands for its value.
		`set -l args (commandline -opc)`, `set -l args (string escape -- (commandline -opc) | string replace -r `+
			`"^'((--[a-z-]+=)?(\\\$\w+|~/[\w./-]+))'\$" '$1')`,
	).WriteString(w.Writer, string(script))
	return len(script), err
}
