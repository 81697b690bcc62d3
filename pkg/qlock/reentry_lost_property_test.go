package qlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/qlock"
)

// house is what the machine below knows of one lock and those who want it: two
// nodes, and two owners who work on both.
type house struct {
	t     *rapid.T
	w     *world
	name  string
	nodes []*proc

	mu     sync.Mutex
	locks  []*qlock.Lock        // guarded by mu: every handle that there ever was
	fences map[int64]string     // guarded by mu: whom each was granted to
	cancel []context.CancelFunc // of the acquires that are on their way
	token  []berth.Token        // guarded by mu
	parked map[*qlock.Lock]bool // guarded by mu: detached, so that nobody works under them
	work   sync.WaitGroup

	// what it draws from
	owners    []string
	conflicts []qlock.Conflict
	times     []time.Duration
}

var durations = []time.Duration{200 * ms, time.Second, 3 * time.Second, lease, 20 * time.Second}

func (h *house) duration(label string) time.Duration {
	return rapid.SampledFrom(durations).Draw(h.t, label)
}

func (h *house) node() *proc { return h.nodes[rapid.IntRange(0, 1).Draw(h.t, "node")] }

func (h *house) owner() string {
	return rapid.SampledFrom(h.owners).Draw(h.t, "owner")
}

// one is a handle, the newer the likelier, nil where there is none.
func (h *house) one() *qlock.Lock {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.locks) == 0 {
		return nil
	}
	back := rapid.IntRange(0, min(len(h.locks), 5)-1).Draw(h.t, "back")
	return h.locks[len(h.locks)-1-back]
}

// begin does something in the background: its calls may be slow.
func (h *house) begin(f func()) {
	h.work.Go(f)
	synctest.Wait()
}

func (h *house) options() *qlock.LockOptions {
	t := h.t
	o := &qlock.LockOptions{
		Lease: h.duration("lease"), NoRenew: rapid.Bool().Draw(t, "fixed"),
		Conflict: rapid.SampledFrom(h.conflicts).Draw(t, "conflict"),
	}
	if rapid.IntRange(0, 3).Draw(t, "bounded") == 0 {
		o.MaxHold = h.duration("max hold")
	}
	if o.Conflict != qlock.ExtendAndWorkThrough && rapid.IntRange(0, 5).Draw(t, "endless") == 0 {
		o.Lease = berth.Forever
	}
	return o
}

func (h *house) add(l *qlock.Lock, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.locks = append(h.locks, l)
	if was, ok := h.fences[l.Fence()]; ok {
		require.Equal(h.t, was, owner, "two owners have one fence")
	}
	h.fences[l.Fence()] = owner
}

func (h *house) lock(*rapid.T) {
	n, owner, o := h.node(), h.owner(), h.options()
	ctx, cancel := context.WithCancel(berth.WithOwner(context.Background(), owner))
	h.cancel = append(h.cancel, cancel)
	wait := rapid.IntRange(0, 2).Draw(h.t, "wait") > 0
	if wait {
		o.MaxWait = h.duration("max wait")
	}
	h.begin(func() {
		acquire := n.TryLock
		if wait {
			acquire = n.Lock
		}
		l, err := acquire(ctx, h.name, o)
		if err == nil {
			h.add(l, owner)
		}
	})
}

// with does something with a handle, in the background.
func (h *house) with(do func(l *qlock.Lock)) {
	if l := h.one(); l != nil {
		h.begin(func() { do(l) })
	}
}

func (h *house) give(*rapid.T) { h.with(func(l *qlock.Lock) { _ = l.Release(ctx) }) }

func (h *house) renew(*rapid.T) { h.with(func(l *qlock.Lock) { _ = l.Renew(ctx) }) }

func (h *house) extend(*rapid.T) {
	by := h.duration("by")
	h.with(func(l *qlock.Lock) { _ = l.Extend(ctx, by) })
}

func (h *house) detach(*rapid.T) {
	h.with(func(l *qlock.Lock) {
		if token, err := l.Detach(ctx); err == nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.token, h.parked[l] = append(h.token, token), true
		}
	})
}

func (h *house) resume(*rapid.T) {
	h.mu.Lock()
	if len(h.token) == 0 {
		h.mu.Unlock()
		return
	}
	token := h.token[len(h.token)-1]
	h.token = h.token[:len(h.token)-1]
	h.mu.Unlock()
	n := h.node()
	h.begin(func() {
		if l, err := n.Resume(context.Background(), token); err == nil {
			h.mu.Lock()
			h.locks = append(h.locks, l)
			h.mu.Unlock()
		}
	})
}

func (h *house) leave(*rapid.T) {
	if len(h.cancel) > 0 {
		h.cancel[len(h.cancel)-1]()
		h.cancel = h.cancel[:len(h.cancel)-1]
		synctest.Wait()
	}
}

