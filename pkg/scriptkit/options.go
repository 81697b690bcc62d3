package scriptkit

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/pace"
)

// Options are the settings of a Runner. The zero value is valid.
type Options struct {
	// Retry bounds how a call in mode Bounded is repeated, and shapes the
	// pauses of UntilDone. Zero fields have the defaults of berth.Retry.
	Retry berth.Retry
	// CallTimeout is how long one attempt may take. Default 3 s.
	CallTimeout time.Duration
	// OnRetry, if not nil, is called before the pause after a failed attempt
	// that will be repeated: attempt is its number, from 1, and ctx the context
	// of the call. It runs on the goroutine of the call, so it must not block.
	// Default nil.
	OnRetry func(ctx context.Context, script string, attempt int, err error)
	// KeepConnections leaves the connections alone where they lead to a replica; see
	// the package's comment. Default false.
	KeepConnections bool
	// OnBreak, if not nil, is called after the Runner has broken the connections: count
	// is how many led to a replica, 0 if the server does not tell; they are not broken
	// again within the pause; err is what the server answered. It runs on the goroutine of a
	// call, so it must not block. Default nil.
	OnBreak func(count int, pause time.Duration, err error)
}

// Validate returns a *berth.ConfigError for the first value that makes no
// sense. NewRunner takes such a value for its default instead.
func (o Options) Validate() error {
	switch r := o.Retry; {
	case r.Attempts < 0:
		return berth.Invalid("Retry.Attempts", "%d is negative", r.Attempts)
	case r.Within < 0:
		return berth.Invalid("Retry.Within", "%s is negative", r.Within)
	case r.Base < 0:
		return berth.Invalid("Retry.Base", "%s is negative", r.Base)
	case r.Factor != 0 && !(r.Factor >= 1): // catches NaN too
		return berth.Invalid("Retry.Factor", "%v is below 1", r.Factor)
	case r.Cap < 0:
		return berth.Invalid("Retry.Cap", "%s is negative", r.Cap)
	case !(r.Jitter <= 1):
		return berth.Invalid("Retry.Jitter", "%v is above 1", r.Jitter)
	case o.CallTimeout < 0:
		return berth.Invalid("CallTimeout", "%s is negative", o.CallTimeout)
	}
	return nil
}

// withDefaults fills what is zero or makes no sense.
func (o Options) withDefaults() Options {
	o.Retry = pace.Complete(o.Retry)
	if o.CallTimeout <= 0 {
		o.CallTimeout = 3 * time.Second
	}
	return o
}
