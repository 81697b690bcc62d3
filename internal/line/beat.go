package line

import (
	"context"
	"sync"

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

// Beat runs the kind's script for own calls, once, or for the heartbeat of a hold of a thin name
// the script of those.
func (s *Calls) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	for {
		b := engine.Batch{Name: name, Claims: claims}
		call, thin := s.beatOf(b, mode)
		r, err := s.cfg.Runner.Run(ctx, call.Script, scriptkit.Once, call.Keys, call.Args)
		if round, done, err := s.beaten(b, thin, &r, err); done {
			return round, err
		}
	}
}

// BeatMany runs Beats of many names, of all kinds, in as few pipelines as scriptkit makes of them.
func (n *Node) BeatMany(ctx context.Context, batches []engine.Batch, answered func(i int, r engine.Round, err error)) {
	all := make([]int, len(batches))
	for i := range all {
		all[i] = i
	}
	for len(all) > 0 {
		calls, thin := make([]scriptkit.Call, len(all)), make([]bool, len(all))
		for at, i := range all {
			calls[at], thin[at] = n.of(batches[i].Claims[0]).beatOf(batches[i], engine.ModeBeat)
		}
		var mu sync.Mutex
		var fat []int // guarded by mu: those that the script of thin names could not answer
		n.p.Runner.RunMany(ctx, calls, func(at int, r scriptkit.Reply, err error) {
			b := batches[all[at]]
			round, done, err := n.of(b.Claims[0]).beaten(b, thin[at], &r, err)
			if done {
				answered(all[at], round, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			fat = append(fat, all[at])
		})
		all = fat
	}
}

// beatOf is the call of a Beat, and whether it is that of a thin name.
func (s *Calls) beatOf(b engine.Batch, mode engine.Mode) (call scriptkit.Call, thin bool) {
	if len(b.Claims) == 1 && b.Claims[0].Thin.Load() && mode == engine.ModeBeat {
		return scriptkit.Call{
			Script: composed.ThinRenew, Keys: s.keysFor(composed.ThinRenew, b.Name), Args: []string{b.Claims[0].ID, s.Linger},
		}, true
	}
	args := append(s.args(b.Name, 1+2*len(b.Claims)), s.ID)
	for _, c := range b.Claims {
		if mode != engine.ModeBeat && mode != engine.ModeRenew {
			c.Thin.Store(false) // the call makes the name fat
		}
		args = append(args, c.ID, s.mode(c.Says(mode)))
	}
	return scriptkit.Call{Script: s.kind.Scripts.Renew, Keys: s.keysFor(s.kind.Scripts.Renew, b.Name), Args: args}, false
}

// beaten reads the answer to a Beat. It reports false where the script of thin names could not
// answer: the name has become fat, or the hold has ended, and the next call is the general one.
func (s *Calls) beaten(b engine.Batch, thin bool, r *scriptkit.Reply, failed error) (round engine.Round, done bool, err error) {
	done = true // also where it panics
	defer s.recovers("renew", &err)
	switch {
	case failed != nil:
		return engine.Round{}, true, failed
	case !thin:
		round, err = s.round(b.Name, r, statusRenewed, len(b.Claims), renewed)
		return round, true, err
	case r.Status() != statusHeld:
		b.Claims[0].Thin.Store(false)
		return engine.Round{}, false, nil
	}
	return engine.Round{
		Status:       []engine.Status{{Word: engine.WordHeld, Left: state.Millis(r.Int(1)), Fence: r.Int(2)}},
		NextDeadline: engine.NextDeadline{In: -1},
	}, true, r.Err()
}
