package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/watch"
)

// live is the world of a terminal: a namespace on a server. Only its commands are for other goroutines than that of the
// model.
type live struct {
	ctx     context.Context
	watcher *watch.Watcher
	actor   *act.Actor
	by      string                  // who acts, "" if that is not known
	follow  func(after int) tea.Cmd // of what is looked at
	leave   func()                  // ends the looking

	doing  sync.WaitGroup // of those that have begun
	mu     sync.Mutex
	ended  bool               // nobody reads messages any more, and nothing begins; guarded by mu
	number int                // of the last action; guarded by mu
	asked  map[int]act.Action // which have not begun; guarded by mu
	unsaid []outcome          // what has come of actions since the end; guarded by mu
}

func newLive(ctx context.Context, watcher *watch.Watcher, actor *act.Actor, by string) *live {
	return &live{ctx: ctx, watcher: watcher, actor: actor, by: by, leave: func() {}, asked: map[int]act.Action{}}
}

func (l *live) look(at subject) tea.Cmd {
	l.leave()
	l.leave, l.follow = func() {}, nil
	switch at.topic {
	case overview:
		follow(l, l.watcher.Overview(), at)
	case ofName:
		follow(l, l.watcher.Name(at.kind, at.name, at.claim), at)
	case ofNode:
		follow(l, l.watcher.Node(at.node), at)
	case cycles:
		follow(l, l.watcher.Cycles(), at)
	case nodes:
		follow(l, l.watcher.Nodes(), at)
	}
	return l.next(at, 0)
}

func (l *live) next(_ subject, after int) tea.Cmd {
	if l.follow == nil {
		return nil
	}
	return l.follow(after)
}

// follow has the readings of a feed become messages.
func follow[T any](l *live, feed *watch.Feed[T], at subject) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.leave = func() {
		cancel()
		feed.Close()
	}
	l.follow = func(after int) tea.Cmd {
		return func() tea.Msg {
			for {
				last, news := feed.Last()
				if last.Seq > after {
					r := reading{subject: at, seq: last.Seq, at: last.At, err: last.Err, now: time.Now()}
					if !last.At.IsZero() {
						r.value, r.drains = last.Value, l.watcher.DrainsSeen()
					}
					return r
				}
				select {
				case <-news:
				case <-ctx.Done():
					return nil
				}
			}
		}
	}
}

func (l *live) names(ask namesAsk) tea.Cmd {
	return func() tea.Msg {
		feed := l.watcher.Names(ask.filter, ask.cursor, true)
		defer feed.Close()
		last, err := feed.First(l.ctx)
		return namesPage{ask, last.Value, cmp.Or(err, last.Err), last.At}
	}
}

// about reads what an action is about.
func (l *live) about(action act.Action) tea.Cmd {
	return func() tea.Msg {
		k, err := l.reads(l.ctx, action)
		return stands{action, k, err}
	}
}

// aboutWithin is how long that may take.
const aboutWithin = 5 * time.Second

func (l *live) reads(ctx context.Context, action act.Action) (act.Known, error) {
	if action.Claim == "" {
		return act.Known{}, nil
	}
	feed := l.watcher.Name(action.Kind, action.Name, action.Claim)
	defer feed.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, aboutWithin, errSilent)
	defer cancel()
	name, err := feed.Next(ctx)
	if err != nil {
		return act.Known{}, err
	}
	return action.Known(&name.Look)
}

var errSilent = errors.New("the server does not answer")

// do does an action, if what it is about still stands as it was read. The program waits for actions under way before it
// ends, except for a drain, which goes on without the program.
func (l *live) do(asked stands) tea.Cmd {
	ctx, action := l.ctx, asked.action
	if action.Verb != act.Drain {
		ctx = context.WithoutCancel(ctx) // each call ends by itself
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	number := l.number
	l.asked[number] = action
	return func() tea.Msg { // it is never called if the program ends now
		if !l.begin(number) {
			return nil
		}
		defer l.doing.Done()
		o := outcome{action: action}
		now, err := l.reads(ctx, action)
		if was := asked.known.Does(); err == nil && now.Does() != was {
			err = fmt.Errorf("the claim does not do what it did: it %s", cmp.Or(now.Does(), "cannot be read"))
		}
		if o.err = err; err == nil {
			o.done, o.err = l.actor.Do(ctx, action, l.by)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ended {
			l.unsaid = append(l.unsaid, o)
		}
		return o
	}
}

// begin reports whether an action may begin. Which does is waited for.
func (l *live) begin(number int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	delete(l.asked, number)
	l.doing.Add(1)
	return true
}

func (l *live) tick() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

var errNotBegun = errors.New("the program has ended before it began")

// end ends the looking, and returns what has come of actions that nobody was told of. ctx of the world has ended.
func (l *live) end() []outcome {
	l.leave()
	l.mu.Lock()
	l.ended = true
	for _, number := range slices.Sorted(maps.Keys(l.asked)) {
		l.unsaid = append(l.unsaid, outcome{action: l.asked[number], err: errNotBegun})
	}
	l.mu.Unlock()
	l.doing.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsaid
}

// undrained reports whether an outcome is that another call has ended the drain.
func undrained(o outcome) bool {
	var stale *berth.OvertakenError
	return o.action.Verb == act.Drain && errors.As(o.err, &stale) && stale.Changed == "stop"
}

// stopped reports whether an outcome is only that the program has ended.
func stopped(o outcome) bool { return o.action.Verb == act.Drain && errors.Is(o.err, context.Canceled) }
