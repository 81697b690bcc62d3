package swarm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/observe"
)

// Flushed is what a flush did.
type Flushed struct {
	// Nodes is how many nodes it condemned.
	Nodes int
	// Holds is how many holds it ended.
	Holds int
	// Waiters is how many waiting claims it removed.
	Waiters int
}

// calmest is the longest pause between two passes over all names while the
// background finds nothing.
const calmest = time.Hour

// flushes are what is known of flushes before. A pass over all names costs two
// scripts a name: so the background leaves out the names. While condemned ids are
// remembered, and every one has been covered by a pass without error that found
// nothing, it does so for twice as long each time, for they may have claims that come
// late. While there are none, it reads the names once an hour, and at once after the
// server has lost nodes: it may have lost one that has died since, of which only its
// claims are left.
type flushes struct {
	at    time.Time // when the last one ended
	err   error
	clean map[string]bool // the ids that a pass without error has covered
	again time.Duration   // when the background covers them again
	calm  time.Duration   // how long it waited before
	lost  int             // how often the server was found to have lost nodes
}

// FlushNow flushes once, whether the swarm runs or not. It condemns all nodes whose
// own limit has passed since their last probe, but none while the names cannot be
// read. Then it goes through all names, and removes what ids that
// were condemned in the last 24 hours have there: waiting claims, and holds that
// are not detached. It ends holds without end of this very node, too, that the node does not know: the server
// has lost their release. Nodes that have a hold without end that says that they are in the
// swarm, and that the server does not know, are entered: they have their own limit to
// probe, and a later flush condemns those that have not. An error with one node or name does not keep it from the others;
// the error joins them all, the first ones in full.
func (s *Swarm) FlushNow(ctx context.Context) (Flushed, error) {
	return s.flush(ctx, true)
}

// flushOn flushes until ctx ends.
func (s *Swarm) flushOn(ctx context.Context) {
	for {
		// Nodes that started together must not flush together.
		pause := time.Duration(float64(s.cfg.FlushEvery) * (0.9 + 0.2*s.cfg.Rand()))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		err := guard.Run("a flush of the swarm", s.cfg.Observe, func() error {
			_, _ = s.flush(ctx, false) // Status tells the error
			return nil
		})
		if err != nil {
			s.mu.Lock()
			s.flushes.at, s.flushes.err = time.Now(), err
			s.mu.Unlock()
		}
	}
}

func (s *Swarm) flush(ctx context.Context, always bool) (Flushed, error) {
	p := &pass{s: s, lost: s.losses(), ids: make(map[string]bool), endless: make(map[string]Node)}
	blind := p.condemn(ctx) != nil
	names := !blind && (always || s.flushDue(p.ids))
	if names {
		p.names(ctx)
	}
	err := p.problems.err()
	if always || ctx.Err() == nil {
		s.flushed(p, names, err)
	}
	return p.out, err
}

// flushDue reports whether the background should go through all names.
func (s *Swarm) flushDue(ids map[string]bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range ids {
		if !s.flushes.clean[id] {
			return true
		}
	}
	return s.cfg.Clock.Now() >= s.flushes.again
}

// flushed takes down a flush that has ended.
func (s *Swarm) flushed(p *pass, names bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.flushes
	f.at, f.err = time.Now(), err
	if !names || err != nil || p.lost != f.lost {
		return
	}
	calm := p.out.Holds == 0 && p.out.Waiters == 0 && p.entered == 0
	for id := range p.ids {
		calm = calm && f.clean[id]
	}
	f.calm = min(2*f.calm, calmest)
	if !calm || f.calm == 0 {
		f.calm = max(s.cfg.FlushEvery, time.Millisecond)
	}
	if calm && len(p.ids) == 0 {
		f.calm = calmest // no claim can come late
	}
	f.clean, f.again = p.ids, s.cfg.Clock.Now()+f.calm
}

// forgotten lets the next flush go through the names, because the server has lost what
// it knew of nodes.
func (s *Swarm) forgotten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushes.calm, s.flushes.again = 0, 0
	s.flushes.lost++ // a pass under way may have read too early
}

func (s *Swarm) losses() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushes.lost
}

// pass is one flush.
type pass struct {
	s        *Swarm
	lost     int             // see flushes, when it began
	ids      map[string]bool // who is flushed
	able     bool            // the names can be read, as far as is known
	endless  map[string]Node // who has holds without end, and is in the swarm by what these say
	entered  int             // how many of them the server did not know
	out      Flushed
	problems problems
}

