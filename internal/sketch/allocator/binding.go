package allocator

import (
	"context"
	"iter"
	"time"
)

// BindOptions are the settings of Bind. Nil stands for the defaults.
type BindOptions struct {
	// BindFor is how long the binding lasts. Default 1 h.
	BindFor time.Duration
}

// Binding is a name and the resource that claims with that name get if it is
// free.
type Binding struct {
	// Name is the name of the binding: any bytes, 1 to 512.
	Name string
	// Resource is the key of the resource, or "" if nothing is bound.
	Resource string
	// Left is how long the binding lasts; berth.Forever for ever.
	Left time.Duration
}

// Bind binds a name to a resource, in place of another one. It returns ErrAbsent
// if the resource is not in the pool.
func (p *Pool[T]) Bind(ctx context.Context, name, resource string, opts *BindOptions) error {
	return errSketch
}

// Unbind ends a binding. It does nothing if there is none.
func (p *Pool[T]) Unbind(ctx context.Context, name string) error { return errSketch }

// Binding reads a binding.
func (p *Pool[T]) Binding(ctx context.Context, name string) (Binding, error) {
	return Binding{}, errSketch
}

// Bindings lists the bindings, in no order.
func (p *Pool[T]) Bindings(ctx context.Context) iter.Seq2[Binding, error] {
	return func(yield func(Binding, error) bool) { yield(Binding{}, errSketch) }
}
