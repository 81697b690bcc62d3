package once_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/once"
)

// A mill is a name that three processes run, and what may be known of that from outside.
type mill struct {
	t     *rapid.T
	w     *world
	nodes []*process
	dead  []*process
	name  string
	limit int // of the attempts

	mu    sync.Mutex
	runs  []*turn       // guarded by mu: in the order in which f began
	lost  time.Duration // guarded by mu: when the server lost what it knew, 0 for never
	calls sync.WaitGroup
}

// turn is one run of f.
type turn struct {
	run       *once.Run
	period    once.Period
	granted   time.Duration // when its hold was granted, which its fence tells
	over      bool          // f has returned
	succeeded bool          // without an error
	confirmed bool          // and the server has said so
	stopped   bool
}

// start runs the name in the background.
func (m *mill) start(n *process, cfg once.Config, takes time.Duration, fails, heeds bool) {
	ctx := context.Background()
	m.calls.Go(func() {
		var mine *turn
		result, err := n.named(m.name, cfg).Do(ctx, func(ctx context.Context, run *once.Run) error {
			mine = m.begins(run)
			if heeds {
				select {
				case <-time.After(takes):
				case <-ctx.Done():
				}
			} else {
				time.Sleep(takes)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			mine.over = true
			if fails || heeds && ctx.Err() != nil {
				return errMine
			}
			mine.succeeded = true
			return nil
		})
		m.mu.Lock()
		defer m.mu.Unlock()
		if result.Status == once.Done && !slices.ContainsFunc(m.runs, func(r *turn) bool { return r.succeeded && r.run.Fence() == result.Fence }) {
			m.t.Errorf("%s is said to be done under %d, and is not", result.Period, result.Fence)
		}
		if mine != nil {
			mine.stopped = result.Outcome == once.Stopped
			mine.confirmed = mine.succeeded && err == nil
		}
	})
	synctest.Wait()
}

// begins compares a run that begins with those before it.
func (m *mill) begins(run *once.Run) *turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := &turn{run: run, period: run.Period(), granted: time.UnixMicro(run.Fence()).Sub(m.w.Began)}
	attempts := 1
	for _, before := range m.runs {
		if m.lost > 0 && m.lost >= before.granted {
			continue // the server may know nothing of it: a call that is repeated since begins under a smaller fence
		}
		if before.run.Fence() >= run.Fence() {
			m.t.Errorf("fence %d of %s begins after %d of %s", run.Fence(), now.period, before.run.Fence(), before.period)
		}
		if !before.period.Start.Equal(now.period.Start) {
			continue
		}
		if !before.stopped {
			attempts++
		}
		switch {
		case before.confirmed:
			m.t.Errorf("%s begins again under %d and was done under %d", now.period, run.Fence(), before.run.Fence())
		case !before.over && before.run.Hold().Err() == nil, before.over && before.succeeded && before.run.Hold().Err() == nil:
			m.t.Errorf("%s begins under %d while %d holds", now.period, run.Fence(), before.run.Fence())
		}
	}
	if attempts > m.limit {
		m.t.Errorf("attempt %d of %d for %s", attempts, m.limit, now.period)
	}
	if run.Attempt() > m.limit {
		m.t.Errorf("it says that it is attempt %d of %d", run.Attempt(), m.limit)
	}
	m.runs = append(m.runs, now)
	return now
}

// step is one thing that happens.
func (m *mill) step(what string, n int) {
	t, process := m.t, m.nodes[n]
	some := func(label string) time.Duration {
		return rapid.SampledFrom([]time.Duration{0, ms, time.Second, lease - time.Second, lease, 3 * lease, 40 * time.Second}).Draw(t, label)
	}
	switch what {
	case "run":
		cfg := once.Config{
			Every: rapid.SampledFrom([]time.Duration{time.Minute, time.Minute, 30 * time.Second}).Draw(t, "every"), Attempts: m.limit,
			RetryAfter: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "rest"), Wait: rapid.Bool().Draw(t, "wait"),
		}
		m.start(process, cfg, some("takes"), rapid.IntRange(0, 3).Draw(t, "fails") == 0, rapid.Bool().Draw(t, "heeds"))
	case "pass":
		m.w.Advance(some("time"))
	case "die": // as by kill -9; a new process takes its place
		process.Die()
		m.dead, m.nodes[n] = append(m.dead, process), m.w.node()
	case "stand still": // as by SIGSTOP, but that f goes on
		process.Stall()
		m.w.Advance(some("for"))
		process.Flow()
		synctest.Wait()
	case "cut off":
		process.Cut()
		m.w.Advance(some("for"))
		process.Mend()
	case "lose a reply", "lose a request":
		fate := link.LoseReply
		if what == "lose a request" {
			fate = link.LoseRequest
		}
		process.Once(rapid.SampledFrom([]string{"once_begin", "once_end", "thin_acquire", "thin_release", "lock_acquire", "lock_release"}).Draw(t, "script"), fate)
	case "flush":
		m.loses(func() { m.w.Do("FLUSHALL") })
	case "fail over":
		restore := m.w.Snapshot()
		m.w.Advance(some("behind"))
		m.loses(restore)
	}
}

// loses has the server lose what it knows.
func (m *mill) loses(what func()) {
	m.w.Advance(ms) // fences are told apart by the time in between
	lost := func(at time.Duration) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.lost = at
	}
	lost(m.w.Now() + ms) // a run may begin in the midst of it
	what()
	m.w.Advance(ms)
	lost(m.w.Now())
}

// Whatever happens to processes, connections and the server: unless the server has lost what it knew, fences
// rise from run to run, and a period that was confirmed does not begin again, and none begins while another run
// of it holds; and no more attempts begin than are allowed.
func TestWhateverHappensAPeriodIsDoneOnce(t *testing.T) {
	require.NoError(t, amount.Histories(15))
	things := []string{"run", "run", "run", "run", "pass", "pass", "pass", "die", "stand still", "cut off", "lose a reply", "lose a request", "flush", "fail over"}
	inWorld(t, func(t *testing.T, w *world) {
		round, successes, twice := 0, 0, 0
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			round++
			m := &mill{t: rt, w: w, name: fmt.Sprint("mill-", round), limit: rapid.IntRange(1, 4).Draw(rt, "limit")}
			for range 3 {
				m.nodes = append(m.nodes, w.node())
			}
			for range rapid.IntRange(5, 25).Draw(rt, "steps") {
				m.step(rapid.SampledFrom(things).Draw(rt, "what"), rapid.IntRange(0, 2).Draw(rt, "node"))
			}
			for _, n := range m.nodes {
				n.OnCommand(nil)
			}
			m.calls.Wait()
			done := map[time.Time]int{}
			for _, r := range m.runs {
				if r.succeeded {
					successes++
					if done[r.period.Start]++; done[r.period.Start] == 2 {
						twice++
					}
				}
			}
			for _, n := range append(m.nodes, m.dead...) {
				n.Shut()
			}
		})
		t.Logf("%d successes, %d periods twice", successes, twice)
		require.NotZero(t, successes)
	})
}
