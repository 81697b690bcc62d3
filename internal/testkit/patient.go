package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit/lag"
)

// Patience bounds every wait of a Patient for something that must happen. It is far above
// what anything takes, so that only what hangs meets it.
const Patience = 3 * time.Minute

// Patient is a test in real time, which fails for nothing that a slow machine does.
type Patient struct{ *testing.T }

// Safe is a lease that no pause of a machine ends, for holds that end by nothing else in a test, or by the death of their
// process.
const Safe = 10 * time.Second

// RealTime is a test that relies on leases of Safe, and on no bound shorter than a third of that.
func RealTime(t *testing.T) Patient {
	t.Helper()
	p := Patient{t}
	p.Relies(Safe)
	return p
}

// Relies says that the test relies on a shorter lease, too, or on a bound of a third of that.
func (p Patient) Relies(lease time.Duration) {
	p.Helper()
	lag.Relies(p.T, lease/3)
}

// Within bounds a step of the test.
func (p Patient) Within(d time.Duration) context.Context {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	p.Cleanup(cancel)
	return ctx
}

// Signalled waits until the channel is closed.
func (p Patient) Signalled(what string, done <-chan struct{}) {
	p.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		require.FailNow(p, "waited too long", "for %s", what)
	}
}

// Await polls until cond holds.
func (p Patient) Await(what string, cond func() bool) {
	p.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	// A look costs the server and the test something, so what takes long is looked at
	// less often.
	for pause := time.Millisecond; !cond(); pause = min(2*pause, 50*time.Millisecond) {
		select {
		case <-timer.C:
			require.FailNow(p, "waited too long", "until %s", what)
		case <-time.After(pause):
		}
	}
}

// Call is a call on its way.
type Call[T any] struct {
	// Done is closed when it has returned, with Got and Err.
	Done chan struct{}
	Got  T
	Err  error
}

// Begin begins a call that may wait.
func Begin[T any](ctx context.Context, call func(context.Context) (T, error)) *Call[T] {
	c := &Call[T]{Done: make(chan struct{})}
	go func() {
		defer close(c.Done)
		c.Got, c.Err = call(ctx)
	}()
	return c
}

// Over says whether the call has returned.
func (c *Call[T]) Over() bool {
	select {
	case <-c.Done:
		return true
	default:
		return false
	}
}

// signalled is a Patient, or what embeds one.
type signalled interface {
	require.TestingT
	Helper()
	Signalled(what string, done <-chan struct{})
}

// Wait waits until the call has returned, without an error.
func (c *Call[T]) Wait(p signalled) T {
	p.Helper()
	p.Signalled("the call", c.Done)
	require.NoError(p, c.Err)
	return c.Got
}

// Fails waits until the call has returned with an error that matches.
func (c *Call[T]) Fails(p signalled, targets ...error) {
	p.Helper()
	p.Signalled("the call", c.Done)
	for _, target := range targets {
		require.ErrorIs(p, c.Err, target)
	}
}
