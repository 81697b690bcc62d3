package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// owned is a server on which one owner holds x, by several entries, as scripts/owner has it.
// Calls take a while both ways, and some are not answered.
type owned struct {
	fake
	renews bool // the outermost entry does

	mu            sync.Mutex
	dice          *rand.Rand               // guarded by mu
	own, deadline time.Time                // guarded by mu: of the outermost entry, and in common
	entries       map[string]time.Duration // guarded by mu: by how much each has extended
	came          map[string]time.Time     // guarded by mu
}

var errLost = &scriptkit.Error{MaybeRan: true, Repeatable: true, Err: errors.New("no answer")}

// run has a script run, and returns an error where its answer is lost.
func (o *owned) run(script func(now time.Time)) error {
	o.mu.Lock()
	there, back := time.Duration(o.dice.IntN(900))*time.Millisecond, time.Duration(o.dice.IntN(900))*time.Millisecond
	fate := o.dice.IntN(10)
	o.mu.Unlock()
	if fate < 5 {
		there, back = 0, 0
	}
	<-time.After(there)
	o.mu.Lock()
	script(time.Now())
	o.mu.Unlock()
	<-time.After(back)
	if fate == 9 {
		return errLost
	}
	return nil
}

func (o *owned) Acquire(_ context.Context, c *engine.Claim) (a engine.Answer, err error) {
	err = o.run(func(now time.Time) {
		_, again := o.entries[c.ID]
		a = engine.Answer{Granted: true, Confirmed: true, Ticket: 1, Fence: 1, NextDeadline: nothingDue}
		switch {
		case len(o.entries) == 0:
			o.own, o.deadline = now.Add(wait), now.Add(wait)
		case !now.Before(o.deadline):
			a = engine.Answer{Refused: &berth.AcquireError{Reason: berth.ReasonHeld}}
			return
		case !again:
			o.deadline = o.deadline.Add(c.Extends)
		}
		if !again {
			o.entries[c.ID], o.came[c.ID] = c.Extends, now
		}
		a.Left = o.deadline.Sub(now)
		if c.ID != "outer" {
			a.Entry = &engine.Entry{Terms: engine.Terms{Lease: wait, NoRenew: !o.renews}, Extends: c.Extends, Common: a.Left}
		}
	})
	return a, err
}

func (o *owned) Beat(_ context.Context, _ string, mode engine.Mode, claims []*engine.Claim) (round engine.Round, err error) {
	round.NextDeadline.In = -1
	err = o.run(func(now time.Time) {
		for _, c := range claims {
			if _, held := o.entries[c.ID]; !held || !now.Before(o.deadline) {
				round.Status = append(round.Status, isUnknown)
				continue
			}
			if c.ID == "outer" && (o.renews || mode == engine.ModeRenew) && now.Add(wait).After(o.own) {
				o.own = now.Add(wait)
			}
			if o.own.After(o.deadline) {
				o.deadline = o.own
			}
			round.Status = append(round.Status, engine.Status{Word: engine.WordHeld, Left: o.deadline.Sub(now), Fence: 1})
		}
	})
	return round, err
}

// Release may run only when the engine has given up waiting for its answer.
func (o *owned) Release(_ context.Context, c *engine.Claim, _ time.Duration) (engine.Parting, error) {
	word, heralded := engine.GivenBack, c.Heralded()
	o.mu.Lock()
	late := o.dice.IntN(8) == 0
	o.mu.Unlock()
	if late {
		time.AfterFunc(2*time.Second, func() { _ = o.run(func(now time.Time) { o.part(now, c.ID, heralded) }) })
		return engine.Parting{}, errLost
	}
	err := o.run(func(now time.Time) {
		if !o.part(now, c.ID, heralded) {
			word = engine.NotHeld
		}
	})
	return engine.Parting{Word: word, Fence: 1}, err
}

