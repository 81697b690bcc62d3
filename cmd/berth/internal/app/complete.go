package app

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
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
		if len(args) == 0 {
			return Completing(names)(cmd, args, prefix)
		}
		found, directive := completingNext(of)(cmd, args, prefix)
		return slices.DeleteFunc(found, func(text string) bool { return slices.Contains(args[1:], text) }), directive
	}
}

// completingNext completes with what there is of the
// first argument.
func completingNext(of listingOf) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || CheckName(args[0]) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd.Context(), prefix, func(ctx context.Context) ([]string, error) { return of(ctx, args[0]) })
	}
}

// complete returns the candidates of a listing that begin with a prefix. It gives up
// in time, whatever the listing heeds. What a shell could not read is left out.
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
	slices.Sort(found)
	return slices.DeleteFunc(found, func(text string) bool {
		return !strings.HasPrefix(text, prefix) || Key(text) != text
	}), cobra.ShellCompDirectiveNoFileComp
}
