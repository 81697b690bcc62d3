package leader_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// history is a random one: processes that stand, and what happens to them.
type history struct {
	w    *world
	op   *process
	crew []*member

	mu    sync.Mutex
	alive map[*term]bool // guarded by mu: the terms whose f has not returned
	fence int64          // guarded by mu: of the newest
	wrong []string       // guarded by mu
}

// crew is the label of all of them.
const crew = "crew"

// member is a process that stands again and again.
type member struct {
	*candidate
	cfg    *leader.Config
	lag    time.Duration // how long f takes to heed
	resign chan struct{} // tells f to return
}

// begin looks at the other terms in the moment in which one begins.
func (h *history) begin(ctx context.Context, fence int64) *term {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.alive {
		if t.ctx.Err() == nil {
			h.wrong = append(h.wrong, fmt.Sprintf("at %s the context of %d lives when %d begins", h.w.Now(), t.fence, fence))
		}
	}
	if fence <= h.fence {
		h.wrong = append(h.wrong, fmt.Sprintf("at %s %d begins after %d", h.w.Now(), fence, h.fence))
	}
	h.fence = fence
	t := &term{ctx: ctx, fence: fence}
	h.alive[t] = true
	return t
}

func (h *history) stand(m *member, n *process) {
	m.candidate = n.stand(m.cfg, func(ctx context.Context) error {
		t := h.begin(ctx, n.election(nil).Fence(ctx))
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.alive, t)
		}()
		select {
		case <-m.resign:
			return errOwn
		case <-ctx.Done():
			<-time.After(m.lag)
			return nil
		}
	})
}

func (h *history) leaders() (count int) {
	for _, m := range h.crew {
		if m.leads() {
			count++
		}
	}
	return count
}

// notice has all of the processes drain, or stop that.
func (h *history) notice(what string) {
	h.w.Advance(ms) // two of one moment would be the same call
	h.w.Notice("l:"+crew, 0, what)
}

// do is one step.
func (h *history) do(rt *rapid.T) {
	m := rapid.SampledFrom(h.crew).Draw(rt, "who")
	steps := map[string]func(){
		"cut": m.n.Cut, "mend": m.n.Mend, "stall": m.n.Stall, "flow": m.n.Flow, "break": m.n.Break,
		"deaf": func() { m.n.Deafen(true) }, "hear": func() { m.n.Deafen(false) }, "fast": func() { m.n.Delay(nil) },
		"drain": func() { h.notice("drain") }, "stop": func() { h.notice("stop") },
		"slow": func() {
			d := time.Duration(rapid.IntRange(1, 3000).Draw(rt, "delay")) * ms
			m.n.Delay(func() time.Duration { return d })
		},
		"want": func() {
			_, _ = h.op.Operator().Want(context.Background(), berth.Target{Kind: keyspace.Lock, Name: boss})
		},
		"resign": func() {
			select {
			case m.resign <- struct{}{}:
				<-m.Done
				h.stand(m, m.n)
			default: // it does not lead
			}
		},
		"leave": func() {
			m.Cancel(errOwn)
			<-m.Done
			h.stand(m, m.n)
		},
	}
	steps[rapid.SampledFrom(slices.Sorted(maps.Keys(steps))).Draw(rt, "what")]()
	h.w.Advance(time.Duration(rapid.IntRange(0, 4000).Draw(rt, "pass")) * ms)
}

// mend ends all faults.
func (h *history) mend() {
	h.notice("stop")
	for _, m := range h.crew {
		m.n.Mend()
		m.n.Flow()
		m.n.Deafen(false)
		m.n.Delay(nil)
	}
}

// Nobody loses the server's data, and no operator ends a term by force: after these two may lead for a while.
func TestWhateverHappensNoTwoLeadAndInTheEndSomebodyDoes(t *testing.T) {
	require.NoError(t, amount.Histories(8))
	inWorld(t, func(t *testing.T, w *world) {
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			h := &history{w: w, op: w.node(), alive: map[*term]bool{}}
			for range rapid.IntRange(2, 4).Draw(rt, "processes") {
				m := &member{resign: make(chan struct{}), cfg: &leader.Config{}}
				m.cfg.Priority = rapid.IntRange(0, 1).Draw(rt, "priority")
				if rapid.Bool().Draw(rt, "wants") {
					m.cfg.WantAfter = 10 * time.Second
				}
				m.lag = time.Duration(rapid.IntRange(0, 1).Draw(rt, "lag")) * 5 * time.Second
				h.stand(m, w.node(node.Config{Label: crew}))
				h.crew = append(h.crew, m)
			}
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				h.do(rt)
			}
			h.mend()
			w.Advance(5 * lease)
			leads := h.leaders()
			for patience := 0; leads != 1 && patience < 10; patience++ { // who is between two terms
				w.Advance(time.Second)
				leads = h.leaders()
			}
			for _, m := range h.crew {
				m.Cancel(nil)
			}
			for _, m := range h.crew {
				<-m.Done
				m.n.Shut()
			}
			require.Empty(rt, h.wrong)
			require.Equal(rt, 1, leads, "how many lead after all faults have ended")
		})
	})
}
