package app

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// pages makes one of the pages of a listing, until it has so many entries, 0 for all: each once, as it was read last, as a
// claim that was granted meanwhile. Names that were left out are in its problems and in the error.
func pages[E any](most int, read func(cursor string) (inspect.Page[E], error), id func(E) string) (all inspect.Page[E], failed error) {
	all.Items = []E{}
	places := make(map[string]int)
	for cursor := ""; ; {
		page, err := read(cursor)
		if err != nil {
			all.Partial, all.Problems = true, append(all.Problems, err)
			return all, errors.Join(all.Problems...)
		}
		all.At, all.Replica, all.Moving = page.At, all.Replica || page.Replica, all.Moving || page.Moving
		all.Problems = append(all.Problems, page.Problems...)
		for _, e := range page.Items {
			if i, there := places[id(e)]; there {
				all.Items[i] = e
				continue
			}
			places[id(e)] = len(all.Items)
			all.Items = append(all.Items, e)
		}
		if cursor = page.Next; cursor == "" || most > 0 && len(all.Items) >= most {
			return all, errors.Join(all.Problems...)
		}
	}
}

// AllNames are the names that a filter means, in no order. Those that cannot be read are in its problems.
func AllNames(ctx context.Context, read *inspect.Reader, f inspect.NameFilter) inspect.Page[berth.Name] {
	all, _ := pages(0, func(cursor string) (inspect.Page[berth.Name], error) {
		return read.Names(ctx, f, cursor, 1000)
	}, func(n berth.Name) string { return string(n.Kind) + n.Name })
	all.Items = slices.DeleteFunc(all.Items, func(n berth.Name) bool {
		if n.Err != nil {
			all.Problems = append(all.Problems, n.Err)
		}
		return n.Err != nil
	})
	return all
}

// AllHolders are the holds of a name. Damaged ones are in the error.
func AllHolders(ctx context.Context, read *inspect.Reader, kind keyspace.Kind, name string) (inspect.Page[berth.Holder], error) {
	all, err := pages(0, func(cursor string) (inspect.Page[berth.Holder], error) {
		return read.Holders(ctx, kind, name, cursor, 1000)
	}, func(h berth.Holder) string { return h.ID })
	all.Items = slices.DeleteFunc(all.Items, func(h berth.Holder) bool { return h.Node == "" })
	return all, err
}

// AllWaiters are the claims that wait for a name, in the order of the line. Damaged ones are in the error.
func AllWaiters(ctx context.Context, read *inspect.Reader, kind keyspace.Kind, name string) (inspect.Page[berth.Waiter], error) {
	all, err := pages(0, func(cursor string) (inspect.Page[berth.Waiter], error) {
		return read.Waiters(ctx, kind, name, cursor, 1000)
	}, func(w berth.Waiter) string { return w.ID })
	all.Items = slices.DeleteFunc(all.Items, func(w berth.Waiter) bool { return w.Node == "" })
	return all, err
}

// Unused says that nothing is stored of a name but, at most, that it was forgotten: no operator has paused it alone.
func Unused(n berth.Name) bool { return n.Pause == nil || n.Revision == 0 }

// Names lists the names of the kinds that are in use and begin with a prefix.
func (a *App) Names(kinds ...keyspace.Kind) func(ctx context.Context, prefix string) ([]string, error) {
	return func(ctx context.Context, prefix string) (names []string, err error) {
		f := inspect.NameFilter{Kinds: kinds, Prefix: prefix}
		err = a.WithReader(ctx, func(ctx context.Context, read *inspect.Reader) error {
			all, err := pages(offered, func(cursor string) (page inspect.Page[string], err error) {
				found, err := read.Names(ctx, f, cursor, offered)
				page.Next, page.Problems = found.Next, found.Problems
				for _, n := range found.Items {
					page.Items = append(page.Items, n.Name)
				}
				return page, err
			}, func(name string) string { return name })
			names = all.Items
			return err
		})
		return names, err
	}
}

// claims lists the claims of a name: who holds it and who waits for it. Those that are
// damaged are among them: an operator may want to end them.
func (a *App) claims(v *Verb) listingOf {
	return func(ctx context.Context, name string) (ids []string, err error) {
		err = a.WithReader(ctx, func(ctx context.Context, read *inspect.Reader) (failed error) {
			for _, kind := range v.kinds() {
				holders, err := read.Holders(ctx, kind, name, "", offered)
				for _, h := range holders.Items {
					ids = append(ids, h.ID)
				}
				waiters, also := read.Waiters(ctx, kind, name, "", offered)
				for _, w := range waiters.Items {
					ids = append(ids, w.ID)
				}
				failed = cmp.Or(failed, err, also)
			}
			return failed
		})
		if len(ids) > 0 {
			err = nil
		}
		return ids, err
	}
}

// ResourcesOf lists the resources of a pool.
func (a *App) ResourcesOf(ctx context.Context, name string) ([]string, error) {
	return keysOf(ctx, a, name, (*allocator.Operator).Resources, func(info allocator.ResourceInfo) string { return info.Resource })
}

// BindingsOf lists the bindings of a pool.
func (a *App) BindingsOf(ctx context.Context, name string) ([]string, error) {
	return keysOf(ctx, a, name, (*allocator.Operator).Bindings, func(b berth.Binding) string { return b.Name })
}

func keysOf[E any](
	ctx context.Context, a *App, name string, list func(*allocator.Operator, context.Context, string) iter.Seq2[E, error], key func(E) string,
) (keys []string, err error) {
	err = a.WithNode(ctx, node.Config{}, func(ctx context.Context, n *node.Node) error {
		for e, err := range list(allocator.NewOperator(n), ctx, name) {
			if keys = append(keys, key(e)); err != nil || len(keys) == offered {
				return err
			}
		}
		return nil
	})
	return keys, err
}
