package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// eventsCommand is berth events, which follows what changes.
func (a *App) eventsCommand() *cobra.Command {
	var kinds []string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Follow what changes: grants, releases, waits, pauses, and what is stuck",
		Long: `Follow the names that 'berth top' shows, and print what changes, one change a line, until
Ctrl-C. No server tells of changes: this looks each 2 s and compares. What begins and ends
between two looks is not seen, nor are names beyond the 200 that are in the worst state or
contend most; names that nobody waits for are looked for each half minute. A claim is named
where a look tells it, else there is a number. "gave up" are waits that ended without a grant.
A cycle is seen within half a minute. At first it tells what is bad already. The times are
the server's.`,
		Example: "  berth events\n  berth events --kind lock --json",
		Args:    Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			some, err := KindsOf(kinds...)
			if err != nil {
				return err
			}
			return a.follow(cmd.Context(), some)
		}),
	}
	kindsFlag(cmd, &kinds)
	return cmd
}

// follow prints what changes until somebody ends it.
func (a *App) follow(ctx context.Context, kinds []keyspace.Kind) error {
	a.repeated = true
	return a.untilEnded(ctx, func(ctx context.Context) error {
		return a.WithReader(ctx, func(ctx context.Context, read *inspect.Reader) error {
			w := watch.New(read, nil)
			defer w.Close()
			feed := w.Overview()
			defer feed.Close()
			fmt.Fprintf(a.Err, "berth: looks each %s, and sees nothing of what begins and ends in between\n", text.Human(watch.OverviewEvery))
			f := following{kinds: kinds, names: map[berth.Ref]berth.Name{}}
			for seq, silent := 0, false; ; {
				last, news := feed.Last()
				switch {
				case last.Seq == seq:
				case last.Err == nil:
					for _, e := range f.look(last.Value) {
						if err := a.printEvent(e); err != nil {
							return err
						}
					}
				case !silent:
					a.tell(last.Err)
				}
				if last.Seq != seq {
					seq, silent = last.Seq, last.Err != nil
				}
				select {
				case <-news:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		})
	})
}

// untilEnded runs f until a signal asks to end. That is no error where it is an interrupt: nothing else ends f.
func (a *App) untilEnded(ctx context.Context, f func(context.Context) error) error {
	err := UntilInterrupted(ctx, f)
	if ended := (*interrupted)(nil); errors.As(err, &ended) && ended.sig == os.Interrupt {
		return nil
	}
	return err
}

// following compares each look with the one before.
type following struct {
	kinds []keyspace.Kind // none for all
	at    time.Time       // of the last look, zero before the first
	names map[berth.Ref]berth.Name
}

// eventDocument is a change. Without a claim it is of as many as Count says.
type eventDocument struct {
	At    time.Time     `json:"at"`
	Kind  keyspace.Kind `json:"kind"`
	Name  string        `json:"name"`
	Event string        `json:"event"`
	Count int           `json:"count,omitzero"`
	Claim string        `json:"claim,omitzero"`
	Label string        `json:"label,omitzero"`
	Owner string        `json:"owner,omitzero"`
	Fence int64         `json:"fence,omitzero"`
	Why   string        `json:"why,omitzero"`
}

// look returns what has changed since the last look. Of names that it has not met it tells what is new since then, and what is bad.
func (f *following) look(page inspect.Page[berth.Name]) (events []eventDocument) {
	there := map[berth.Ref]bool{}
	for _, n := range page.Items {
		ref := berth.Ref{Kind: n.Kind, Name: n.Name}
		there[ref] = true
		was, met := f.names[ref]
		if len(f.kinds) > 0 && !slices.Contains(f.kinds, n.Kind) || met && n.At.Equal(was.At) {
			continue
		}
		if !met {
			was = berth.Name{At: cmp.Or(f.at, n.At)}
		}
		events = append(events, changes(was, n, met)...)
		f.names[ref] = n
	}
	for ref, was := range f.names {
		if there[ref] {
			continue
		}
		delete(f.names, ref)
		if !page.Partial { // nobody holds it or waits for it
			gone := berth.Name{Kind: ref.Kind, Name: ref.Name, Fence: was.Fence, At: page.At, Trouble: berth.Trouble{Level: berth.LevelFree}}
			events = append(events, changes(was, gone, true)...)
		}
	}
	f.at = page.At
	slices.SortStableFunc(events, func(a, b eventDocument) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return events
}

// changes are what has become of a name; of one that was not met was has only At.
func changes(was, is berth.Name, met bool) (events []eventDocument) {
	add := func(e eventDocument) {
		e.At, e.Kind, e.Name = is.At, is.Kind, is.Name
		events = append(events, e)
	}
	several := func(event string, count int) {
		if count > 0 {
			add(eventDocument{Event: event, Count: count})
		}
	}
	if is.Err == nil && was.Err == nil {
		began := 0
		for _, w := range is.First {
			if w.Since.After(was.At) {
				began++
				add(eventDocument{Event: "waits", Count: 1, Claim: w.ID, Label: w.Label, Owner: w.Owner})
			}
		}
		granted, named := 0, 0
		if met {
			several("waits", is.Live()-was.Live()-began)
			began = max(began, is.Live()-was.Live())
			if granted = max(0, holds(&is)-holds(&was)); is.Fence > was.Fence && is.Kind != keyspace.Pool { // that of a pool rises also otherwise
				granted = max(granted, 1)
			}
		}
		if h := is.Longest; h != nil && h.Granted.After(was.At) {
			named, granted = 1, max(granted, 1)
			add(eventDocument{Event: "granted", Count: 1, Claim: h.ID, Label: h.Label, Owner: h.Owner, Fence: h.Fence})
		}
		several("granted", granted-named)
		if met {
			several("released", holds(&was)+granted-holds(&is))
			several("gave up", was.Live()+began-is.Live()-granted)
		}
		switch {
		case was.Pause == nil && is.Pause != nil:
			add(eventDocument{Event: "paused", Why: is.Pause.Reason})
		case was.Pause != nil && is.Pause == nil:
			add(eventDocument{Event: "unpaused"})
		}
	}
	bad := func(n *berth.Name) bool { return n.Trouble.Level.Compare(berth.LevelMeant) < 0 }
	switch {
	case is.Trouble == was.Trouble:
	case bad(&is) && (is.Trouble.Level != was.Trouble.Level || is.Trouble.Why != was.Trouble.Why):
		add(eventDocument{Event: string(is.Trouble.Level), Why: strings.TrimPrefix(view.NameState(&is), "stuck: ")})
	case bad(&was) && !bad(&is):
		add(eventDocument{Event: "no longer " + string(was.Trouble.Level)})
	}
	return events
}

// holds is how many hold a name; the entries of a lock's owner are one.
func holds(n *berth.Name) int {
	if n.Kind == keyspace.Lock {
		return n.Held
	}
	return n.Holders
}

func (a *App) printEvent(e eventDocument) error {
	if a.JSON {
		return PrintJSON(a, "", e)
	}
	says := e.Event
	switch {
	case e.Claim != "":
		says += ": " + view.Who(e.Label, e.Owner, e.Claim)
		if e.Fence > 0 {
			says += fmt.Sprintf(", fence %d", e.Fence)
		}
	case e.Count > 0:
		says += fmt.Sprintf(": %d", e.Count)
	case e.Why != "" && e.Why != e.Event:
		says += ": " + text.Plain(e.Why)
	}
	if look := map[string]view.Look{string(berth.LevelStuck): view.Bad, string(berth.LevelOverdue): view.Bad, "paused": view.Busy}[e.Event]; a.Colors() && look != "" {
		says = escapes[look] + says + "\x1b[m"
	}
	_, err := fmt.Fprintf(a.Out, "%s %s %s %s\n", e.At.UTC().Format(time.TimeOnly), e.Kind, text.Plain(e.Name), says)
	return err
}
