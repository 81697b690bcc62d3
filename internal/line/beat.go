package line

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// mode is the mode of a call of a claim: a beat of one without end says whether the node
// is in a swarm.
func (s *Calls) mode(mode engine.Mode, endless bool) string {
	if (mode == engine.ModeBeat || mode == engine.ModeWant) && endless && s.cfg.Swarm != nil {
		if limit := s.cfg.Swarm.Limit(s.ID); limit > 0 {
			return string(mode) + " " + Decimal(limit.Milliseconds())
		}
	}
	return string(mode)
}

// form says which script takes the heartbeats of a name.
type form uint8

const (
	formOwn  form = iota // the kind's, whatever is called for
	formThin             // that of thin names
	formFat              // that of fat names in the plain case
)

const (
	// mostNames is of how many names one script takes the heartbeats at the most.
	mostNames = 20
	// apartFor is how long each name's heartbeat goes alone after the server has refused a script of several.
	apartFor = time.Minute
)

// beats is one call for heartbeats: the batches whose names it is for.
type beats struct {
	form form
	of   []int
}

// Beat runs the kind's script for own calls, once, or for the heartbeat of a hold of a thin name
// the script of those.
func (s *Calls) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	b := engine.Batch{Name: name, Claims: claims}
	for {
		form, call := formOwn, scriptkit.Call{}
		if mode == engine.ModeBeat && formOf(b, 1) == formThin {
			form = formThin
			call = scriptkit.Call{Script: composed.ThinRenew, Keys: s.keysFor(composed.ThinRenew, name), Args: []string{s.Linger, claims[0].ID}}
		} else {
			call = s.beatOf(b, mode)
		}
		r, err := s.cfg.Runner.Run(ctx, call.Script, scriptkit.Once, call.Keys, call.Args)
		if round, done, err := s.beaten(b, form, 0, false, &r, err); done {
			return round, err
		}
	}
}

// BeatMany runs Beats of many names, of all kinds, in as few pipelines as scriptkit makes of them. Where the server is no
// cluster, one script takes those of several names that are plain; each has its own answer. Of whom that script cannot
// tell, and of all where the server refuses it, a script of its own tells at once.
func (n *Node) BeatMany(ctx context.Context, batches []engine.Batch, answered func(i int, r engine.Round, err error)) {
	all := make([]int, len(batches))
	for i := range all {
		all[i] = i
	}
	for most := n.mostNames(); len(all) > 0; most = 1 {
		sent := n.beats(batches, all, most)
		calls := make([]scriptkit.Call, len(sent))
		for at, s := range sent {
			calls[at] = n.call(batches, s)
		}
		var mu sync.Mutex
		var again []int // guarded by mu: those of whom their script could not tell
		n.p.Runner.RunMany(ctx, calls, func(at int, r scriptkit.Reply, err error) {
			several := len(sent[at].of) > 1
			refused := several && err != nil && !scriptkit.Repeatable(err)
			if refused {
				n.apart.Store(int64(n.p.Clock.Now() + apartFor))
			}
			for k, i := range sent[at].of {
				b, s, err := batches[i], n.of(batches[i].Claims[0]), err
				if several {
					err = ofOne(err, s.keysFor(calls[at].Script, b.Name))
				}
				if round, done, err := s.beaten(b, sent[at].form, k, several, &r, err); done && !refused {
					answered(i, round, err)
					continue
				}
				mu.Lock()
				again = append(again, i)
				mu.Unlock()
			}
		})
		all = again
	}
}

// mostNames is of how many names a script may take the heartbeats: of one in a cluster, and where it is not known
// whether the server is one.
func (n *Node) mostNames() int {
	mode := n.p.Redis.Mode()
	if known := mode == rueidis.ClientModeStandalone || mode == rueidis.ClientModeSentinel; !known || int64(n.p.Clock.Now()) < n.apart.Load() {
		return 1
	}
	return mostNames
}

