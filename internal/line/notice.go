package line

import (
	"cmp"
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// NewNotice returns what a client knows of its kind's notice. The nodes of the client share it; the
// client closes it behind them.
func NewNotice(cfg Config) *notice.Notice {
	return notice.New(notice.Config{
		Clock: cfg.Clock, Label: cfg.Settings.Label, Timeout: cfg.Settings.CallTimeout,
		Read: func(ctx context.Context) (map[string]string, int64, error) { return readNotice(ctx, cfg) },
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

// readNotice reads the fields of the kind's notice, and the time of the server that has them (ms).
func readNotice(ctx context.Context, cfg Config) (map[string]string, int64, error) {
	a, err := cfg.Runner.Read(ctx, "notice", scriptkit.From{Primary: true}, scriptkit.Command{
		Verb: []string{"HGETALL"}, Keys: []string{cfg.Space.Notice(cfg.Kind)},
	})
	if err != nil {
		return nil, 0, err
	}
	fields, err := a.Results[0].AsStrMap()
	return fields, a.Now, err
}

// say sets a field of the notice, and returns its number. It returns berth.ErrStale if another call
// has set the field since this one began.
func (s *Calls) say(ctx context.Context, call, field string, lasts time.Duration, what string) (int64, error) {
	fields, _, err := readNotice(ctx, s.cfg)
	if err != nil {
		return 0, err
	}
	seen := Decimal(notice.Read(fields[field]).Number)
	r, err := s.cfg.Runner.Run(ctx, s.noticeSet, scriptkit.Bounded, []string{s.cfg.Space.Notice(s.cfg.Kind)},
		[]string{field, Decimal(lasts.Milliseconds()), what, seen, call})
	if err != nil {
		return 0, err
	}
	switch r.Status() {
	case statusSet:
		return r.Int(1), r.Err()
	case statusStale:
		stale := error(&berth.StaleError{Changed: text(&r, 3)})
		if field == notice.Pause {
			stale = staleAll(r.Int(2) > 0, text(&r, 3))
		}
		return 0, cmp.Or(r.Err(), stale)
	case statusCrowded:
		return 0, berth.Invalid("target", "100 nodes and labels were told to drain within a day, and no more can be")
	}
	return 0, Unexpected(field, &r)
}

// staleAll is the error of a pause of all names, or of its end, that another one has overtaken.
func staleAll(paused bool, reason string) error {
	if !paused {
		return &berth.StaleError{Changed: "unpaused"}
	}
	return &berth.StaleError{Changed: "paused: " + reason}
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
