package semaphore

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Operator has the calls for operators: it looks at the semaphores of the namespace and
// changes them, whoever holds them. Its methods have the same names in all primitives.
// It is safe for concurrent use.
type Operator struct {
	client *Client
}

// Release ends permits and waits by force, and returns how many, also beside an
// error; see berth.Target. Each place is handed on in the same step. The
// holder's process hears of it, and its permit ends with berth.ErrReleased, a wait
// with ReasonGone. Until the process has heard, two may be inside.
//
// Release returns berth.ErrNotHeld if the target has a name and nothing of it was ended,
// berth.ErrExpired if the time of the claim given had passed, berth.ErrInvalidConfig
// for a target that cannot be, or the server's error.
func (o *Operator) Release(ctx context.Context, target berth.Target) (int, error) {
	return o.client.node.ReleaseTarget(ctx, target, nil)
}

// Sweep drops what has expired from the semaphores given or, without any, from all of
// the namespace, and returns how many claims that were, also beside an error. Calls that
// write drop some on their way; Sweep is for who wants all of it done now. It returns
// berth.ErrInvalidConfig for a bad name, or the server's errors.
func (o *Operator) Sweep(ctx context.Context, names ...string) (int, error) {
	return o.client.node.SweepNames(ctx, names...)
}

// Resize stores another capacity. What is held stays held: below it, grants
// pause until enough is given back. Waiting claims that have become too heavy
// end with ReasonTooHeavy. It returns berth.ErrInvalidConfig; berth.ErrAbsent where no
// capacity is stored, because nobody has used the semaphore or it is forgotten;
// berth.ErrIncompatible; or the server's error.
func (o *Operator) Resize(ctx context.Context, name string, capacity int, opts *ResizeOptions) error {
	if err := keyspace.CheckName(name); err != nil {
		return err
	}
	if err := checkCapacity(capacity); err != nil {
		return err
	}
	if opts == nil {
		opts = &ResizeOptions{}
	}
	return o.client.node.resize(ctx, name, capacity, *opts)
}
