package line

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// NewNotice returns what a process knows of the notice. Its nodes share it; Process.Close ends it behind them.
func NewNotice(cfg Config) *notice.Notice {
	return notice.New(notice.Config{
		Clock: cfg.Clock, Label: cfg.Settings.Label, Kinds: Kinds, Timeout: cfg.Settings.CallTimeout,
		Apart: cfg.Redis.Mode() == rueidis.ClientModeCluster,
		Read:  (&hearing{Config: cfg}).read,
		Failed: func(err error) {
			cfg.Tell.Send(observe.Event{Kind: observe.NoticeFailed, Err: err})
		},
		Heard: func(field string, why error) {
			word := notice.Drain
			if why == nil {
				word = notice.Stop
			}
			cfg.Tell.Send(observe.Event{Kind: observe.Draining, Detail: word + " " + notice.Target(field).String(), Err: why})
		},
	})
}

const (
	// mostTold is how many fields a notice has that is read whole; Berth writes 103 at the most.
	mostTold = 10_000
	// scannedTold is about how many fields one HSCAN passes: what is on the same connection waits for no more.
	scannedTold = 1000
)

// longFor is for how long a field is not asked for again that had more than any text of Berth: on the connection of the
// heartbeats it would cost its size each time.
const longFor = time.Minute

// hearing is how a process reads the notice, on one goroutine.
type hearing struct {
	Config
	crowded bool                     // when it was read last, it had too many fields
	long    map[string]time.Duration // own fields that had such a text, and "" for a pattern: until when they are not asked for, on the clock
}

// read reads the fields of the process, and those of labels that end in *: where there are few of them, in one trip. Of a
// notice with too many fields it reads none but the process's own.
func (h *hearing) read(ctx context.Context, own []string) (told notice.Told, err error) {
	key, whole := []string{h.Space.Notice()}, !h.crowded && !h.spares("")
	asked := slices.DeleteFunc(slices.Clone(own), h.spares)
	commands := []scriptkit.Command{{Verb: []string{"HLEN"}, Keys: key}}
	if len(asked) > 0 {
		commands = append(commands, scriptkit.Command{Verb: []string{"HMGET"}, Keys: key, Args: asked})
	}
	if whole {
		commands = append(commands, h.scan("0"))
	}
	a, err := h.Runner.Read(ctx, "notice", scriptkit.From{Primary: true}, commands...)
	if err != nil {
		return told, err
	}
	size, err := a.Results[0].AsInt64()
	if err != nil {
		return told, err
	}
	told = notice.Told{Now: a.Now, Fields: map[string]string{}}
	for field := range h.long {
		told.Fields[field] = "long" // which is damaged
	}
	delete(told.Fields, "")
	pages := a.Results[1:]
	if len(asked) > 0 {
		texts, err := pages[0].AsStrSlice()
		if err != nil {
			return told, err
		}
		for i, text := range texts {
			told.Fields[asked[i]] = h.bounded(asked[i], text)
		}
		pages = pages[1:]
	}
	if h.crowded = size > mostTold; h.crowded {
		told.Problem = crowded(size)
		return told, nil
	}
	if !h.spares("") {
		err = h.patterns(ctx, told.Fields, pages)
	}
	if h.spares("") {
		told.Problem = errLong
	}
	return told, err
}

// spares says whether a field is not asked for.
func (h *hearing) spares(field string) bool {
	until, long := h.long[field]
	if long && h.Clock.Now() >= until {
		delete(h.long, field)
		return false
	}
	return long
}

// bounded is the text of a field that was asked for as what, of which only the first letter is left if it is longer than
// may be.
func (h *hearing) bounded(what, text string) string {
	short := state.Bounded(text)
	if len(short) < len(text) {
		if h.long == nil {
			h.long = map[string]time.Duration{}
		}
		h.long[what] = h.Clock.Now() + longFor
	}
	return short
}

var errLong = fmt.Errorf("berth: what operators say to all has a text that is %w: a drain of a label with * is not heard", state.ErrDamaged)

// crowded is the error of a notice that is not read whole.
func crowded(fields int64) error {
	return fmt.Errorf("berth: what operators say to all has %d fields, and Berth writes 103 at the most: a drain of a label with * is not heard", fields)
}

