package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/pkg/allocator"
)

// listing lists names that begin with a prefix.
type listing = func(ctx context.Context, prefix string) ([]string, error)

// listingOf lists what there is of a name.
type listingOf = func(ctx context.Context, name string) ([]string, error)

// completionTime is after how long a completion gives up: whoever pressed a key waits
// for it. Tests, which no machine is too slow for, set it.
var completionTime = time.Second

// offered is how many candidates are read at most: nobody looks through more.
const offered = 1000

// completing completes a name that is in use, and what stands after it: each of next
// completes one more argument.
func completing(names listing, next ...listingOf) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		switch n := len(args); {
		case n == 0:
			return complete(cmd.Context(), prefix, func(ctx context.Context) ([]string, error) { return names(ctx, prefix) })
		case n <= len(next) && next[n-1] != nil && checkName(args[0]) == nil:
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

// completingMany completes a name that is in use, and behind it any number of what there is
// of the name, each once.
func completingMany(names listing, of listingOf) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return completing(names)(cmd, args, prefix)
		}
		found, directive := completingNext(of)(cmd, args, prefix)
		return slices.DeleteFunc(found, func(text string) bool { return slices.Contains(args[1:], text) }), directive
	}
}

// completingNext completes with what there is of the
// first argument.
func completingNext(of listingOf) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || checkName(args[0]) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd.Context(), prefix, func(ctx context.Context) ([]string, error) { return of(ctx, args[0]) })
	}
}

// complete returns the candidates of a listing that begin with a prefix. It gives up
// in time, whatever the listing heeds. What a shell could not read is left out.
func complete(ctx context.Context, prefix string, list func(ctx context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	var found []string // set before unlessOver returns nil
	if err := unlessOver(ctx, func() (err error) {
		found, err = list(ctx)
		return err
	}); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	slices.Sort(found)
	return slices.DeleteFunc(found, func(text string) bool {
		return !strings.HasPrefix(text, prefix) || key(text) != text
	}), cobra.ShellCompDirectiveNoFileComp
}

// claimsOf lists the claims of a name: who holds it and who waits for it. Those that are
// damaged are among them: an operator may want to end them.
func claimsOf(ctx context.Context, ops operator, name string) (ids []string, failed error) {
	for h, err := range ops.Holders(ctx, name) {
		if ids, failed = append(ids, h.ID), err; len(ids) == offered {
			break
		}
	}
	for w, err := range ops.Waiters(ctx, name) {
		if ids, failed = append(ids, w.ID), err; len(ids) >= offered {
			break
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	if len(ids) > 0 {
		failed = nil
	}
	return ids, failed
}

// resourcesOf lists the resources of a pool.
func (a *app) resourcesOf(ctx context.Context, name string) (keys []string, err error) {
	err = a.withPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		for info, err := range pools.Operator().Resources(ctx, name) {
			if keys = append(keys, info.Resource); err != nil || len(keys) == offered {
				return err
			}
		}
		return nil
	})
	return keys, err
}

// bindingsOf lists the bindings of a pool.
func (a *app) bindingsOf(ctx context.Context, name string) (keys []string, err error) {
	err = a.withPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		for b, err := range pools.Operator().Bindings(ctx, name) {
			if keys = append(keys, b.Name); err != nil || len(keys) == offered {
				return err
			}
		}
		return nil
	})
	return keys, err
}
