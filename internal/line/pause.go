package line

import (
	"cmp"
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Pause has nothing granted of a name for so long, why is any text of up to 512 bytes. A pause of all names that
// lasts longer goes on behind it. It returns
// *berth.ConfigError, berth.ErrOvertaken, berth.ErrIncompatible, or the server's error.
func (n *Face) Pause(ctx context.Context, name string, lasts time.Duration, why string) error {
	if err := checkPause(lasts, why); err != nil {
		return err
	}
	return n.decide(ctx, name, lasts, why)
}

// checkPause returns a *berth.ConfigError for a pause that cannot be.
func checkPause(lasts time.Duration, why string) error {
	if lasts <= 0 || lasts > notice.MostPause {
		return berth.Invalid("lasts", "%s is not above 0 and at most %s", lasts, notice.MostPause)
	}
	if err := settings.Duration("lasts", lasts); err != nil {
		return err
	}
	return settings.Text("reason", why)
}

// Unpause ends the pauses of a name; that it has none is noted, too: an older Pause may still come.
func (n *Face) Unpause(ctx context.Context, name string) error { return n.decide(ctx, name, 0, "") }

// decide runs the kind's script of pauses, and sweeps on where it stopped at its bound. 0 ends the
// pauses, and excepts the name from the last pause of all names; where that cannot be read, it returns the
// error: the next claim would have the name paused again.
func (n *Face) decide(ctx context.Context, name string, lasts time.Duration, why string) error {
	if err := keyspace.CheckName(name); err != nil {
		return err
	}
	call := "Pause"
	if lasts == 0 {
		call = "Unpause"
	}
	seen, err := n.Revision(ctx, call, name)
	if err != nil {
		return err
	}
	known := int64(0)
	if lasts == 0 {
		told, ms, err := readNotice(n.For(ctx, call, name), &n.cfg, notice.Pause(n.kind.Kind))
		if err != nil {
			return err
		}
		known = cmp.Or(told[0].Number, ms) // of a pause that the server has lost, and clients keep to
	}
	r, err := n.Run(ctx, n.kind.Scripts.Pause, scriptkit.Bounded, name,
		Decimal(lasts.Milliseconds()), why, Decimal(seen), n.Engine.ClaimID(), Decimal(known))
	if err != nil {
		return err
	}
	ev := observe.Event{Kind: observe.Paused, Context: ctx, Name: name, Left: Left(num(&r, 1)), Detail: why}
	switch r.Status() {
	case statusPaused:
	case statusUnpaused:
		ev = observe.Event{Kind: observe.Unpaused, Context: ctx, Name: name, Count: int(r.Int(3))}
	case statusStale:
		stale, _ := Stale(name, &r)
		if r.Err() != nil {
			return r.Err()
		}
		return stale
	default:
		return Unexpected(name, &r)
	}
	more := More(&r, 4)
	if r.Err() != nil {
		return r.Err()
	}
	n.Tell.Send(ev)
	return n.SweepOn(ctx, name, more)
}

// pauseOf reads what a script says of the pause that was the reason of a refusal: behind what all
// refusals have left_ms, since, reason.
func pauseOf(r *scriptkit.Reply) *berth.Pause {
	return &berth.Pause{Left: state.Millis(num(r, 7)), Since: state.Instant(num(r, 8)), Reason: text(r, 9)}
}
