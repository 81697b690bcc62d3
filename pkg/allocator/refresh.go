package allocator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/refresh"
	"github.com/berth-go/berth/pkg/observe"
)

// start begins the background work of a pool with a Source or an Open: it keeps the
// pool filled, and closes values whose resources have left it.
func (p *Pool[T]) start() {
	if p.cfg.Source == nil && p.cfg.Open == nil {
		return
	}
	cfg := refresh.Config{
		Every: p.cfg.RefreshEvery, Turn: p.core.turn, Stay: p.core.stay, Absent: p.core.absent,
		Replace: func(ctx context.Context, resources []string) error {
			_, err := p.refill(ctx, resources)
			return err
		},
		Idle: p.values.Idle, Drop: p.values.Drop,
		Tell: func(ctx context.Context, resources int, err error) {
			ev := observe.Event{Kind: observe.Refreshed, Context: ctx, Count: resources}
			if err != nil {
				ev = observe.Event{Kind: observe.RefreshFailed, Context: ctx, Err: err}
			}
			p.core.tell(ev)
		},
	}
	if p.cfg.Source != nil {
		cfg.Source = p.source
	}
	p.refresher = refresh.Start(cfg)
}

// Refresh calls Source now, on the caller's goroutine, even if it is another node's turn, and replaces the resources of
// the pool by the answer.
//
// Refresh returns the error of Source, and an error for an empty answer unless AllowEmpty is set. It returns
// berth.ErrInvalidConfig without a Source or for a bad key, and berth.ErrOvertaken if another call has meanwhile begun
// a newer Replace or removed resources. It also returns berth.ErrClosed or the server's error. The Change is valid even
// with an error.
func (p *Pool[T]) Refresh(ctx context.Context) (change Change, err error) {
	if err := p.core.usable(); err != nil {
		return Change{}, err
	}
	if p.cfg.Source == nil {
		return Change{}, berth.Invalid("Source", "the pool has none that could be asked")
	}
	err = p.refresher.Now(ctx, func(ctx context.Context, resources []string) (err error) {
		change, err = p.refill(ctx, resources)
		return err
	})
	return change, err
}

// source asks Source, and returns its answer without repeats. One bad key refuses the
// whole answer: a list that is broken in one place is not to be trusted.
func (p *Pool[T]) source(ctx context.Context) ([]string, error) {
	resources, err := p.cfg.Source(ctx)
	if err != nil {
		return nil, err
	}
	if len(resources) == 0 && !p.cfg.AllowEmpty {
		return nil, errors.New("berth: Source returned no resources; AllowEmpty lets that empty the pool")
	}
	for i, resource := range resources {
		if err := checkResource(resource); err != nil {
			return nil, fmt.Errorf("berth: element %d of what Source returned: %w", i, err)
		}
	}
	return unique(resources), nil
}

// refill has the pool hold what Source returned.
func (p *Pool[T]) refill(ctx context.Context, resources []string) (Change, error) {
	return p.core.replace(ctx, resources, p.cfg.Expiry, p.cfg.MaxSharers, nil)
}

// turn asks whether it is this node's turn to ask the source; left is the time until it
// may be. The next node may ask after every, unless stay moves that on. It is never that of a process that
// drains.
func (p *core) turn(ctx context.Context, every time.Duration) (mine bool, left time.Duration, err error) {
	if p.pools.p.Notice.Drains() {
		return false, every, nil
	}
	p.turnID = p.pools.face().Engine.ClaimID()
	return p.refreshing(ctx, every, "0")
}

// stay moves on when the next node may ask the source, while the answer is not there
// yet.
func (p *core) stay(ctx context.Context, every time.Duration) error {
	_, _, err := p.refreshing(ctx, every, "1")
	return err
}

// absent returns those of the resources, up to 200, that are not in the pool.
func (p *core) absent(ctx context.Context, resources []string) ([]string, error) {
	found, err := p.pools.face().Decide.Resources(ctx, p.name, resources...)
	var gone []string
	for _, r := range found {
		if r.Word == reader.Absent {
			gone = append(gone, r.Key)
		}
	}
	return gone, err
}
