package line

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
)

// Args are what the acquire and the release of every kind take of a node and a name.
type Args struct {
	Node, Channel, Name string
	Linger              int64 // ms
	Said                *Said // nil for nothing
}

// Said remembers numbers as they were written last: most claims say the same. It is safe for concurrent use.
type Said struct{ linger, lease, spare said }

type said struct{ last atomic.Pointer[written] }

type written struct {
	n    int64
	text string
}

func (s *said) decimal(n int64) string {
	w := s.last.Load()
	if w == nil || w.n != n {
		w = &written{n, Decimal(n)}
		s.last.Store(w)
	}
	return w.text
}

// Acquire returns the arguments of an acquire: waits and policy are as scripts/state/ask.lua has them, own are what only
// the kind's script takes.
func (a *Args) Acquire(id string, r *state.Record, waits, policy string, own ...string) []string {
	said, lease := a.said(), ""
	if plain(r) {
		lease = said.lease.decimal(r.Lease.Milliseconds())
	}
	ends := append(append(make([]byte, 0, 128), a.Node...), ' ')
	ends = state.AppendTerms(ends, r)
	rest := append(append(make([]byte, 0, 96), waits...), ' ')
	rest = append(strconv.AppendInt(rest, r.Wait.Milliseconds(), 10), ' ')
	rest = append(appendLane(rest, r.Priority), ' ')
	rest = append(append(rest, policy...), ' ')
	rest = append(append(rest, a.Channel...), '{')
	rest = append(rest, a.Name...)
	args := append(make([]string, 0, 5+len(own)), id, string(ends), lease, said.linger.decimal(a.Linger))
	return append(append(args, own...), string(rest))
}

// Release returns the arguments of a release: stays is how long a tombstone stays (ms), 0 for none.
func (a *Args) Release(id string, r *state.Record, stays int64, own ...string) []string {
	held, spare := "", ""
	if stays == 0 && r.Lease != berth.Forever {
		// The name is to expire no later than twice the linger and a second from now on. The deadline is at most a lease away, or,
		// of a hold that nobody has confirmed yet, a wait lease.
		held = string(state.AppendHeld(make([]byte, 0, 64), a.Node, r))
		spare = a.said().spare.decimal(2*a.Linger + 1000 - max(r.Lease, r.Wait).Milliseconds())
	}
	rest := append(strconv.AppendInt(make([]byte, 0, 96), a.Linger, 10), ' ')
	rest = append(strconv.AppendInt(rest, stays, 10), ' ')
	rest = append(append(rest, a.Node...), ' ')
	rest = append(append(rest, a.Channel...), '{')
	rest = append(strconv.AppendInt(rest, int64(len(a.Name)), 10), ':')
	rest = append(rest, a.Name...)
	return append(append(make([]string, 0, 4+len(own)), id, held, spare, string(rest)), own...)
}

func (a *Args) said() *Said {
	if a.Said == nil {
		a.Said = &Said{}
	}
	return a.Said
}

// plain says whether a claim asks for no more than the plain case of a grant gives: in a pool any resource for its own,
// bound to nothing, see scripts/pool/wants.lua.
func plain(r *state.Record) bool {
	whatever := r.Extra == "" || strings.HasPrefix(r.Extra, "o ") && strings.HasSuffix(r.Extra, " 0:") && strings.Count(r.Extra, " ") == 4
	return whatever && r.Weight == 1 && r.MaxHold == 0 && r.Lease != berth.Forever && r.Lease <= r.Wait
}
