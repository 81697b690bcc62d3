package line

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// NewNotice returns what a client knows of its kind's notice. The nodes of the client share it; the
// client closes it behind them.
func NewNotice(cfg Config) *notice.Notice {
	return notice.New(notice.Config{
		Clock: cfg.Clock, Label: cfg.Settings.Label, Timeout: cfg.Settings.CallTimeout,
		Read: func(ctx context.Context) (map[string]string, int64, error) {
			a, err := cfg.Runner.Read(ctx, "notice", scriptkit.From{Primary: true}, scriptkit.Command{
				Verb: []string{"HGETALL"}, Keys: []string{cfg.Space.Notice(cfg.Kind)},
			})
			if err != nil {
				return nil, 0, err
			}
			fields, err := a.Results[0].AsStrMap()
			return fields, a.Now, err
		},
		Failed: func(err error) {
			cfg.Tell.Send(observe.Event{Kind: observe.NoticeFailed, Err: err})
		},
		Heard: func(drains bool, field string) {
			word := notice.Drain
			if !drains {
				word = notice.Stop
			}
			cfg.Tell.Send(observe.Event{Kind: observe.Draining, Detail: word + " " + field})
		},
	})
}

// before is engine.Config.Before: it reads the notice, if that was read too long ago.
func (s *Calls) before(ctx context.Context, c *engine.Claim) (*berth.AcquireError, error) {
	s.cfg.Notice.Current(ctx)
	return nil, nil
}

// settle is engine.Config.Settle: it asks whether the process drains, and whether the node is dead.
func (s *Calls) settle(ctx context.Context) {
	if s.cfg.Notice != nil {
		s.cfg.Notice.Ask(ctx)
	}
	if s.cfg.Swarm != nil {
		s.cfg.Swarm.Settle(ctx, s.ID)
	}
}
