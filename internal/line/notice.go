package line

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// NewNotice returns what a client knows of its kind's notice. The nodes of the client share it; the
// client closes it behind them.
func NewNotice(cfg Config) *notice.Notice {
	return notice.New(notice.Config{
		Clock: cfg.Clock, Label: cfg.Settings.Label, Timeout: cfg.Settings.CallTimeout,
		Apart: cfg.Redis.Mode() == rueidis.ClientModeCluster,
		Read:  (&hearing{Config: cfg}).read,
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

const (
	// mostTold is how many fields a notice has that is read whole; Berth writes 101 at the most.
	mostTold = 10_000
	// scannedTold is about how many fields one HSCAN passes: what is on the same connection waits for no more.
	scannedTold = 1000
)

// longFor is for how long a field is not asked for again that had more than any text of Berth: on the connection of the
// heartbeats it would cost its size each time.
const longFor = time.Minute

// hearing is how a client reads the notice, on one goroutine.
type hearing struct {
	Config
	crowded bool                     // when it was read last, it had too many fields
	long    map[string]time.Duration // own fields that had such a text, and "" for a pattern: until when they are not asked for, on the clock
}

// read reads the fields of the process, and those of labels that end in *: where there are few of them, in one trip. Of a
// notice with too many fields it reads none but the process's own.
func (h *hearing) read(ctx context.Context, own []string) (told notice.Told, err error) {
	key, whole := []string{h.Space.Notice(h.Kind)}, !h.crowded && !h.spares("")
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
	return fmt.Errorf("berth: what operators say to all has %d fields, and Berth writes 101 at the most: a drain of a label with * is not heard", fields)
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
		Verb: []string{"HSCAN"}, Keys: []string{h.Space.Notice(h.Kind)},
		Args: []string{cursor, "MATCH", notice.Label + `*\*`, "COUNT", strconv.Itoa(scannedTold)},
	}
}

// readNotice reads a field of the kind's notice, and the time of the server that has it (ms).
func readNotice(ctx context.Context, cfg Config, field string) (notice.Field, int64, error) {
	a, err := cfg.Runner.Read(ctx, "notice", scriptkit.From{Primary: true}, scriptkit.Command{
		Verb: []string{"HMGET"}, Keys: []string{cfg.Space.Notice(cfg.Kind)}, Args: []string{field},
	})
	if err != nil {
		return notice.Field{}, 0, err
	}
	texts, err := a.Results[0].AsStrSlice()
	if err != nil {
		return notice.Field{}, 0, err
	}
	return notice.Read(texts[0]), a.Now, nil
}

// Notices returns why clients do not hear all that operators say to the clients of each kind.
func (n *Node) Notices(ctx context.Context) (problems []error) {
	for _, kind := range []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool} {
		h := hearing{Config: n.cfg, crowded: true} // so that nothing but the field is read
		h.Kind = kind
		told, err := h.read(ctx, []string{notice.Pause})
		if err = cmp.Or(err, told.Problem); err == nil && notice.Read(told.Fields[notice.Pause]).Damaged {
			err = fmt.Errorf("berth: the pause of all names is %w", state.ErrDamaged)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", kind, err))
		}
	}
	return problems
}

// say sets a field of the notice, and returns its number. It returns berth.ErrStale if another call
// has set the field since this one began.
func (s *Calls) say(ctx context.Context, call, field string, lasts time.Duration, what string) (int64, error) {
	old, _, err := readNotice(ctx, s.cfg, field)
	if err != nil {
		return 0, err
	}
	r, err := s.cfg.Runner.Run(ctx, composed.NoticeSet, scriptkit.Bounded, []string{s.cfg.Space.Notice(s.cfg.Kind)},
		[]string{field, Decimal(lasts.Milliseconds()), what, Decimal(old.Number), call})
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
