package rolling

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

type permit = *semaphore.Permit

var bg = context.Background()

// semaphorePlays are what two releases go through together on a semaphore. Each is
// played both ways.
var semaphorePlays = map[string]func(s *stage, a, b *process){
	"hand on in order":     semaphoreHandsOn,
	"expire and be swept":  semaphoreExpires,
	"renew, detach, force": semaphoreHolds,
	"forget and restore":   semaphoreRestores,
}

func (p *process) permit(opts *semaphore.AcquireOptions) permit {
	h, err := p.sem.TryAcquire(bg, opts)
	return take(p.s, h, err)
}

func (p *process) permitQueued(opts *semaphore.AcquireOptions) *wait[permit] {
	return queue(p.s, func(ctx context.Context) (permit, error) { return p.sem.Acquire(ctx, opts) })
}

// semaphoreHandsOn: what one release holds is handed on to the other's claims, which
// stand in one line.
func semaphoreHandsOn(s *stage, a, b *process) {
	meta := map[string]string{"of": "both"}
	two := a.permit(&semaphore.AcquireOptions{Weight: 2, Meta: meta})
	one := b.permit(nil)
	require.Greater(s, one.Fence(), two.Fence())
	_, err := b.sem.TryAcquire(bg, nil)
	require.ErrorIs(s, err, berth.ErrNotAcquired)
	heavy := b.permitQueued(&semaphore.AcquireOptions{Weight: 3, MaxHold: time.Minute})
	light := a.permitQueued(&semaphore.AcquireOptions{Meta: meta})
	ahead := b.permitQueued(&semaphore.AcquireOptions{Priority: 5})

	for _, p := range []*process{a, b} {
		stats, err := p.sem.Stats(bg)
		s.ok(err)
		require.Equal(s, []int{3, 3, 2, 3}, []int{stats.Capacity, stats.Held, stats.Holders, stats.Waiting})
		for _, h := range all(s, p.sem.Holders(bg)) {
			if h.ID == two.ID() {
				require.Equal(s, []any{2, two.Fence(), a.sems.Node(), meta}, []any{h.Weight, h.Fence, h.Node, h.Meta})
			}
		}
		var nodes []string
		for _, w := range all(s, p.sem.Waiters(bg)) {
			nodes = append(nodes, w.Node)
		}
		require.Equal(s, []string{b.sems.Node(), b.sems.Node(), a.sems.Node()}, nodes, "the line, by priority and age")
	}

	giveBack(s, two)
	first := ahead.granted(one.Fence())
	heavy.waits()
	light.waits()
	giveBack(s, one, first)
	second := heavy.granted(first.Fence())
	light.waits()
	lives(s, second)
	giveBack(s, second)
	third := light.granted(second.Fence())
	giveBack(s, third)
	idle(s, a, b)
}

// semaphoreExpires: what a dead process of one release has left is swept by the other.
func semaphoreExpires(s *stage, a, b *process) {
	lost := a.permit(&semaphore.AcquireOptions{Weight: 2})
	fixed := a.permit(&semaphore.AcquireOptions{NoRenew: true, Lease: 2 * second})
	gone := a.permitQueued(&semaphore.AcquireOptions{Weight: 3})
	waits := b.permitQueued(&semaphore.AcquireOptions{Weight: 3})
	a.die()
	s.pass(2 * second)
	require.ErrorIs(s, fixed.Err(), berth.ErrNotHeld)
	waits.waits()
	s.pass(lease)
	gone.stop()
	require.ErrorIs(s, lost.Err(), berth.ErrLost)
	got := waits.granted(fixed.Fence())
	lives(s, got)
	giveBack(s, got)
	idle(s, b)
}

// semaphoreHolds: each release renews, takes over, ends and resizes what is the
// other's.
func semaphoreHolds(s *stage, a, b *process) {
	renewed, forever := a.permit(nil), b.permit(&semaphore.AcquireOptions{Lease: berth.Forever})
	short := a.permit(&semaphore.AcquireOptions{MaxHold: 20 * second})
	next := b.permitQueued(nil)
	s.pass(15 * second)
	lives(s, renewed, forever, short)
	next.waits()
	s.pass(5 * second)
	require.ErrorIs(s, short.Err(), berth.ErrExpired)
	fourth := next.granted(short.Fence())

	token, err := renewed.Detach(bg)
	s.ok(err)
	s.pass(lease / 2)
	resumed, err := b.sems.Resume(bg, token)
	s.ok(err)
	require.Equal(s, renewed.Fence(), resumed.Fence())
	s.pass(2 * lease)
	lives(s, resumed)
	require.ErrorIs(s, renewed.Err(), berth.ErrReleased)

	waiting := a.permitQueued(nil)
	s.ok(a.sems.ReleaseByID(bg, name, forever.ID()))
	s.pass(10 * time.Millisecond)
	require.ErrorIs(s, forever.Err(), berth.ErrReleased)
	fifth := waiting.granted(fourth.Fence())

	s.ok(b.sem.Resize(bg, 4, nil))
	sixth := a.permit(nil)
	s.ok(a.sem.Resize(bg, 1, nil))
	last := b.permitQueued(nil)
	cancelled := a.permitQueued(nil)
	cancelled.stop()
	giveBack(s, fourth, fifth, resumed)
	last.waits()
	giveBack(s, sixth)
	giveBack(s, last.granted(sixth.Fence()))
	idle(s, a, b)
}

// semaphoreRestores: after a flush those who wait stand where they stood, whoever
// asks first.
func semaphoreRestores(s *stage, a, b *process) {
	hold := a.permit(&semaphore.AcquireOptions{Weight: 3})
	waits := []*wait[permit]{}
	for n := range 4 {
		p := []*process{a, b}[n%2]
		waits = append(waits, p.permitQueued(&semaphore.AcquireOptions{Weight: 3}))
	}
	s.do("FLUSHALL")
	s.pass(lease)
	require.ErrorIs(s, hold.Err(), berth.ErrLost)
	last := hold.Fence()
	// Who asked first may have been granted ahead of others: one, with all there is.
	for done := 0; done < len(waits); done++ {
		s.pass(lease)
		for n, w := range waits {
			if w == nil || !over(w) {
				continue
			}
			got := w.granted(last)
			last = got.Fence()
			lives(s, got)
			require.True(s, done == 0 || n == firstOf(waits), "the line is in order")
			waits[n] = nil
			giveBack(s, got)
			break
		}
	}
	require.Equal(s, len(waits), firstOf(waits), "all were granted")
	idle(s, a, b)
}

func over[H handle](w *wait[H]) bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// firstOf is the first that still waits.
func firstOf[H handle](waits []*wait[H]) int {
	for n, w := range waits {
		if w != nil {
			return n
		}
	}
	return len(waits)
}

// idle wants nothing held and nobody waiting, for all of them.
func idle(s *stage, all ...*process) {
	s.pass(second)
	for _, p := range all {
		stats, err := p.sem.Stats(bg)
		s.ok(err)
		require.Equal(s, []int{0, 0, 0}, []int{stats.Held, stats.Holders, stats.Waiting}, "nothing is left")
	}
}
