package main

import (
	"context"
	"iter"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// operator has the operator's calls that all kinds have.
type operator interface {
	Holders(ctx context.Context, name string) iter.Seq2[berth.Holder, error]
	Waiters(ctx context.Context, name string) iter.Seq2[berth.Waiter, error]
	Release(ctx context.Context, target berth.Target) (int, error)
	Sweep(ctx context.Context, names ...string) (int, error)
}

// kind is what commands have to know of semaphores, locks or pools that are otherwise alike.
type kind struct {
	noun  string // what one is called
	names listing
	with  func(ctx context.Context, f func(context.Context, operator) error) error
}

func (a *app) semKind() kind {
	return kind{"semaphore", a.semNames, func(ctx context.Context, f func(context.Context, operator) error) error {
		return a.withSems(ctx, semaphore.Config{}, func(ctx context.Context, sems *semaphore.Client) error { return f(ctx, sems.Operator()) })
	}}
}

func (a *app) lockKind() kind {
	return kind{"lock", a.lockNames, func(ctx context.Context, f func(context.Context, operator) error) error {
		return a.withLocks(ctx, qlock.Config{}, func(ctx context.Context, locks *qlock.Client) error { return f(ctx, locks.Operator()) })
	}}
}

func (a *app) poolKind() kind {
	return kind{"pool", a.poolNames, func(ctx context.Context, f func(context.Context, operator) error) error {
		return a.withPools(ctx, func(ctx context.Context, pools *allocator.Client) error { return f(ctx, pools.Operator()) })
	}}
}