// patterns adds the fields of labels that end in *, of which some pages may have been read.
func (h *hearing) patterns(ctx context.Context, fields map[string]string, pages []rueidis.RedisResult) error {
	for cursor := "0"; ; {
		for _, page := range pages {
			found, err := page.AsScanEntry()
			if err != nil {
				return err
			}
			for i := 0; i < len(found.Elements); i += 2 {
				fields[found.Elements[i]] = h.bounded("", found.Elements[i+1])
			}
			if found.Cursor == 0 {
				return nil
			}
			cursor = strconv.FormatUint(found.Cursor, 10)
		}
		a, err := h.Runner.Read(ctx, "notice", scriptkit.From{Primary: true, Untimed: true}, h.scan(cursor))
		if err != nil {
			return err
		}
		pages = a.Results
	}
}

// scan asks for a page of the fields of labels that end in *.
func (h *hearing) scan(cursor string) scriptkit.Command {
	return scriptkit.Command{
		Verb: []string{"HSCAN"}, Keys: []string{h.Space.Notice()},
		Args: []string{cursor, "MATCH", notice.Label + `*\*`, "COUNT", strconv.Itoa(scannedTold)},
	}
}

// readNotice reads fields of the notice, and the time of the server that has it (ms).
func readNotice(ctx context.Context, cfg *Config, fields ...string) ([]notice.Field, int64, error) {
	a, err := cfg.Runner.Read(ctx, "notice", scriptkit.From{Primary: true}, scriptkit.Command{
		Verb: []string{"HMGET"}, Keys: []string{cfg.Space.Notice()}, Args: fields,
	})
	if err != nil {
		return nil, 0, err
	}
	texts, err := a.Results[0].AsStrSlice()
	if err != nil {
		return nil, 0, err
	}
	told := make([]notice.Field, len(fields))
	for i := range told {
		told[i] = notice.Read(texts[i])
	}
	return told, a.Now, nil
}

// Notices returns why processes do not hear all that operators say to them.
func (p *Process) Notices(ctx context.Context) (problems []error) {
	var own []string
	for _, kind := range Kinds {
		own = append(own, notice.Pause(kind))
	}
	h := hearing{Config: p.Config, crowded: true} // so that nothing but the fields is read
	told, err := h.read(ctx, own)
	if err = cmp.Or(err, told.Problem); err != nil {
		return []error{err}
	}
	if _, _, err := p.decide.Drains(ctx); err != nil {
		problems = append(problems, fmt.Errorf("berth: drains are not readable, and one of a label with * is not heard (needs +hscan): %w", err))
	}
	for _, kind := range Kinds {
		if notice.Read(told.Fields[notice.Pause(kind)]).Damaged {
			problems = append(problems, fmt.Errorf("%s: berth: the pause of all names is %w", kind, state.ErrDamaged))
		}
	}
	return problems
}

// say sets fields of the notice, and returns their number. It returns berth.ErrOvertaken if another call
// has set one of them since this one began.
func (p *Process) say(ctx context.Context, lasts time.Duration, what string, fields ...string) (int64, error) {
	old, _, err := readNotice(ctx, &p.Config, fields...)
	if err != nil {
		return 0, err
	}
	args := []string{Decimal(lasts.Milliseconds()), what, p.Node().Engine.ClaimID()}
	for i, field := range fields {
		args = append(args, field, Decimal(old[i].Number))
	}
	r, err := p.Runner.Run(ctx, composed.NoticeSet, scriptkit.Bounded, []string{p.Space.Notice()}, args)
	if err != nil {
		return 0, err
	}
	switch r.Status() {
	case statusSet:
		return r.Int(1), r.Err()
	case statusStale:
		stale := error(&berth.OvertakenError{Changed: drained(text(&r, 3))})
		if strings.HasPrefix(text(&r, 4), notice.Pause("")) {
			stale = staleAll(r.Int(2) > 0, text(&r, 3))
		}
		return 0, cmp.Or(r.Err(), stale)
	case statusCrowded:
		return 0, berth.Invalid("target", "100 nodes and labels were told to drain within a day, and no more can be")
	}
	return 0, Unexpected(fields[0], &r)
}

// drained is what a field of a drain says, for people.
func drained(what string) string { return strings.Replace(what, " ", ": ", 1) }

// staleAll is the error of a pause of all names, or of its end, that another one has overtaken.
func staleAll(paused bool, reason string) error {
	if !paused {
		return &berth.OvertakenError{Changed: "unpaused"}
	}
	return &berth.OvertakenError{Changed: "paused: " + reason}
}
