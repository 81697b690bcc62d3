package rolling

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

type permit = *semaphore.Permit

var bg = context.Background()

// semaphorePlays are what two releases go through together on a semaphore. Each is
// played both ways.
var semaphorePlays = map[string]func(w *world, a, b *process){
	"hand on in order":     semaphoreHandsOn,
	"expire and be swept":  semaphoreExpires,
	"renew, detach, force": semaphoreHolds,
	"forget and restore":   semaphoreRestores,
}

func (p *process) permit(opts *semaphore.AcquireOptions) permit {
	h, err := p.sem.TryAcquire(bg, opts)
	return take(p.w, h, err)
}

func (p *process) permitQueued(opts *semaphore.AcquireOptions) *wait[permit] {
	return queue(p.w, func(ctx context.Context) (permit, error) { return p.sem.Acquire(ctx, opts) })
}

// semaphoreHandsOn: what one release holds is handed on to the other's claims, which
// stand in one line.
func semaphoreHandsOn(w *world, a, b *process) {
	meta := map[string]string{"of": "both"}
	two := a.permit(&semaphore.AcquireOptions{Weight: 2, Meta: meta})
	one := b.permit(nil)
	require.Greater(w, one.Fence(), two.Fence())
	_, err := b.sem.TryAcquire(bg, nil)
	require.ErrorIs(w, err, berth.ErrNotAcquired)
	heavy := b.permitQueued(&semaphore.AcquireOptions{Weight: 3, MaxHold: time.Minute})
	light := a.permitQueued(&semaphore.AcquireOptions{Meta: meta})
	ahead := b.permitQueued(&semaphore.AcquireOptions{Priority: 5})

	w.read(func(p *process) {
		n := w.look(keyspace.Sem)
		require.Equal(w, []int{3, 3, 2, 3}, []int{n.Capacity, n.Held, n.Holders, n.Waiting})
		for _, h := range w.holders(keyspace.Sem) {
			if h.ID == two.ID() {
				require.Equal(w, []any{2, two.Fence(), a.ID(), meta}, []any{h.Weight, h.Fence, h.Node, h.Meta})
			}
		}
		var nodes []string
		for _, w := range w.waiters(keyspace.Sem) {
			nodes = append(nodes, w.Node)
		}
		require.Equal(w, []string{b.ID(), b.ID(), a.ID()}, nodes, "the line, by priority and age")
	}, a, b)

	giveBack(w, two)
	first := ahead.granted(one.Fence())
	heavy.waits()
	light.waits()
	giveBack(w, one, first)
	second := heavy.granted(first.Fence())
	light.waits()
	lives(w, second)
	giveBack(w, second)
	third := light.granted(second.Fence())
	giveBack(w, third)
	idle(w, a, b)
}

// semaphoreExpires: what a dead process of one release has left is swept by the other.
func semaphoreExpires(w *world, a, b *process) {
	lost := a.permit(&semaphore.AcquireOptions{Weight: 2})
	fixed := a.permit(&semaphore.AcquireOptions{NoRenew: true, Lease: 2 * second})
	gone := a.permitQueued(&semaphore.AcquireOptions{Weight: 3})
	waits := b.permitQueued(&semaphore.AcquireOptions{Weight: 3})
	a.die()
	w.pass(2 * second)
	require.ErrorIs(w, fixed.Err(), berth.ErrNotHeld)
	waits.waits()
	w.pass(lease)
	gone.stop()
	require.ErrorIs(w, lost.Err(), berth.ErrLost)
	got := waits.granted(fixed.Fence())
	lives(w, got)
	giveBack(w, got)
	idle(w, b)
}

// semaphoreHolds: each release renews, takes over, ends and resizes what is the
// other's.
func semaphoreHolds(w *world, a, b *process) {
	renewed, forever := a.permit(nil), b.permit(&semaphore.AcquireOptions{Lease: berth.Forever})
	short := a.permit(&semaphore.AcquireOptions{MaxHold: 20 * second})
	next := b.permitQueued(nil)
	w.pass(15 * second)
	lives(w, renewed, forever, short)
	next.waits()
	w.pass(5 * second)
	require.ErrorIs(w, short.Err(), berth.ErrExpired)
	fourth := next.granted(short.Fence())

	token, err := renewed.Detach(bg)
	w.ok(err)
	w.pass(lease / 2)
	resumed, err := b.sem.Resume(bg, token)
	w.ok(err)
	require.Equal(w, renewed.Fence(), resumed.Fence())
	w.pass(2 * lease)
	lives(w, resumed)
	require.ErrorIs(w, renewed.Err(), berth.ErrReleased)

	waiting := a.permitQueued(nil)
	_, err = a.Operator().Release(bg, berth.Target{Kind: keyspace.Sem, Name: name, Claim: forever.ID()})
	w.ok(err)
	w.pass(10 * time.Millisecond)
	require.ErrorIs(w, forever.Err(), berth.ErrReleased)
	fifth := waiting.granted(fourth.Fence())

	w.ok(semaphore.NewOperator(b.Node).Resize(bg, name, 4, nil))
	sixth := a.permit(nil)
	w.ok(semaphore.NewOperator(a.Node).Resize(bg, name, 1, nil))
	last := b.permitQueued(nil)
	cancelled := a.permitQueued(nil)
	cancelled.stop()
	giveBack(w, fourth, fifth, resumed)
	last.waits()
	giveBack(w, sixth)
	giveBack(w, last.granted(sixth.Fence()))
	idle(w, a, b)
}

// semaphoreRestores: after a flush those who wait stand where they stood, whoever
// asks first.
func semaphoreRestores(w *world, a, b *process) {
	hold := a.permit(&semaphore.AcquireOptions{Weight: 3})
	waits := []*wait[permit]{}
	for n := range 4 {
		p := []*process{a, b}[n%2]
		waits = append(waits, p.permitQueued(&semaphore.AcquireOptions{Weight: 3}))
	}
	w.do("FLUSHALL")
	w.pass(lease)
	require.ErrorIs(w, hold.Err(), berth.ErrLost)
	last := hold.Fence()
	// Who asked first may have been granted ahead of others: one, with all there is.
	for done := 0; done < len(waits); done++ {
		w.pass(lease)
		for n, q := range waits {
			if q == nil || !over(q) {
				continue
			}
			got := q.granted(last)
			last = got.Fence()
			lives(w, got)
			require.True(w, done == 0 || n == firstOf(waits), "the line is in order")
			waits[n] = nil
			giveBack(w, got)
			break
		}
	}
	require.Equal(w, len(waits), firstOf(waits), "all were granted")
	idle(w, a, b)
}

func over[H handle](q *wait[H]) bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// firstOf is the first that still waits.
func firstOf[H handle](waits []*wait[H]) int {
	for n, q := range waits {
		if q != nil {
			return n
		}
	}
	return len(waits)
}

// idle wants nothing held and nobody waiting, for all of them.
func idle(w *world, all ...*process) {
	w.pass(second)
	w.read(func(p *process) {
		n := w.look(keyspace.Sem)
		require.Equal(w, []int{0, 0, 0}, []int{n.Held, n.Holders, n.Waiting}, "nothing is left")
	}, all...)
}
