package top

import (
	"context"
	"errors"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/watch"
)

// live is the world of a terminal: a namespace on a server. Only its commands are for other goroutines than that of the
// model.
type live struct {
	ctx     context.Context
	watcher *watch.Watcher
	actor   *act.Actor
	follow  func(after int) tea.Cmd // of what is looked at
	leave   func()                  // ends the looking

	doing  sync.WaitGroup
	mu     sync.Mutex
	ended  bool      // nobody reads messages any more; guarded by mu
	unsaid []outcome // what has come of actions since then; guarded by mu
}

func newLive(ctx context.Context, watcher *watch.Watcher, actor *act.Actor) *live {
	return &live{ctx: ctx, watcher: watcher, actor: actor, leave: func() {}}
}

func (l *live) look(at subject) tea.Cmd {
	l.leave()
	l.leave, l.follow = func() {}, nil
	switch at.view {
	case overview:
		follow(l, l.watcher.Overview(), at)
	case ofName:
		follow(l, l.watcher.Name(at.kind, at.name, at.claim), at)
	case ofNode:
		follow(l, l.watcher.Claims(nodeFilter(at.node)), at)
	case circles:
		follow(l, l.watcher.Circles(), at)
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
						r.value = last.Value
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
		page, err := l.watcher.Names(l.ctx, ask.filter, ask.cursor)
		return namesPage{ask, page, err, time.Now()}
	}
}

// do does an action. What is under way when the program ends is waited for, but a drain: that goes on without it.
func (l *live) do(action act.Action) tea.Cmd {
	ctx := l.ctx
	if action.Verb != act.Drain {
		ctx = context.WithoutCancel(ctx) // each call ends by itself
	}
	l.doing.Add(1)
	return func() tea.Msg {
		defer l.doing.Done()
		done, err := l.actor.Do(ctx, action, "")
		o := outcome{action, done, err}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ended {
			l.unsaid = append(l.unsaid, o)
		}
		return o
	}
}

func (l *live) tick() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

// end ends the looking, and returns what has come of actions that were still under way. ctx of the world has ended.
func (l *live) end() []outcome {
	l.leave()
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.doing.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsaid
}

// stopped reports whether an outcome is only that the program has ended.
func stopped(o outcome) bool { return o.action.Verb == act.Drain && errors.Is(o.err, context.Canceled) }
