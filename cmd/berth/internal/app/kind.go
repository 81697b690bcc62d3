package app

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Operator has the operator's calls that all kinds have.
type Operator interface {
	Release(ctx context.Context, target berth.Target) (int, error)
	Want(ctx context.Context, target berth.Target) (int, error)
	Sweep(ctx context.Context, names ...string) (int, error)
	Pause(ctx context.Context, name string, lasts time.Duration, reason string) error
	Unpause(ctx context.Context, name string) error
}

// Kind is what commands have to know of semaphores, locks or pools that are otherwise alike.
type Kind struct {
	keyspace.Kind
	Noun string // what one is called
	With func(ctx context.Context, f func(context.Context, Operator) error) error
}