// condemn condemns who is overdue, and gathers the ids that are condemned. It
// returns an error only where the names cannot be read.
func (p *pass) condemn(ctx context.Context) error {
	from := int64(0)
	for {
		page, err := p.s.calls.Dead(ctx, from)
		if err != nil {
			p.problems.add(err)
			return nil
		}
		for _, err := range page.Damaged {
			p.problems.add(err)
		}
		for _, id := range page.Condemned {
			p.ids[id] = true
		}
		if len(page.Overdue) > 0 {
			if err := p.look(ctx); err != nil {
				p.problems.add(err)
				return err
			}
		}
		got := p.condemnAll(ctx, page.Overdue) || len(page.Condemned) > 0
		if !page.More || !got || ctx.Err() != nil {
			return nil
		}
		from = page.Next
	}
}

// look finds out, once, whether the names can be read: who is condemned by one that
// cannot go on would lose its handles, and nobody would get what they stand for.
func (p *pass) look(ctx context.Context) error {
	if p.able {
		return nil
	}
	for _, err := range p.s.cfg.Line.Names(ctx) {
		if err != nil {
			return err
		}
		break // the first one is proof
	}
	p.able = true
	return nil
}

// condemnAll condemns nodes that are overdue, and reports whether one is condemned.
func (p *pass) condemnAll(ctx context.Context, overdue []string) (got bool) {
	for _, id := range overdue {
		condemned, mine, err := p.s.calls.Condemn(ctx, id)
		p.problems.add(err)
		if condemned {
			got = true
			p.ids[id] = true
		}
		if mine {
			p.out.Nodes++
			p.s.cfg.Observe(observe.Event{Kind: observe.Condemned, Context: ctx, Node: p.s.cfg.Node(), Detail: id})
		}
	}
	return got
}

// names goes through all names.
func (p *pass) names(ctx context.Context) {
	for name, err := range p.s.cfg.Line.Names(ctx) {
		if err == nil {
			err = p.name(ctx, name)
		}
		p.problems.add(err)
		if ctx.Err() != nil {
			p.problems.add(ended(ctx)) // the pass has not seen all
			return
		}
	}
	entered, err := p.s.calls.Expect(ctx, slices.Collect(maps.Values(p.endless)))
	p.problems.add(err)
	p.entered = entered
}

// name flushes one name: those who wait first, so that nothing is handed to them.
func (p *pass) name(ctx context.Context, name berth.Ref) error {
	left, err := p.s.leftBehind(ctx, name, p.ids)
	problems := problems{}
	problems.add(err)
	for _, h := range left.endless {
		p.endless[h.Node] = Node{ID: h.Node, Label: h.Label, ZombieAfter: min(h.ZombieAfter, memory)}
	}
	removed := p.mine(ctx, name, left.endless, &problems)
	for _, w := range left.waiters {
		if p.remove(ctx, name, w.ID, w.Node, &problems) {
			p.out.Waiters++
			removed[w.Node]++
		}
	}
	for _, h := range left.holders {
		if p.remove(ctx, name, h.ID, h.Node, &problems) {
			p.out.Holds++
			removed[h.Node]++
		}
	}
	for node, count := range removed {
		p.s.cfg.Observe(observe.Event{
			Kind: observe.Flushed, Primitive: string(name.Kind), Context: ctx, Name: name.Name, Node: p.s.cfg.Node(), Detail: node, Count: count,
		})
	}
	return problems.err()
}

// mine ends what a name has under this node's id and the node does not know: the server has lost its release. It
// reads again what it suspects, for the node may have detached or taken up the hold since.
func (p *pass) mine(ctx context.Context, name berth.Ref, endless []berth.Holder, problems *problems) map[string]int {
	removed, node := make(map[string]int), p.s.cfg.Node()
	lost := func(h berth.Holder) bool { return h.Node == node && p.s.cfg.Line.Unknown(h.ID) }
	suspects := make(map[string]bool)
	for _, h := range endless {
		suspects[h.ID] = lost(h)
	}
	if !slices.Contains(slices.Collect(maps.Values(suspects)), true) {
		return removed
	}
	left, err := p.s.leftBehind(ctx, name, nil)
	problems.add(err)
	for _, h := range left.endless {
		if suspects[h.ID] && lost(h) && p.remove(ctx, name, h.ID, node, problems) {
			p.out.Holds++
			removed[node]++
		}
	}
	return removed
}

// remove ends a claim, and reports whether it was there to end.
func (p *pass) remove(ctx context.Context, name berth.Ref, claim, node string, problems *problems) bool {
	err := p.s.cfg.Line.ForceRelease(ctx, name, claim, node)
	if err != nil && !errors.Is(err, berth.ErrNotHeld) {
		problems.add(fmt.Errorf("%s %q: %w", name.Kind, name.Name, err))
	}
	return err == nil
}

// problems joins errors, a bounded number of them.
type problems struct {
	first []error
	more  int
}

// most is how many errors are kept.
const most = 8

func (p *problems) add(err error) {
	switch {
	case err == nil:
	case len(p.first) < most:
		p.first = append(p.first, err)
	default:
		p.more++
	}
}

func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.first[:most:most], fmt.Errorf("berth: and %d more errors", p.more))...)
	}
	return errors.Join(p.first...)
}