// beats divides batches into calls, each for at most so many names.
func (n *Node) beats(batches []engine.Batch, all []int, most int) (sent []beats) {
	var open [formFat + 1]int // the call of each form that takes more names; 0 for none, else 1 + its place
	for _, i := range all {
		form := formOf(batches[i], most)
		if at := open[form] - 1; form != formOwn && at >= 0 && len(sent[at].of) < most {
			sent[at].of = append(sent[at].of, i)
			continue
		}
		sent = append(sent, beats{form, []int{i}})
		open[form] = len(sent)
	}
	for at, s := range sent {
		if s.form == formFat && len(s.of) == 1 {
			sent[at].form = formOwn // which tells in any case
		}
	}
	return sent
}

// formOf says which script takes the heartbeats of a name first, where one takes those of so many.
func formOf(b engine.Batch, most int) form {
	if len(b.Claims) > 1 {
		return formOwn
	}
	c := b.Claims[0]
	if c.Thin.Load() {
		return formThin
	}
	if most > 1 && c.Plain.Load() {
		if mode, endless := c.Says(engine.ModeBeat); mode == engine.ModeBeat && !endless {
			return formFat
		}
	}
	return formOwn
}

// call is the call of heartbeats.
func (n *Node) call(batches []engine.Batch, s beats) scriptkit.Call {
	first := n.of(batches[s.of[0]].Claims[0])
	call := scriptkit.Call{Script: composed.ThinRenew, Args: []string{first.Linger}}
	switch s.form {
	case formOwn:
		return first.beatOf(batches[s.of[0]], engine.ModeBeat)
	case formFat:
		call.Script, call.Args = composed.FatRenew, []string{first.Linger, n.ID}
	}
	for _, i := range s.of {
		b := batches[i]
		call.Keys = append(call.Keys, n.of(b.Claims[0]).keysFor(call.Script, b.Name)...)
		call.Args = append(call.Args, b.Claims[0].ID)
	}
	return call
}

// beatOf is the call of a Beat by the kind's script.
func (s *Calls) beatOf(b engine.Batch, mode engine.Mode) scriptkit.Call {
	args := append(s.args(b.Name, 1+2*len(b.Claims)), s.ID)
	for _, c := range b.Claims {
		if mode != engine.ModeBeat && mode != engine.ModeRenew {
			c.Thin.Store(false) // the call makes the name fat
		}
		args = append(args, c.ID, s.mode(c.Says(mode)))
	}
	return scriptkit.Call{Script: s.kind.Scripts.Renew, Keys: s.keysFor(s.kind.Scripts.Renew, b.Name), Args: args}
}

// beaten reads the answer to a Beat that is the k-th of its call, beside those of several names. It reports
// false where the script could not tell: the name is not thin, or plain, any more, or the hold has ended, and the next call
// is the general one.
func (s *Calls) beaten(b engine.Batch, form form, k int, several bool, r *scriptkit.Reply, failed error) (round engine.Round, done bool, err error) {
	done = true // also where it panics
	defer s.recovers("renew", &err)
	if failed != nil {
		return engine.Round{}, true, failed
	}
	plain := r.Status() == statusHeld
	for _, c := range b.Claims {
		c.Plain.Store(plain && form != formThin)
	}
	if !plain {
		round, err = s.round(b.Name, r, statusRenewed, len(b.Claims), renewed)
		return round, true, err
	}
	answer := *r // one name's may be one that cannot be read
	round = engine.Round{NextDeadline: engine.NextDeadline{In: -1}}
	for range b.Claims {
		left, fence := state.Millis(answer.Int(1+2*k)), answer.Int(2+2*k)
		round.Status = append(round.Status, engine.Status{Word: engine.WordHeld, Left: left, Fence: fence})
		k++
	}
	switch err := answer.Err(); {
	case err != nil:
		return engine.Round{}, !several, err
	case round.Status[0].Left <= 0:
		b.Claims[0].Thin.Store(false)
		b.Claims[0].Plain.Store(false)
		return engine.Round{}, false, nil
	}
	return round, true, nil
}

// ofOne is the error of a call for several names as one of them has it, whose keys are given.
func ofOne(err error, keys []string) error {
	var failed *scriptkit.Error
	if !errors.As(err, &failed) {
		return err
	}
	one := *failed
	one.Keys = keys
	return &one
}
