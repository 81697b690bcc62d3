package app

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// SemNames returns the names of the semaphores in use that begin with a prefix.
func (a *App) SemNames(ctx context.Context, prefix string) (names []string, err error) {
	err = a.WithSems(ctx, semaphore.Config{}, func(ctx context.Context, sems *semaphore.Client) error {
		all, err := Collect(sems.Operator().All(ctx))
		for _, stats := range all {
			if strings.HasPrefix(stats.Name, prefix) {
				names = append(names, stats.Name)
			}
		}
		return err
	})
	return names, err
}

// LockNames returns the names of the locks that are held which begin with a
// prefix.
func (a *App) LockNames(ctx context.Context, prefix string) (names []string, err error) {
	err = a.WithLocks(ctx, qlock.Config{}, func(ctx context.Context, locks *qlock.Client) error {
		all, err := LockedNow(ctx, locks)
		for _, info := range all {
			if strings.HasPrefix(info.Name, prefix) {
				names = append(names, info.Name)
			}
		}
		return err
	})
	return names, err
}

// PoolNames returns the names of the pools that begin with a prefix.
func (a *App) PoolNames(ctx context.Context, prefix string) (names []string, err error) {
	err = a.WithPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		all, err := Collect(pools.Operator().All(ctx))
		for _, stats := range all {
			if strings.HasPrefix(stats.Name, prefix) {
				names = append(names, stats.Name)
			}
		}
		return err
	})
	return names, err
}

// claimsOf lists the claims of a name: who holds it and who waits for it. Those that are
// damaged are among them: an operator may want to end them.
func claimsOf(ctx context.Context, ops Operator, name string) (ids []string, failed error) {
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

// ResourcesOf lists the resources of a pool.
func (a *App) ResourcesOf(ctx context.Context, name string) (keys []string, err error) {
	err = a.WithPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		for info, err := range pools.Operator().Resources(ctx, name) {
			if keys = append(keys, info.Resource); err != nil || len(keys) == offered {
				return err
			}
		}
		return nil
	})
	return keys, err
}

// BindingsOf lists the bindings of a pool.
func (a *App) BindingsOf(ctx context.Context, name string) (keys []string, err error) {
	err = a.WithPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		for b, err := range pools.Operator().Bindings(ctx, name) {
			if keys = append(keys, b.Name); err != nil || len(keys) == offered {
				return err
			}
		}
		return nil
	})
	return keys, err
}
