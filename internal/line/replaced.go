package line

import (
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Replaced says whether a call that a node has answered so is to be made again: the node was replaced, its places are
// gone, and the process has another one by now. Else it returns the error for the caller.
func (p *Process) Replaced(ctx context.Context, former *Node, err error) (again bool, _ error) {
	if !errors.Is(err, engine.ErrReplaced) {
		return false, err
	}
	if p.await(ctx, former) {
		return true, nil
	}
	reason, cause := berth.ReasonClosed, berth.ErrClosed
	if ctx.Err() != nil {
		reason, cause = EndOf(ctx)
	}
	if refusal, ok := errors.AsType[*berth.AcquireError](err); ok {
		refusal.Reason, refusal.Cause = reason, cause
		return false, err
	}
	return false, cause
}

// await waits until the process has another node than the one given. It reports false if it will not, or ctx has ended.
func (p *Process) await(ctx context.Context, former *Node) bool {
	select {
	case <-former.over:
		return p.node.Load() != former && ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Rest is what is left of a bound for all of a call, of which so much has passed: at least a millisecond; 0 for no bound.
func Rest(bound, passed time.Duration) time.Duration {
	if bound <= 0 {
		return 0
	}
	return max(bound-passed, time.Millisecond)
}

// EndOf is the reason and the cause of a refusal because ctx has ended.
func EndOf(ctx context.Context) (berth.Reason, error) {
	reason := berth.ReasonCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		reason = berth.ReasonTimedOut
	}
	return reason, errors.Join(ctx.Err(), context.Cause(ctx))
}

// Resume is Face.Resume under the node that the process has; if that is replaced meanwhile, under the next one.
func (p *Process) Resume(ctx context.Context, kind keyspace.Kind, token berth.Token, own func(*engine.Claim)) (*Face, *engine.Hold, error) {
	for {
		f := p.Face(kind)
		hold, err := f.Resume(ctx, token, own)
		if errors.Is(err, berth.ErrClosed) && !p.Closed() {
			err = engine.ErrReplaced
		}
		again, err := p.Replaced(ctx, f.Node, err)
		if !again {
			return f, hold, err
		}
	}
}
