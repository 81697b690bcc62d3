package main

import (
	"context"
	"iter"

	"github.com/berth-go/berth"
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
