package reader

import (
	"context"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Pause is what a name says of its own pause. One that is not paused has no Until.
type Pause struct {
	Until, Since int64 // ms; Since is 0 where it is not known
	Reason       string
	notice       int64 // the number of the last pause of all names that whoever decided knew of
}

// pauseOf is the pause of a fat name, of its values and its field.
func (t *turn) pauseOf(v *state.Values, text string) (p Pause) {
	said, err := state.ParsePause(text)
	if err == nil {
		p.notice = said.Notice
	}
	if v.Pause > t.now {
		p.Until = v.Pause
	}
	if err == nil && said.Paused && p.Until > 0 {
		p.Since, p.Reason = said.Revision, said.Reason
	}
	return p
}

// Under is the pause of a name, nil for none, while all names of its kind are paused by a notice: whoever comes upon the name
// pauses it so, unless somebody has decided otherwise who knew of the notice, or it is paused for longer.
func (p Pause) Under(all notice.Field, now int64) *berth.Pause {
	if all.Until > now && p.notice < all.Number && p.Until < all.Until {
		p = Pause{Until: all.Until, Since: all.Number, Reason: all.What}
	}
	if p.Until <= now {
		return nil
	}
	return &berth.Pause{Left: state.Millis(p.Until - now), Since: state.Instant(p.Since), Reason: p.Reason}
}

// Notice is what operators have said of a pause of all names of a kind. Its errors are state.ErrDamaged, and the server's.
func (r *Reader) Notice(ctx context.Context, kind keyspace.Kind) (notice.Field, error) {
	var p trip
	pause := p.fields(r.space.Notice(), "", notice.Pause(kind))
	answers, err := r.run.Read(ctx, "notice", scriptkit.From{Primary: r.decide, Unasked: !r.decide, Untimed: true}, p.commands...)
	if err != nil {
		return notice.Field{}, err
	}
	p.results = answers.Results
	told := notice.Read(p.texts(pause)[0])
	if p.err == nil && told.Damaged {
		p.err = fmt.Errorf("berth: the pause of all names of %q is %w", kind, state.ErrDamaged)
	}
	return told, p.err
}

// PauseNow is the pause of one name, nil for none, in one trip. A thin name has none.
func (r *Reader) PauseNow(ctx context.Context, kind keyspace.Kind, name string) *berth.Pause {
	var p trip
	at := p.fields(r.space.State(kind, name), "", "v", "pause")
	answers, err := r.run.Read(ctx, "pause", scriptkit.From{Unasked: true}, p.commands...)
	if err != nil {
		return nil
	}
	p.results = answers.Results
	texts := p.texts(at)
	values, _, _ := state.ParseValues(texts[0]) // what is damaged is not paused here
	t := turn{now: answers.Now}
	return t.pauseOf(&values, texts[1]).Under(notice.Field{}, t.now)
}