// part removes an entry, and takes back what it has not used of its extension where all others
// were lowered. mu is held.
func (o *owned) part(now time.Time, id string, heralded []string) (held bool) {
	by, held := o.entries[id]
	delete(o.entries, id)
	for other := range o.entries {
		if !slices.Contains(heralded, other) {
			by = 0
		}
	}
	if o.deadline = o.deadline.Add(-max(0, by-now.Sub(o.came[id]))); o.deadline.Before(o.own) {
		o.deadline = o.own
	}
	return held
}

// check holds every handle against the server.
func (o *owned) check(t *testing.T, seed uint64, holds []*engine.Hold) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range holds {
		if left := h.Left(); left > 0 {
			require.Contains(t, o.entries, h.Claim().ID, "seed %d", seed)
			require.Less(t, left, time.Until(o.deadline), "seed %d: %s", seed, h.Claim().ID)
		}
	}
}

// playOwned has an owner enter, leave, ask, and take up again at random.
func playOwned(t *testing.T, seed uint64) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 1))
	o := &owned{dice: rand.New(rand.NewPCG(seed, 2)), renews: seed%2 == 0, entries: make(map[string]time.Duration), came: make(map[string]time.Time)}
	e, _ := unclosed(o, func(cfg *engine.Config) {
		cfg.CleanupTimeout, cfg.Retry, cfg.Observe = 5*time.Second, berth.Retry{Attempts: 2, Base: 100 * time.Millisecond}, nil
	})
	var mu sync.Mutex
	var holds []*engine.Hold // guarded by mu
	held := func(more ...*engine.Hold) []*engine.Hold {
		mu.Lock()
		defer mu.Unlock()
		holds = append(holds, more...)
		return slices.Clone(holds)
	}
	enter := func(ctx context.Context, id string, by time.Duration) {
		r := engine.Record{Weight: 1, Wait: wait, Lease: wait, NoRenew: !o.renews, Owner: "me"}
		if h, err := e.Acquire(ctx, &engine.Claim{ID: id, Name: "x", Record: r, Extends: by}, 0); err == nil {
			held(h)
		}
	}
	takeUp := func(h *engine.Hold) {
		if h.Detach(context.Background()) != nil || e.Begin() != nil {
			return
		}
		defer e.End()
		start, left, old := e.Now(), time.Duration(0), h.Claim()
		lost := o.run(func(now time.Time) { left = o.deadline.Sub(now) })
		if lost == nil && left > 0 {
			c := &engine.Claim{ID: old.ID, Name: "x", Record: old.Record}
			if again, err := e.Adopt(context.Background(), c, start, 1, "", left); err == nil {
				held(again)
			}
		}
	}
	enter(context.Background(), "outer", 0)
	ctx, leave := context.WithCancel(context.Background())
	for range 40 {
		var h *engine.Hold
		if all := held(); len(all) > 0 {
			h = all[dice.IntN(len(all))]
		}
		switch pick := dice.IntN(8); {
		case pick < 2:
			by := time.Duration(dice.IntN(6)) * time.Second
			go enter(ctx, e.ClaimID(), by)
		case pick == 2 && dice.IntN(3) == 0: // who is on the way in leaves
			leave()
			ctx, leave = context.WithCancel(context.Background())
		case pick < 5 && h != nil && h.Claim().ID != "outer":
			go func() { _ = h.Release(context.Background()) }()
		case pick == 5 && h != nil:
			go func() { _ = h.Renew(context.Background()) }()
		case pick == 6 && h != nil:
			go takeUp(h)
		default:
			<-time.After(time.Duration(dice.IntN(1500)) * time.Millisecond)
		}
		synctest.Wait()
		o.check(t, seed, held())
	}
	leave()
	_ = e.Close(context.Background())
	<-time.After(time.Minute)
}

// The rules of group_test.go, with the engine around them: what it notes, lowers, lifts and
// takes, and when.
func TestNoEntryBelievesInMoreThanTheServerLeaves(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) { playOwned(t, seed) })
	}
}
