// Package line runs the scripts that every kind has, and reads their replies: typed
// arguments in, typed results out. It also has what the kinds tell and
// check alike.
//
// [NewProcess] makes what a process is on a namespace. It has a [Node]: an id, and the engine that carries its claims of all
// kinds. A kind sees the node as a [Face]: the [Calls] of that kind. What only one kind says to the scripts, and hears of
// them, is in [Kind].
package line

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// Calls are the calls of one node to the server, for names of one kind. They know no engine.
type Calls struct {
	// ID is the node's id.
	ID string
	// Linger is the linger in milliseconds, as the scripts take it.
	Linger string
	// Tell takes the events of this node and kind.
	Tell Teller
	// Decide reads what leads to a write.
	Decide *reader.Reader

	cfg     Config
	kind    *Kind
	channel string // what the scripts put before a node's id
	thin    bool   // the kind's names have a thin form
	names   names
	waits   *waits
	made    atomic.Pointer[made]
	said    Said
}

// Run runs a script on as many keys of a name as it takes: its state, its line, and the
// kind's own. A script that begins with the linger takes the channel prefix and the name too:
// Run puts the three before args.
func (s *Calls) Run(ctx context.Context, script *scriptkit.Script, mode scriptkit.Mode, name string, args ...string) (scriptkit.Reply, error) {
	if takes := script.Args; len(takes) > 0 && takes[0] == "linger" {
		args = append(s.args(name, len(args)), args...)
	}
	return s.cfg.Runner.Run(ctx, script, mode, s.keysFor(script, name), args)
}

// args are the first arguments of a script that writes a name, with room for so many more.
func (s *Calls) args(name string, more int) []string {
	return append(make([]string, 0, 3+more), s.Linger, s.channel, name)
}

// says is what the acquire and the release of a name take of this node.
func (s *Calls) says(name string) *Args {
	return &Args{Node: s.ID, Channel: s.channel, Name: name, Linger: s.cfg.Settings.Linger.Milliseconds(), Said: &s.said}
}

// keysFor are the Redis keys of a name that a script takes.
func (s *Calls) keysFor(script *scriptkit.Script, name string) []string {
	keys, _ := s.names.of(name, s.keys)
	return keys[:min(len(keys), len(script.Keys))]
}

// key is the Redis key of a name's state.
func (s *Calls) key(name string) string {
	keys, _ := s.names.of(name, s.keys)
	return keys[0]
}

// keys makes the Redis keys of a name.
func (s *Calls) keys(name string) []string {
	keys := []string{s.cfg.Space.State(s.kind.Kind, name), s.cfg.Space.Key(s.kind.Kind, name, keyspace.LinePart)}
	for _, part := range s.kind.Parts {
		keys = append(keys, s.cfg.Space.Key(s.kind.Kind, name, part))
	}
	return keys
}

// recovers makes a panic on what the server answers an error of the call, which may have run; err is the call's.
// It is to be deferred: nobody else could guard the goroutines that wait for the call.
func (s *Calls) recovers(what string, err *error) {
	if v := recover(); v != nil {
		*err = &scriptkit.Error{Script: what, Attempts: 1, MaybeRan: true, Err: guard.Panicked("the reading of "+what, s.Tell, v)}
	}
}

// load loads the kind's scripts for own calls on every node of the server.
func (s *Calls) load(ctx context.Context) error {
	scripts := []*scriptkit.Script{s.kind.Scripts.Renew}
	if s.thin {
		scripts = []*scriptkit.Script{composed.ThinRenew, composed.FatRenew, s.kind.Scripts.Renew}
	}
	return s.cfg.Runner.Load(ctx, scripts...)
}

// Acquire runs the kind's acquire once, or that of thin names before it.
func (s *Calls) Acquire(ctx context.Context, c *engine.Claim) (_ engine.Answer, err error) {
	defer s.recovers("acquire", &err)
	if a, ok, err := s.acquireThin(ctx, c); ok || err != nil {
		return a, err
	}
	waits, policy, own := s.kind.AcquireArgs(c)
	_, record := c.Standing()
	args := s.says(c.Name).Acquire(c.ID, &record, waits, policy, own...)
	r, err := s.cfg.Runner.Run(ctx, s.kind.Scripts.Acquire, scriptkit.Once, s.keysFor(s.kind.Scripts.Acquire, c.Name), args)
	if err != nil {
		return engine.Answer{}, err
	}
	var a engine.Answer
	extra := ""
	if r.Status() == scriptkit.Plain {
		a, extra, err = s.plainly(c, &r)
	} else {
		a, extra, err = answer(c.Name, &r)
	}
	if a.Refused != nil {
		s.Tell.Swept(c.Caller(), c.Name, a.Refused.Swept)
	}
	if err == nil && s.kind.AcquireReply != nil {
		a, err = s.kind.AcquireReply(c, a, extra)
	}
	if err == nil && a.Waits() {
		s.waits.add(engine.Line{Kind: s.kind.Kind, Name: c.Name})
	}
	return a, err
}

