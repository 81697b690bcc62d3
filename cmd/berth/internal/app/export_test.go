package app

import (
	"context"
	"time"
)

// Pages returns what prints a page of a command that is repeated each second, and says how long to wait for the next one.
func Pages(a *App) func(ctx context.Context, once func(context.Context) error) (time.Duration, error) {
	p := repeats{a: a, every: time.Second, errs: a.Err}
	return p.next
}
