package row

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/test/bench/contender"
)

// publish is the column of a bare PUBLISH, from the call until its subscriber has it.
const publish = "PUBLISH"

// The columns that compare Berth with itself.
const (
	manyWaiting = "10 000 waiting"
	manySilent  = "10 000, 5 min"
	oneWaiting  = "1 waiting"
)

func handoffRows() []Row {
	p50 := Metric{ID: "p50", Title: "hand-off, p50", Unit: "µs"}
	p99 := Metric{ID: "p99", Title: "hand-off, p99", Unit: "µs"}
	scripts := Metric{ID: "scripts", Title: "scripts per hand-off", Budgets: []Budget{{Limit: 2.1}}}
	commands := Metric{ID: "commands", Title: "commands per hand-off"}

	one := Row{
		ID: "handoff-1", Title: "Hand-off, 1 waiting",
		Columns: []string{Berth, "redsync", "redislock", "rueidislock", publish},
		Notes: []string{
			"From just before the holder gives back until the call of the one that waits returns.",
			"Each holds for 1 ms. redsync and redislock poll, so there each holds for 0 to 250 ms, by chance, and 32 names are handed on side by side.",
			"PUBLISH is a bare one, from just before the call until its subscriber's callback runs, once a ms.",
			"A wait that has not ended after 5 s counts as that long.",
		},
		Measure: measureHandoff,
	}
	p50.Picture, p50.Budgets = true, []Budget{{Against: []string{publish}, Limit: 1.4}}
	scripts.Columns = []string{Berth, "redsync", "redislock", "rueidislock"}
	commands.Columns = scripts.Columns
	one.Metrics = []Metric{p50, p99, scripts, commands}

	many := Row{
		ID: "handoff-10000", Title: "Berth's hand-off, 10 000 waiting in one process",
		Columns: []string{manyWaiting, manySilent, oneWaiting},
		Notes: []string{
			"Each holds for 1 ms. The heartbeats of all that wait are among the scripts; \"" + manySilent + "\" has a wait lease of 5 minutes, and none.",
		},
		Measure: measureHandoff,
	}
	p50.Picture, p50.Budgets = false, []Budget{{Column: manyWaiting, Against: []string{oneWaiting}, Limit: 1.25}}
	scripts.Columns, scripts.Budgets = nil, []Budget{{Column: manySilent, Limit: 2.1}}
	commands.Columns = nil
	many.Metrics = []Metric{p50, p99, scripts, commands}
	return []Row{one, many}
}

func measureHandoff(ctx context.Context, env *Env, column string) (map[string]float64, error) {
	h := handoff{env: env, contender: column, names: 1, waiting: 1, hold: func() time.Duration { return time.Millisecond }}
	switch column {
	case publish:
		return measurePublish(ctx, env)
	case manyWaiting:
		h.contender, h.waiting = Berth, env.Pick(10_000, 200)
	case manySilent:
		h.contender, h.waiting, h.lease = Berth, env.Pick(10_000, 200), silent
	case oneWaiting:
		h.contender = Berth
	case "redsync", "redislock":
		h.names, h.hold = 32, func() time.Duration { return rand.N(env.pollHold()) }
	}
	return h.measure(ctx)
}

// pollHold is the longest hold where those who wait poll: the longest pause between two tries.
func (e *Env) pollHold() time.Duration {
	return time.Duration(e.Pick(250, 10)) * time.Millisecond
}

// handoff hands names of one contender on.
type handoff struct {
	env       *Env
	contender string
	names     int                  // side by side
	waiting   int                  // in line for each
	hold      func() time.Duration // how long each holds
	lease     time.Duration        // of those who wait, where it is not the contender's own
}

// granted is what a waiting call has returned.
type granted struct {
	at     time.Time
	unlock func() error
	err    error
}