// Release runs the kind's release, repeated by Config.Retry, or that of thin names before it.
func (s *Calls) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (p engine.Parting, err error) {
	defer s.recovers("release", &err)
	unanswered := false
	if c.Thin.Load() && stays == 0 {
		var done bool
		if done, unanswered, err = s.releaseThin(ctx, c); done || err != nil {
			return engine.Parting{Word: engine.GivenBack, Fence: c.Fence(), Unanswered: unanswered}, err
		}
	}
	var own []string
	if s.kind.ReleaseArgs != nil {
		own = s.kind.ReleaseArgs(c)
	}
	_, record := c.Standing()
	args := s.says(c.Name).Release(c.ID, &record, stays.Milliseconds(), own...)
	r, err := s.cfg.Runner.Run(ctx, s.kind.Scripts.Release, scriptkit.Bounded, s.keysFor(s.kind.Scripts.Release, c.Name), args)
	if err != nil {
		return engine.Parting{}, err
	}
	p, extra, err := parting(c.Name, &r)
	p.Unanswered = p.Unanswered || unanswered
	if err == nil && p.Word == engine.GivenBack && s.kind.ReleaseReply != nil {
		p, err = s.kind.ReleaseReply(c, p, extra)
	}
	return p, err
}

// Requeue runs lock_requeue once.
func (s *Calls) Requeue(ctx context.Context, c *engine.Claim) (a engine.Answer, ok bool, err error) {
	defer s.recovers("requeue", &err)
	r, err := s.Run(ctx, s.kind.Scripts.Requeue, scriptkit.Once, c.Name,
		s.ID, c.ID, Decimal(c.Ticket()), Lane(c.Record.Priority))
	if err != nil || r.Status() == statusNotWaiting {
		return a, false, err
	}
	a, _, err = answer(c.Name, &r)
	return a, err == nil, err
}

// Restore runs the kind's script that puts claims back in line, once.
func (s *Calls) Restore(ctx context.Context, name string, claims []*engine.Claim) (_ engine.Round, err error) {
	defer s.recovers("restore", &err)
	if s.cfg.Notice != nil { // those who were paused are put back paused
		told := s.cfg.Notice.Sure(ctx, s.kind.Kind)
		if left := s.cfg.Notice.Left(told); left > 0 {
			if _, err := s.contact(ctx, name, pauseFirst, told, left); err != nil {
				return engine.Round{}, err
			}
		}
	}
	args := make([]string, 0, 2+3*len(claims))
	args = append(args, s.ID, strconv.Itoa(claims[0].Capacity))
	for _, c := range claims {
		place, record := c.Standing()
		args = append(args, c.ID, place, state.Text(&record))
	}
	r, err := s.Run(ctx, s.kind.Scripts.Restore, scriptkit.Once, name, args...)
	if err != nil {
		return engine.Round{}, err
	}
	return s.round(name, &r, statusRestored, len(claims), restored)
}

// round reads the answer to a call of n claims.
func (s *Calls) round(name string, r *scriptkit.Reply, status string, n int, read func(r *scriptkit.Reply, n, i int) engine.Status) (engine.Round, error) {
	if r.Status() != status {
		return engine.Round{}, Unexpected(name, r)
	}
	round, waiting := engine.Round{NextDeadline: nextDeadline(r), Status: make([]engine.Status, n)}, false
	for i := range round.Status {
		round.Status[i] = read(r, n, i)
		waiting = waiting || round.Status[i].Word.Waits()
	}
	if waiting {
		s.waits.add(engine.Line{Kind: s.kind.Kind, Name: name})
	}
	if waiting && setting(r) == 0 && s.kind.Empty != nil {
		s.kind.Empty(name)
	}
	return round, r.Err()
}
