package inspect

import (
	"errors"
	"slices"
	"time"

	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
)

// snapshot is one name as one reading found it, and what else the rules look at.
type snapshot struct {
	reader.Snapshot
	namespace string
	claim     *reader.Asked          // the claim that an explanation is about, nil for the name
	nodes     map[string]reader.Node // what the swarm says of nodes, by the clock of the name's server
	server    *reader.Server         // nil: not known
	shared    *shared                // of several explanations, nil for none
}

// filled is what a reading found, as the rules look at it. The error is that of the server.
func (r *Reader) filled(found reader.Snapshot, all notice.Field) (*snapshot, error) {
	s := &snapshot{Snapshot: found, namespace: r.namespace}
	s.Name = found.Under(all)
	if s.Err != nil && s.newer() == 0 {
		return nil, s.Err
	}
	return s, nil
}

// newer is the number of a newer form, -1 for what is not Berth's, else 0.
func (s *snapshot) newer() int {
	var format *state.FormatError
	switch {
	case !errors.As(s.Err, &format):
		return 0
	case format.Number > 0:
		return int(format.Number)
	}
	return -1
}

// shared is what explanations of one snapshot have in common: a snapshot that has it does not change any more.
type shared struct {
	nodes    map[string]told
	coming   *coming                   // of the name, and of those who wait in the line
	inTheWay map[string][]*reader.Held // of those who wait for a resource, "" for the line
	work     int                       // of what comes; see enough
	both     map[string]string         // the owners of the claims whose label is that of a hold and of a wait
}

// sharing is a snapshot of which several explanations are made, all of them about the same claim or none.
func (s *snapshot) sharing() *snapshot {
	if s.shared != nil {
		return s
	}
	same := *s
	same.shared = &shared{nodes: s.tells(), inTheWay: map[string][]*reader.Held{}, both: s.both()}
	return &same
}

// both are the claims that a label does not tell apart: some claims of its process hold, and others wait.
func (s *snapshot) both() map[string]string {
	holding, waiting, owners := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, h := range s.Holds {
		holding[h.Label] = true
	}
	waits := slices.Concat(s.Line, s.Lanes)
	if c := s.claim; c != nil && c.Wait != nil {
		waits = append(waits, c.Wait)
	}
	for _, w := range waits {
		if holding[w.Label] {
			waiting[w.Label], owners[w.ID] = true, w.Owner
		}
	}
	for _, h := range s.Holds {
		if waiting[h.Label] {
			owners[h.ID] = h.Owner
		}
	}
	return owners
}

// about is a snapshot that was asked for another claim, one that was read with it, or for none.
func (s *snapshot) about(c *reader.Asked) *snapshot {
	other := *s
	other.claim = c
	return &other
}

// alive says whether a waiting claim counts as alive.
func (s *snapshot) alive(w *reader.Place) bool { return w.Record.Alive().After(s.At) }

// pauseEnds is when the pause ends, zero where there is none.
func (s *snapshot) pauseEnds() time.Time {
	if s.Pause == nil {
		return time.Time{}
	}
	return s.At.Add(s.Pause.Left)
}

// patience is until when a claim waits for its resource alone, zero for ever: a pause keeps it from taking another.
func (s *snapshot) patience(w *reader.Place) time.Time {
	if end := s.pauseEnds(); !w.Until.IsZero() && end.After(w.Until) {
		return end
	}
	return w.Until
}

// ago is how long ago a moment was.
func (s *snapshot) ago(t time.Time) time.Duration { return max(0, s.At.Sub(t)) }

// left is how long it is until a moment.
func (s *snapshot) left(t time.Time) time.Duration { return max(0, t.Sub(s.At)) }

// partial says whether not all of the name was read.
func (s *snapshot) partial() bool {
	return s.HoldsLeft > 0 || s.LineLeft > 0 || s.LanesLeft > 0 || s.RestsLeft > 0
}

// label is how a sentence names a claim's process.
func (s *snapshot) label(claim string) string {
	switch c := s.Among(claim); {
	case c != nil && c.Hold != nil:
		return c.Hold.Label
	case c != nil && c.Wait != nil:
		return c.Wait.Label
	}
	return ""
}