func (h *house) pass(*rapid.T) {
	h.w.Advance(rapid.SampledFrom(h.times).Draw(h.t, "time"))
}

// weather makes things happen to the calls of a node from now on.
func (h *house) weather(*rapid.T) {
	n := h.nodes[rapid.IntRange(0, 1).Draw(h.t, "node")]
	odds := rapid.SampledFrom([]int{0, 2, 5, 8}).Draw(h.t, "tenths of the calls that go wrong")
	dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(h.t, "seed"), 0))
	var mu sync.Mutex
	n.OnCommand(func(c link.Command) link.Fate {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(c.Name, "lock_") && !strings.HasPrefix(c.Name, "thin_") || dice.IntN(10) >= odds {
			return link.Pass
		}
		switch dice.IntN(8) {
		case 0:
			return link.LoseReply
		case 1:
			return link.LoseRequest
		case 2:
			return link.Late
		}
		return link.Slow(time.Duration(1+dice.IntN(2500)) * ms)
	})
}

func (h *house) cut(*rapid.T) {
	n := h.node()
	if rapid.Bool().Draw(h.t, "cut") {
		n.Cut()
	} else {
		n.Mend()
		_, _ = n.DeliverLate()
	}
	synctest.Wait()
}

// check holds every handle against the server.
func (h *house) check(*rapid.T) {
	h.mu.Lock()
	locks := slices.DeleteFunc(slices.Clone(h.locks), func(l *qlock.Lock) bool { return h.parked[l] })
	h.mu.Unlock()
	owners := make(map[int64]bool)
	for _, l := range locks {
		if l.Err() != nil {
			continue
		}
		owners[l.Fence()] = true
		has, ok := h.w.leftOf(l)
		require.True(h.t, ok, "a handle lives whose lock was given away, with %s left: %s %s", l.Left(), l.Via(), l.ID())
		if left := l.Left(); left != berth.Forever {
			require.Less(h.t, left, has, "a handle believes in more than the server does")
		} else {
			require.Equal(h.t, berth.Forever, has, "a handle believes in a hold without end")
		}
	}
	require.LessOrEqual(h.t, len(owners), 1, "handles of two grants live")
}

func (h *house) close() {
	for _, cancel := range h.cancel {
		cancel()
	}
	for _, n := range h.nodes {
		n.Mend()
		n.OnCommand(nil)
		n.Shut()
		n.Redis.Close()
	}
	h.work.Wait()
	synctest.Wait()
}

func TestAHandleNeverOutlivesItsLockWhateverHappens(t *testing.T) {
	eachHouse(t, func(h *house) {
		h.owners = []string{"ann", "ann", "ann", "bob"}
		h.conflicts = []qlock.Conflict{
			qlock.WorkThrough, qlock.ExtendAndWorkThrough, qlock.ExtendAndWorkThrough, qlock.Wait, qlock.FailDeadlock,
		}
		h.times = []time.Duration{ms, 50 * ms, 300 * ms, time.Second, 2500 * ms, 7 * time.Second}
		h.t.Repeat(map[string]func(*rapid.T){
			"lock": h.lock, "lock again": h.lock, "lock once more": h.lock, "release": h.give, "release another": h.give,
			"extend": h.extend, "renew": h.renew, "detach": h.detach, "resume": h.resume, "leave": h.leave,
			"pass": h.pass, "pass more": h.pass, "weather": h.weather, "other weather": h.weather, "cut": h.cut, "": h.check,
		})
	})
}

// One owner enters again and again, and is let out again in every order.
func TestWhatIsGivenBackIsBelievedInByNobody(t *testing.T) {
	eachHouse(t, func(h *house) {
		h.owners = []string{"ann"}
		h.conflicts = []qlock.Conflict{qlock.WorkThrough, qlock.ExtendAndWorkThrough, qlock.ExtendAndWorkThrough}
		h.times = []time.Duration{ms, 50 * ms, 300 * ms, time.Second}
		h.nodes = append(h.nodes[:1], h.nodes[0])
		h.t.Repeat(map[string]func(*rapid.T){
			"lock": h.lock, "lock again": h.lock, "lock once more": h.lock,
			"release": h.give, "release another": h.give, "release one more": h.give,
			"extend": h.extend, "renew": h.renew, "detach": h.detach, "resume": h.resume,
			"pass": h.pass, "weather": h.weather, "": h.check,
		})
	})
}

func eachHouse(t *testing.T, play func(h *house)) {
	t.Helper()
	require.NoError(t, amount.Histories(8))
	inWorld(t, func(t *testing.T, w *world) {
		runs := 0
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			runs++
			h := &house{t: rt, w: w, name: fmt.Sprint("house", runs), fences: make(map[int64]string), parked: make(map[*qlock.Lock]bool)}
			h.nodes = []*proc{w.node(), w.node()}
			for _, n := range h.nodes {
				n.connect()
			}
			defer h.close()
			play(h)
		})
	})
}
