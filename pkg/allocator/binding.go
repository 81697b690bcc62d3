package allocator

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// BindOptions are the options of Bind. A nil pointer means all defaults.
type BindOptions struct {
	// BindFor is how long the binding lasts: whole milliseconds, or berth.Forever. Default as in
	// the Settings.
	BindFor time.Duration
}

// checkBind refuses a bad name of a binding.
func checkBind(field, name string) error {
	if name == "" {
		return berth.Invalid(field, "it is empty")
	}
	return settings.Text(field, name)
}

// Bind binds a name, 1 to 512 bytes of any kind, to a resource, and replaces an earlier binding
// of the name. Bind returns berth.ErrAbsent if the resource is not in the pool, is leaving it
// or is damaged, berth.ErrInvalidConfig for bad arguments, or the server's error.
func (p *Pool[T]) Bind(ctx context.Context, name, resource string, opts *BindOptions) error {
	if err := p.core.usable(); err != nil {
		return err
	}
	lasts := time.Duration(0)
	if opts != nil {
		lasts = opts.BindFor
	}
	if err := checkBind("name", name); err != nil {
		return err
	}
	if err := checkResource(resource); err != nil {
		return err
	}
	if err := settings.Duration("BindFor", lasts); err != nil {
		return err
	}
	return p.core.bind(ctx, name, resource, lasts)
}

// Unbind ends a binding, if there is one. Unbind returns berth.ErrInvalidConfig for a bad name,
// or the server's error.
func (p *Pool[T]) Unbind(ctx context.Context, name string) error {
	if err := p.core.usable(); err != nil {
		return err
	}
	if err := checkBind("name", name); err != nil {
		return err
	}
	return p.core.bind(ctx, name, "", 0)
}

// Binding reads a binding. If the binding does not exist or has ended, or if its resource is
// not in the pool, the result has no Resource and the error is nil. Binding returns
// berth.ErrInvalidConfig for a bad name, berth.ErrIncompatible, or the server's error.
func (p *Pool[T]) Binding(ctx context.Context, name string) (berth.Binding, error) {
	if err := p.core.usable(); err != nil {
		return berth.Binding{}, err
	}
	if err := checkBind("name", name); err != nil {
		return berth.Binding{}, err
	}
	return p.core.pools.look.Binding(ctx, p.core.name, name)
}