func (h handoff) measure(ctx context.Context) (map[string]float64, error) {
	locker, err := openLeased(h.contender, h.env.Addr, h.lease)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Hour) // without a deadline redislock would give up
	lines := make([]*line, h.names)
	for i := range lines {
		lines[i] = startLine(ctx, locker, h.env.Name("handoff"), h.waiting)
	}
	defer func() {
		cancel()
		for _, l := range lines {
			l.stop()
		}
		locker.Close() // with all that is left of those in line, so that it disturbs nobody
	}()
	for _, l := range lines {
		if err := l.settle(ctx, h); err != nil {
			return nil, err
		}
	}
	before, err := h.env.Counts(ctx)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(lines))
	end := time.Now().Add(h.env.For)
	for i, l := range lines {
		wg.Go(func() { errs[i] = l.handOn(ctx, h.hold, end) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	after, err := h.env.Counts(ctx)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for _, l := range lines {
		took = append(took, l.took...)
	}
	n, diff := float64(len(took)), after.Since(before)
	return map[string]float64{
		"p50": micros(quantile(took, 0.5)), "p99": micros(quantile(took, 0.99)),
		"scripts": diff.Scripts() / n, "commands": diff.Commands() / n,
	}, nil
}

// line has a name held by one while others wait for it. One goroutine uses it.
type line struct {
	name    string
	grants  chan granted
	waiters sync.WaitGroup
	held    granted
	took    []time.Duration
	stuck   bool // a wait did not end
}

// startLine has so many wait, each again as soon as it has been granted the lock, until
// ctx ends: what they were granted is given back elsewhere.
func startLine(ctx context.Context, locker contender.Locker, name string, waiting int) *line {
	l := &line{name: name, grants: make(chan granted)}
	for range waiting {
		l.waiters.Go(func() {
			for ctx.Err() == nil {
				unlock, err := locker.Lock(ctx, name)
				g := granted{at: time.Now(), unlock: unlock, err: err}
				select {
				case l.grants <- g:
				case <-ctx.Done():
					g.giveBack()
				}
			}
		})
	}
	return l
}

// giveBack ends a hold that nobody measures any more. What cannot be given back ends
// with its lease, and its name is not used again.
func (g granted) giveBack() {
	if g.unlock != nil {
		_ = g.unlock()
	}
}

// settle takes the first grant and waits until all others are in line.
func (l *line) settle(ctx context.Context, h handoff) error {
	if err := l.next(ctx); err != nil || l.stuck || h.contender != Berth {
		return err // others have until the end of the first hold
	}
	// On a busy machine the first hold may be lost while all the others come. Then another
	// has it.
	again := func() error {
		select {
		case l.held = <-l.grants:
			return l.held.err
		default:
			return nil
		}
	}
	if err := h.env.queued(ctx, l.name, h.waiting, again); err != nil || h.waiting == 1 {
		return err
	}
	// What comes with a first wait, such as the subscription, is over by then.
	return pause(ctx, time.Duration(h.env.Pick(1000, 20))*time.Millisecond)
}

// patience is how long a wait of one that should have been granted is watched: one that
// takes longer counts as that long.
const patience = 5 * time.Second

// next waits for the next grant.
func (l *line) next(ctx context.Context) error {
	l.held = granted{}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case l.held = <-l.grants:
		return l.held.err
	case <-timer.C:
		l.stuck, l.took = true, append(l.took, patience)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handOn measures hand-offs, at least one, until the end or a wait that does not end.
func (l *line) handOn(ctx context.Context, hold func() time.Duration, end time.Time) error {
	for !l.stuck && (len(l.took) == 0 || time.Now().Before(end)) {
		if err := pause(ctx, hold()); err != nil {
			return err
		}
		start := time.Now()
		if err := l.held.unlock(); err != nil {
			return fmt.Errorf("give back: %w", err)
		}
		if err := l.next(ctx); err != nil || l.stuck {
			return err
		}
		l.took = append(l.took, l.held.at.Sub(start))
	}
	return nil
}

// stop gives back what is held, after the end of the waiters' ctx, and waits for them.
func (l *line) stop() {
	l.held.giveBack()
	l.waiters.Wait()
}

func measurePublish(ctx context.Context, env *Env) (map[string]float64, error) {
	client, err := rueidis.NewClient(contender.Option(env.Addr))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	subscriber, release := client.Dedicate()
	defer release()
	channel, heard := env.Name("publish"), make(chan time.Time, 1)
	ended := subscriber.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(rueidis.PubSubMessage) { heard <- time.Now() },
	})
	if err := subscriber.Do(ctx, subscriber.B().Subscribe().Channel(channel).Build()).Error(); err != nil {
		return nil, err
	}
	payload := strings.Repeat("x", 100) // about what a wake-up of Berth's takes
	var took []time.Duration
	for end := time.Now().Add(env.For); len(took) == 0 || time.Now().Before(end); {
		if err := pause(ctx, time.Millisecond); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := client.Do(ctx, client.B().Publish().Channel(channel).Message(payload).Build()).Error(); err != nil {
			return nil, err
		}
		select {
		case at := <-heard:
			took = append(took, at.Sub(start))
		case err := <-ended:
			return nil, err
		}
	}
	return map[string]float64{
		"p50": micros(quantile(took, 0.5)), "p99": micros(quantile(took, 0.99)),
	}, nil
}
