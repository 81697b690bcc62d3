package watch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestWhatIsReadAsideIsReadAtASlowPaceTheSlowerTheLongerItTakes(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		var s source
		f := look(w, "a", searches, nil, s.read)
		defer f.Close()
		reads := func(at time.Duration, n int) {
			t.Helper()
			advance(at - time.Second)
			require.Equal(t, n-1, s.count())
			advance(time.Second)
			require.Equal(t, n, s.count())
		}
		reads(asideEvery+500*time.Millisecond, 2)
		s.set(time.Second, nil)
		reads(asideEvery, 3)
		s.set(time.Second, errors.New("it is away"))
		reads(asideShare*time.Second, 4)
		reads(asideShare*time.Second, 5)
	})
}

// jam is a cycle of two claims: who holds a waits for b, and the other way round.
type jam struct {
	*Watcher
	reads *testkit.Process
	waits func(owner, name string) // has somebody else wait
	end   func()                   // releases b
}

func inCycle(t *testing.T, test func(t *testing.T, w jam)) {
	t.Helper()
	testkit.In(t, "a", "berth:lock:{a}:state", "berth:lock:{a}:line", func(t *testing.T, base *testkit.World) {
		p := base.Process()
		n := testkit.Must(node.New(p.Redis, node.Config{Lease: time.Hour})).In(t)
		locks := qlock.New(n, qlock.Config{Lease: time.Hour})
		p.Closes(n.Close)
		var held []*qlock.Lock
		for _, name := range []string{"a", "b"} {
			held = append(held, testkit.Must(locks.Lock(berth.WithOwner(t.Context(), "holds "+name), name, nil)).In(t))
		}
		waits := func(owner, name string) {
			testkit.Queue(berth.WithOwner(t.Context(), owner), base, func(ctx context.Context) (*qlock.Lock, error) { return locks.Lock(ctx, name, nil) })
		}
		waits("holds a", "b")
		waits("holds b", "a")
		advance(time.Second) // until the registry has both
		reads := base.Process()
		w := New(testkit.Must(inspect.New(reads.Redis, inspect.Config{})).In(t), nil)
		defer w.Close()
		test(t, jam{w, reads, waits, func() { require.NoError(t, held[1].Release(context.WithoutCancel(t.Context()))) }})
	})
}

func (w *Watcher) searched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.topics[cycles]; t != nil {
		return t.last.Seq
	}
	return 0
}

func TestCyclesAreSearchedForAtASlowPaceBesideAnOverviewAndAtOnceForWhoLooksAtThem(t *testing.T) {
	inCycle(t, func(t *testing.T, w jam) {
		f := w.Overview()
		defer f.Close()
		stuck := func() (stuck int) {
			last := testkit.Must(f.First(t.Context())).In(t)
			for _, n := range last.Value.Items {
				if n.Trouble.Why == string(inspect.InCycle) {
					stuck++
				}
			}
			require.Equal(t, stuck, last.Value.Stuck)
			return stuck
		}
		advance(OverviewEvery + time.Second)
		require.Equal(t, []int{1, 2}, []int{w.searched(), stuck()})
		require.Len(t, w.CyclesSeen().Cycles, 1)
		advance(asideEvery - OverviewEvery - 2*time.Second)
		require.Equal(t, 1, w.searched())
		advance(time.Second)
		require.Equal(t, 2, w.searched())

		advance(22 * time.Second)
		page := w.Cycles()
		last, news := page.Last()
		require.Zero(t, last.Seq, "the last search was long ago")
		opened := time.Now()
		<-news
		require.Equal(t, opened, time.Now(), "at once")
		require.Equal(t, 3, w.searched())
		last = testkit.Must(page.First(t.Context())).In(t)
		require.Len(t, last.Value.Cycles, 1)
		advance(4 * CyclesEvery)
		require.Equal(t, 7, w.searched())
		again := w.Cycles()
		last, _ = again.Last()
		require.Equal(t, 7, last.Seq)
		again.Close()
		again.Close()
		advance(CyclesEvery)
		require.Equal(t, 8, w.searched(), "another one looks yet")
		page.Close()
		advance(asideEvery - 5*time.Second)
		require.Equal(t, 8, w.searched())

		w.end()
		advance(OverviewEvery)
		require.Equal(t, []int{8, 1}, []int{w.searched(), stuck()}, "nobody waits for one of them any more")
		f.Anew(w.Begun())
		advance(OverviewEvery)
		require.Equal(t, []int{9, 0}, []int{w.searched(), stuck()}, "an action has a search made anew")
		f.Close()
		advance(2 * asideEvery)
		require.Zero(t, w.searched(), "nobody looks")
		require.Nil(t, w.CyclesSeen())
	})
}

func TestASearchAsideReadsLessOfEachLine(t *testing.T) {
	inCycle(t, func(t *testing.T, w jam) {
		n := testkit.Must(node.New(w.reads.Redis, node.Config{Lease: time.Hour})).In(t)
		defer func() { require.NoError(t, n.Close(context.WithoutCancel(t.Context()))) }()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		for range asideLine {
			all.Go(func() { _, _ = qlock.New(n, qlock.Config{}).Lock(ctx, "a", nil) }) // until the test ends
		}
		advance(time.Second)
		defer w.Overview().Close()
		advance(time.Second)
		require.True(t, w.CyclesSeen().Partial)
		advance(asideEvery / 2)
		f := w.Cycles()
		defer f.Close()
		require.False(t, testkit.Must(f.First(t.Context())).In(t).Value.Partial)
	})
}

func TestANameSaysThatItIsInACycleAsLongAsItMayBe(t *testing.T) {
	inCycle(t, func(t *testing.T, w jam) {
		free := w.Name(keyspace.Lock, "free", "")
		defer free.Close()
		advance(asideEvery)
		require.Zero(t, w.searched(), "nobody waits for it")
		f := w.Name(keyspace.Lock, "a", "")
		defer f.Close()
		last := func() Name {
			last := testkit.Must(f.First(t.Context())).In(t)
			return last.Value
		}
		advance(NameEvery + NameEvery/2)
		n := last()
		require.NotNil(t, n.Cycle)
		require.True(t, n.Cycle.Certain)
		require.Equal(t, berth.LevelStuck, n.Trouble.Level)
		names := w.Names(inspect.NameFilter{}, "", true)
		defer names.Close()
		page := testkit.Must(names.First(t.Context())).In(t)
		require.Equal(t, 2, page.Value.Stuck, "as far as it is known")
		advance(10 * time.Second)
		require.Equal(t, 1, w.searched())

		w.end() // who waits for b gets it
		w.waits("another", "b")
		b := w.Name(keyspace.Lock, "b", "")
		defer b.Close()
		advance(NameEvery)
		require.Nil(t, testkit.Must(b.First(t.Context())).In(t).Value.Cycle)
		w.reads.Cut()
		defer look(w.Watcher, cycles, searches, nil, w.search).Close()
		advance(4 * asideEvery)
		require.Nil(t, w.CyclesSeen(), "nobody knows any more")
		w.reads.Mend()
	})
}
