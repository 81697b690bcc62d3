package inspect_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// state is what the calls of some processes have made, of which one name or claim is explained.
type state struct {
	// make makes it, and has the world's claim be explained if it is not the name. Where it says that somebody has waited,
	// that is about the claim which that one waits with.
	make func(w *world)
	// codes are those of the reasons, says is the whole text. The claim's id is ID in it.
	codes []inspect.Code
	says  string
}

func (s *state) made(w *world, kind keyspace.Kind) {
	s.make(w)
	if who, _, waits := strings.Cut(s.says, " has waited "); waits {
		w.claim = w.waiting(kind, named[kind], who)
	}
}

// codes are in the order in which they are told.
func codes(all ...inspect.Code) []inspect.Code { return all }

// Of each state a View that has read before tells what a first reading tells.
func TestEachSentenceIsOfARealState(t *testing.T) {
	t.Parallel()
	told := map[inspect.Code]bool{}
	for kind, states := range map[keyspace.Kind]map[string]state{
		keyspace.Lock: lockStates, keyspace.Sem: semStates, keyspace.Pool: poolStates,
	} {
		for what, s := range states {
			for _, code := range s.codes {
				told[code] = true
			}
			inWorldOf(t, string(kind)+" "+what, func(w *world) {
				look, sent := w.counted()
				of := w.view(look, kind, named[kind], "")
				require.Zero(w.T, of().Capacity)
				s.made(w, kind)
				e := w.look.Guarded(w.T, kind, named[kind], w.claim)
				says := e.String()
				if w.claim != "" {
					says = strings.ReplaceAll(says, w.claim, "ID")
				}
				var codes []inspect.Code
				for _, r := range e.Reasons {
					codes = append(codes, r.Code)
				}
				require.Equal(w.T, s.says, says, "%v", codes)
				require.Equal(w.T, s.codes, codes)
				if slices.Contains(codes, inspect.Moved) {
					return
				}
				claim := cmp.Or(w.claim, "n.1")
				own := w.view(look, kind, named[kind], claim)
				w.agrees(of, kind, named[kind], "")
				w.agrees(own, kind, named[kind], claim)
				for range 2 {
					w.Advance(10 * time.Second) // for no longer it remembers what is of others
					w.agrees(of, kind, named[kind], "")
					w.agrees(own, kind, named[kind], claim)
				}
				for _, view := range []func() inspect.Look{of, own} {
					for range 3 {
						view() // what is due is asked, one thing at a time
					}
					sent()
					view()
					require.LessOrEqual(w.T, len(sent()), budgets[kind])
				}
			})
		}
	}
	for _, code := range inspect.Codes {
		require.NotEqual(t, slices.Contains(elsewhere, code), told[code], "where a state shows %s", code)
	}
	require.Len(t, told, len(inspect.Codes)-len(elsewhere))
}

// elsewhere are the codes that a server in this process cannot show; see test/integration.
var elsewhere = codes(inspect.ServerFull, inspect.ServerRefuses, inspect.OfReplica)

var lockStates = map[string]state{
	"unknown": {func(*world) {}, codes(inspect.Unknown), `No lock "nightly" is known in namespace "berth": nobody has used it, or it was forgotten, as idle names are.`},
	"newer": {func(w *world) {
		w.Do("HSET", w.State, "v", "4 and new words")
	}, codes(inspect.Incompatible), `Lock "nightly" was written by a newer Berth (format 4); this one can say nothing of it.`},
	"foreign": {func(w *world) {
		w.Do("SET", w.State, "mine")
	}, codes(inspect.Foreign), `What is stored as lock "nightly" is not Berth's: something else writes below namespace "berth".`},
	"idle": {func(w *world) {
		require.NoError(w.T, w.process("alpha").lock("nightly", "", nil).Release(ctx))
	}, codes(inspect.Free), `Nobody waits for lock "nightly": it is free.`},
	"held, and nobody waits": {func(w *world) {
		w.process("alpha").lock("nightly", "", nil)
		w.Advance(time.Second)
	}, codes(inspect.Locked), `Nobody waits for lock "nightly": alpha has held it for 1s and renews it (heard of 1s ago).`},
	"a claim that holds": {func(w *world) {
		id := w.process("alpha").lock("nightly", "", nil).ID()
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(3 * time.Second)
		w.claim = id
	}, codes(inspect.Holding), `alpha has held lock "nightly" for 3s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews.`},
	"a claim that nobody knows": {func(w *world) {
		w.process("alpha").lock("nightly", "", nil)
		w.claim = "nobody"
	}, codes(inspect.Absent), `Claim ID of lock "nightly" is not known: it never came, it has ended, or the server has lost it.`},
	"a claim that was ended by force": {func(w *world) {
		alpha := w.process("alpha")
		id := alpha.lock("nightly", "", nil).ID()
		w.process("beta").awaitLock("nightly", "", nil)
		w.process("gamma").awaitLock("nightly", "", nil)
		alpha.Die()
		testkit.Must(w.process("delta").Operator().Release(ctx, berth.Target{Kind: keyspace.Lock, Name: "nightly", Claim: id})).In(w.T)
		w.claim = id
	}, codes(inspect.Gone), "Claim ID was ended by force less than a minute ago."},
	"a claim that has left the line": {func(w *world) {
		w.process("alpha").lock("nightly", "", nil)
		beta := w.process("beta")
		beta.Once("lock_acquire", link.LoseReply)
		wait := beta.awaitLock("nightly", "", nil)
		id := w.waiting(keyspace.Lock, "nightly", "beta")
		wait.Cancel(nil)
		w.Advance(ms)
		w.claim = id
	}, codes(inspect.Gone), "Claim ID has left the line less than a minute ago."},
	"a damaged claim": {func(w *world) {
		w.contends(nil, 0)
		w.Do("HSET", w.State, "c:n.1", "h rubbish")
		w.claim = "n.1"
	}, codes(inspect.Damaged), "What is stored of claim ID is damaged."},
	"held": {func(w *world) {
		w.contends(nil, time.Second)
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1s): alpha has held it for 1s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"others have a higher priority": {func(w *world) {
		w.process("alpha").lock("nightly", "", nil)
		w.process("gamma").awaitLock("nightly", "", nil)
		w.process("beta").awaitLock("nightly", "", &qlock.LockOptions{Priority: 5})
		w.process("delta").awaitLock("nightly", "", &qlock.LockOptions{Priority: 6})
	}, codes(inspect.Locked, inspect.Outranked), `gamma has waited 0s for lock "nightly", 2 ahead: alpha has held it for 0s and renews it (heard of 0s ago). 2 of higher priority are ahead. Nothing ends by itself: alpha renews. If it is not heard of again, delta gets it in 6s.`},
	"a dead holder": {func(w *world) {
		alpha := w.contends(nil, 0)
		alpha.Die()
		w.Advance(5 * time.Second)
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (5s): alpha has held it for 5s and has not been heard of for 5s: its process is dead, stopped or cut off. Next: unless it is heard of, in 1s (00:00:06 UTC) the lease of alpha ends, and beta gets it.`},
	"a dead waiter": {func(w *world) {
		w.process("alpha").lock("nightly", "", nil)
		beta := w.process("beta")
		beta.awaitLock("nightly", "", nil)
		beta.Die()
		w.Advance(4 * time.Second)
	}, codes(inspect.Silent, inspect.Locked), `beta has waited 4s for lock "nightly": its own process has not been heard of for 4s; unless it is, the claim is dropped after 2s more. Next: unless it is heard of, in 2s (00:00:06 UTC) the claim of beta leaves the line.`},
	"a dead waiter is the first": {func(w *world) {
		w.process("alpha").lock("nightly", "", &qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true})
		beta := w.process("beta")
		beta.awaitLock("nightly", "", nil)
		beta.Die()
		w.Advance(4 * time.Second)
	}, codes(inspect.Locked, inspect.Silent), `1 waits for lock "nightly", beta first (4s): alpha has held it for 4s, for 16s more at most. beta, who is first, has not been heard of for 4s. Nothing is granted by itself: no waiting process has been heard of.`},
	"nobody has looked": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		alpha.lock("nightly", "", nil)
		w.Advance(time.Second)
		beta.awaitLock("nightly", "", nil)
		alpha.Die()
		beta.Cut()
		w.Advance(testkit.Lease - 500*ms)
	}, codes(inspect.Ready, inspect.Silent), `1 waits for lock "nightly", beta first (5.5s): it is free, and nobody has looked yet. beta, who is first, has not been heard of for 5.5s. Next: when somebody calls; a sweep does it now.`},
	"entries": {func(w *world) {
		alpha := w.process("alpha")
		alpha.lock("nightly", "order-7", nil)
		alpha.lock("nightly", "order-7", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(3 * time.Second)
	}, codes(inspect.Entries), `1 waits for lock "nightly", beta first (3s): order-7 holds it by 2 entries and gives it back with the last; alpha has held it for 3s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"an entry of a process that lives, behind one of a dead one": {func(w *world) {
		alpha, gamma := w.process("alpha"), w.process("gamma")
		alpha.lock("nightly", "order-7", nil)
		id := gamma.lock("nightly", "order-7", &qlock.LockOptions{Conflict: qlock.WorkThrough}).ID()
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(2 * time.Second)
		alpha.Die()
		w.Advance(5 * time.Second)
		w.claim = id
	}, codes(inspect.Holding), `gamma has held lock "nightly" for 7s, by an entry. Next: unless alpha is heard of, in 1s (00:00:08 UTC) the lease of gamma ends, and beta gets it.`},
	"its own owner": {func(w *world) {
		alpha := w.process("alpha")
		alpha.lock("nightly", "order-7", &qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true})
		alpha.awaitLock("nightly", "order-7", &qlock.LockOptions{Conflict: qlock.Wait})
		w.Advance(time.Second)
	}, codes(inspect.Own, inspect.Locked), `1 waits for lock "nightly", alpha (order-7) first (1s): its own owner order-7 holds it; alpha (order-7) has held it for 1s, for 19s more at most. Next: in 19s (00:00:20 UTC) the lease of alpha (order-7) ends, and alpha (order-7) gets it.`},
	"last come, first served": {func(w *world) {
		w.process("alpha").lock("nightly", "", nil)
		w.process("beta").awaitLock("nightly", "", &qlock.LockOptions{Access: qlock.LIFO})
	}, codes(inspect.Locked, inspect.LIFO), `beta has waited 0s for lock "nightly": alpha has held it for 0s and renews it (heard of 0s ago). It is last come, first served: who comes later passes it. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 6s.`},
	"drawn": {func(w *world) {
		w.process("alpha").lock("nightly", "", nil)
		for range 8 {
			w.process("beta").awaitLock("nightly", "", &qlock.LockOptions{Access: qlock.Random})
		}
	}, codes(inspect.Locked, inspect.Drawn), `8 wait for lock "nightly", beta first (0s): alpha has held it for 0s and renews it (heard of 0s ago). Places are drawn: who comes later may pass it. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 6s.`},
	"paused": {func(w *world) {
		alpha := w.contends(nil, 0)
		require.NoError(w.T, alpha.Operator().Pause(ctx, keyspace.Lock, "nightly", time.Hour, "migration"))
	}, codes(inspect.Paused, inspect.Locked), `1 waits for lock "nightly", beta first (0s): it is paused for 1h00m more: "migration"; and alpha has held it for 0s and renews it (heard of 0s ago). In 1h00m (01:00:00 UTC) the pause ends, and alpha still has it. Nothing else ends by itself: alpha renews. If it is not heard of again, beta gets it in 1h00m.`},
	"paused while it is free": {func(w *world) {
		require.NoError(w.T, w.process("alpha").Operator().Pause(ctx, keyspace.Lock, "nightly", time.Hour, "migration"))
		w.process("beta").awaitLock("nightly", "", nil)
	}, codes(inspect.Paused), `1 waits for lock "nightly", beta first (0s): it is paused for 1h00m more: "migration". Next: in 1h00m (01:00:00 UTC) the pause ends, and beta gets it.`},
	"paused, and nobody waits": {func(w *world) {
		require.NoError(w.T, w.process("alpha").Operator().Pause(ctx, keyspace.Lock, "nightly", time.Hour, "migration"))
	}, codes(inspect.Paused), `Nobody waits for lock "nightly": it is paused for 1h00m more: "migration".`},
	"wanted back": {func(w *world) {
		alpha := w.process("alpha")
		id := alpha.lock("nightly", "", nil).ID()
		w.process("beta").awaitLock("nightly", "", nil)
		testkit.Must(w.process("delta").Operator().Want(ctx, berth.Target{Kind: keyspace.Lock, Name: "nightly", Claim: id})).In(w.T)
		w.Advance(time.Second)
	}, codes(inspect.Locked, inspect.Asked), `1 waits for lock "nightly", beta first (1s): alpha has held it for 1s and renews it (heard of 1s ago). alpha was asked to give back 1s ago. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"a fixed lease": {func(w *world) {
		w.contends(&qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true}, time.Second)
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1s): alpha has held it for 1s, for 19s more at most. Next: in 19s (00:00:20 UTC) the lease of alpha ends, and beta gets it.`},
	"a maximum hold": {func(w *world) {
		w.contends(&qlock.LockOptions{MaxHold: 20 * time.Second}, time.Second)
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1s): alpha has held it for 1s and renews it, for 19s more at most (heard of 1s ago). Next: in 19s (00:00:20 UTC) the maximum hold of alpha ends, and beta gets it.`},
	"a long lease of a dead process": {func(w *world) {
		alpha := w.contends(&qlock.LockOptions{Lease: time.Hour}, 3*time.Second)
		alpha.Die()
		w.Advance(5 * time.Second)
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (8s): alpha has held it for 8s and has not been heard of for 6s: its process is dead, stopped or cut off. Next: unless it is heard of, in 59m54s (01:00:01 UTC) the lease of alpha ends, and beta gets it.`},
	"without end": {func(w *world) {
		w.contends(&qlock.LockOptions{Lease: berth.Forever}, time.Minute)
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1m00s): alpha has held it for 1m00s without end (nothing tells when its process was last heard of). Nothing ends by itself: alpha has no end.`},
	"without end, in a swarm": {func(w *world) {
		w.swarmed("alpha").lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever})
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(time.Minute)
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1m00s): alpha has held it for 1m00s without end (its node was heard of 1s ago). Nothing ends by itself: alpha has no end.`},
	"a dead process, as the swarm has found": {func(w *world) {
		alpha := w.swarmed("alpha")
		alpha.lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever})
		w.process("beta").awaitLock("nightly", "", nil)
		node, swarm := alpha.ID(), "berth:swarm:{nodes}:"
		alpha.Die()
		w.Advance(time.Minute)
		// As a flush leaves it that has not come to this lock yet.
		dead := strconv.FormatInt(time.Now().UnixMilli()-1000, 10)
		w.Do("ZREM", swarm+"probes", "p:"+node)
		w.Do("ZADD", swarm+"probes", strconv.FormatInt(10_000_000_000_000+time.Now().UnixMilli(), 10), "c:"+node)
		w.Do("HSET", swarm+"state", "n:"+node, "1 "+dead+" 15000 alpha")
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1m00s): alpha has held it for 1m00s, and the swarm has declared its process dead. Next: with a next flush of the swarm the hold of alpha ends.`},
	"a dead process that no flush has found": {func(w *world) {
		alpha := w.swarmed("alpha")
		alpha.lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever})
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(time.Minute)
		alpha.Die()
		w.Advance(20 * time.Second)
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1m20s): alpha has held it for 1m20s without end, and its node counts as dead for the swarm (silent for 21s, with 15s allowed): the next flush frees it. Next: unless it is heard of, with a next flush of the swarm the hold of alpha ends.`},
	"detached": {func(w *world) {
		testkit.Must(w.process("alpha").lock("nightly", "", &qlock.LockOptions{Lease: 20 * time.Second}).Detach(ctx)).In(w.T)
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(time.Second)
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1s): alpha has left it to whoever resumes it, for 19s more. Next: in 19s (00:00:20 UTC) the lease of alpha ends, and beta gets it.`},
	"granted to a process that is not there, and nobody else would look": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		held := alpha.lock("nightly", "", nil)
		beta.awaitLock("nightly", "", nil)
		beta.awaitLock("nightly", "", nil)
		beta.Cut()
		require.NoError(w.T, held.Release(ctx))
		w.Advance(200 * ms)
	}, codes(inspect.Locked), `beta has waited 199ms for lock "nightly": beta was granted it 200ms ago and has not taken it up yet. Nothing ends by itself: beta has not taken it up yet.`},
	"granted to a process that is not there": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		held := alpha.lock("nightly", "", nil)
		beta.awaitLock("nightly", "", nil)
		w.process("gamma").awaitLock("nightly", "", nil)
		beta.Cut()
		require.NoError(w.T, held.Release(ctx))
		w.Advance(200 * ms)
	}, codes(inspect.Locked), `1 waits for lock "nightly", gamma first (199ms): beta was granted it 200ms ago and has not taken it up yet. Nothing ends by itself: beta has not taken it up yet. If it is not heard of again, gamma gets it in 5.8s.`},
}

var semStates = map[string]state{
	"some are free": {func(w *world) {
		w.process("alpha").permit("", "gpu", 3, nil)
	}, codes(inspect.Free), `Nobody waits for semaphore "gpu": 2 of 3 are free.`},
	"full": {func(w *world) {
		alpha := w.process("alpha")
		for range 3 {
			alpha.permit("", "gpu", 3, nil)
		}
		w.process("beta").awaitPermit("", "gpu", 3, nil)
		w.Advance(time.Second)
	}, codes(inspect.Full), `1 waits for semaphore "gpu", beta first (1s): all 3 are held; alpha has held it for 1s and renews it (heard of 1s ago), and 2 others hold the rest. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"a heavier one is first": {func(w *world) {
		w.process("alpha").permit("", "gpu", 3, &semaphore.AcquireOptions{Weight: 2})
		w.process("gamma").awaitPermit("", "gpu", 3, &semaphore.AcquireOptions{Weight: 2})
		w.process("beta").awaitPermit("", "gpu", 3, nil)
		w.Advance(time.Second)
	}, codes(inspect.Full, inspect.Heavier, inspect.Behind), `beta has waited 999ms for semaphore "gpu", 1 ahead: 2 of 3 are held, and gamma, who is first, asks for 2; alpha has held it for 1s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, gamma and beta get it in 5s.`},
	"too heavy for ever": {func(w *world) {
		w.process("alpha").permit("", "gpu", 3, &semaphore.AcquireOptions{Weight: 3})
		w.process("gamma").awaitPermit("", "gpu", 3, nil)
		beta := w.process("beta")
		beta.awaitPermit("", "gpu", 3, &semaphore.AcquireOptions{Weight: 3})
		beta.Deafen(true)
		require.NoError(w.T, semaphore.NewOperator(w.process("delta").Node).Resize(ctx, "gpu", 2, nil))
	}, codes(inspect.TooHeavy, inspect.Over, inspect.Full, inspect.Behind), `beta has waited 0s for semaphore "gpu", 1 ahead: it asks for 3 of a capacity of 2 and is taken out when its process is next heard of. Nothing ends by itself: alpha renews. If it is not heard of again, gamma gets it in 6s.`},
	"the capacity was lowered": {func(w *world) {
		alpha := w.process("alpha")
		for range 5 {
			alpha.permit("", "gpu", 5, nil)
		}
		w.process("beta").awaitPermit("", "gpu", 5, nil)
		require.NoError(w.T, semaphore.NewOperator(alpha.Node).Resize(ctx, "gpu", 3, nil))
	}, codes(inspect.Over, inspect.Full), `1 waits for semaphore "gpu", beta first (0s): 5 are held of a capacity of 3, which was lowered; alpha has held it for 0s and renews it (heard of 0s ago), and 4 others hold the rest. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 6s.`},
	"its own owner": {func(w *world) {
		alpha := w.process("alpha")
		w.process("gamma").permit("", "gpu", 3, nil)
		w.Advance(ms)
		alpha.permit("order-7", "gpu", 3, nil)
		alpha.permit("order-7", "gpu", 3, nil)
		alpha.awaitPermit("order-7", "gpu", 3, nil)
	}, codes(inspect.Own, inspect.Full), `1 waits for semaphore "gpu", alpha (order-7) first (0s): its own owner order-7 holds 2 of 3; gamma has held it for 1ms and renews it (heard of 1ms ago), and 2 others hold the rest. Nothing ends by itself: gamma renews. If it is not heard of again, alpha (order-7) gets it in 6s.`},
	"it changes whenever it is read": {func(w *world) {
		alpha, capacity := w.process("alpha"), 10
		alpha.permit("", "gpu", capacity, &semaphore.AcquireOptions{Weight: 10})
		w.process("beta").awaitPermit("", "gpu", capacity, &semaphore.AcquireOptions{Weight: 10})
		reads := w.Process()
		reads.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "ZMSCORE" { // of the second of two trips
				capacity++
				require.NoError(w.T, semaphore.NewOperator(alpha.Node).Resize(ctx, "gpu", capacity, nil))
			}
			return link.Pass
		})
		w.look = testkit.Must(inspect.New(reads.Redis, inspect.Config{})).In(w.T)
	}, codes(inspect.Full, inspect.Moved), `1 waits for semaphore "gpu", beta first (0s): 10 of 12 are held and it asks for 10; alpha has held it for 0s and renews it (heard of 0s ago). It changed while it was read. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 6s.`},
	"more hold, and more wait, than are read": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		for range 101 {
			alpha.permit("", "gpu", 101, nil)
		}
		for range 102 {
			beta.awaitPermit("", "gpu", 101, nil)
		}
		w.Advance(time.Second)
	}, codes(inspect.Full, inspect.Part, inspect.Part), `Up to 102 wait for semaphore "gpu", beta first (1s): all 101 are held; alpha has held it for 1s and renews it (heard of 1s ago), and 100 others hold the rest. 100 of 101 holds were read, those that end first. 100 of 102 waiting claims were read. Next: not known; of 101 holds the first 100 to end were read, and none of them ends by itself.`},
}

// taken is a pool of these resources that alpha holds, for which beta waits.
func taken(w *world, opts *allocator.AllocateOptions, resources ...string) {
	alpha := w.process("alpha")
	pool := alpha.filled(resources...)
	for range resources {
		alpha.take(pool, nil)
	}
	w.awaits(opts)
	w.Advance(time.Second)
}

var poolStates = map[string]state{
	"some are free": {func(w *world) {
		w.process("alpha").filled("a", "b")
	}, codes(inspect.Free), `Nobody waits for pool "proxies": 2 of 2 resources are free.`},
	"empty": {func(w *world) {
		w.awaits(nil)
	}, codes(inspect.Empty), `1 waits for pool "proxies", beta first (0s): the pool has no resources, and no process has asked a Source. Nothing ends by itself.`},
	"empty, with a Source that fails": {func(w *world) {
		beta := w.process("beta")
		source := func(context.Context) ([]string, error) { return nil, errors.New("out of order") }
		beta.await(beta.pool(allocator.Config[string]{Source: source, RefreshEvery: 40 * time.Second}), nil)
		w.Advance(time.Second)
	}, codes(inspect.Empty), `1 waits for pool "proxies", beta first (1s): the pool has no resources; its Source may be asked again from 00:00:03 UTC. Nothing ends by itself.`},
	"leased": {func(w *world) {
		taken(w, nil, "a", "b", "c")
	}, codes(inspect.Taken), `1 waits for pool "proxies", beta first (1s): all 3 resources are leased; alpha has held it for 1s and renews it (heard of 1s ago), and 2 others hold the rest. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"leased, resting and leaving": {func(w *world) {
		alpha := w.process("alpha")
		pool := alpha.filled("a", "b", "c")
		require.NoError(w.T, pool.Rest(ctx, "c", time.Minute, "answers 429", nil))
		alpha.take(pool, nil)
		alpha.take(pool, nil)
		testkit.Must(pool.Remove(ctx, []string{"a"})).In(w.T)
		w.awaits(nil)
		w.Advance(time.Second)
	}, codes(inspect.Taken, inspect.LeavingPool), `1 waits for pool "proxies", beta first (1s): of 3 resources 1 is leased, 1 rests and 1 leaves when it comes back; alpha has held it for 1s and renews it (heard of 1s ago), and 1 other holds the rest. Next: in 59s (00:01:00 UTC) the rest of c ends, and beta gets it.`},
	"a dead holder, with a cooldown": {func(w *world) {
		alpha := w.process("alpha")
		pool := alpha.pool(allocator.Config[string]{Cooldown: 40 * time.Second})
		testkit.Must(pool.Add(ctx, []string{"a"}, nil)).In(w.T)
		alpha.take(pool, nil)
		w.awaits(nil)
		alpha.Die()
		w.Advance(5 * time.Second)
	}, codes(inspect.Taken), `1 waits for pool "proxies", beta first (5s): the one resource is leased; alpha has held it for 5s and has not been heard of for 5s: its process is dead, stopped or cut off. Next: unless it is heard of, in 41s (00:00:46 UTC) the lease of alpha and the rest of a after it are over, and beta gets it.`},
	"all rest": {func(w *world) {
		pool := w.process("alpha").filled("a", "b")
		require.NoError(w.T, pool.Rest(ctx, "a", 20*time.Second, "answers 429", nil))
		require.NoError(w.T, pool.Rest(ctx, "b", 30*time.Second, "", nil))
		w.awaits(nil)
	}, codes(inspect.Resting), `1 waits for pool "proxies", beta first (0s): all 2 resources rest, the first for 20s more: "answers 429". Next: in 20s (00:00:20 UTC) the rest of a ends, and beta gets it.`},
	"all rest for ever": {func(w *world) {
		pool := w.process("alpha").filled("a")
		require.NoError(w.T, pool.Rest(ctx, "a", berth.Forever, "banned", nil))
		w.awaits(nil)
	}, codes(inspect.Resting), `1 waits for pool "proxies", beta first (0s): the one resource rests until somebody ends that: "banned". Nothing ends by itself.`},
	"one that is held": {func(w *world) {
		taken(w, &allocator.AllocateOptions{Resource: "a"}, "a", "b")
	}, codes(inspect.OneHeld), `1 waits for pool "proxies", beta first (1s): it wants only a, which alpha has held for 1s and renews (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"one that is not held longest": {func(w *world) {
		alpha, gamma := w.process("alpha"), w.process("gamma")
		alpha.take(alpha.filled("a", "b"), nil)
		w.Advance(time.Second)
		gamma.take(gamma.pool(allocator.Config[string]{}), nil)
		w.awaits(&allocator.AllocateOptions{Resource: "b"})
		w.Advance(time.Second)
	}, codes(inspect.OneHeld), `1 waits for pool "proxies", beta first (1s): it wants only b, which gamma has held for 1s and renews (heard of 1s ago). Nothing ends by itself: gamma renews. If it is not heard of again, beta gets it in 5s.`},
	"one that rests": {func(w *world) {
		pool := w.process("alpha").filled("a", "b")
		require.NoError(w.T, pool.Rest(ctx, "a", 20*time.Second, "banned", nil))
		w.awaits(&allocator.AllocateOptions{Resource: "a"})
	}, codes(inspect.OneResting), `beta has waited 0s for pool "proxies": it wants only a, which rests for 20s more: "banned". Next: in 20s (00:00:20 UTC) the rest of a ends, and beta gets it.`},
	"one that is damaged": {func(w *world) {
		taken(w, &allocator.AllocateOptions{Resource: "a"}, "a")
		w.Do("HSET", "berth:pool:{proxies}:items", "ia", "rubbish")
	}, codes(inspect.OneDamaged, inspect.Damaged), `1 waits for pool "proxies", beta first (1s): it wants only a, which is damaged. What is stored of a is damaged. Nothing ends by itself.`},
	"one that was removed during a pause": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := alpha.filled("a", "b")
		alpha.take(pool, nil)
		beta.await(beta.pool(allocator.Config[string]{}), &allocator.AllocateOptions{Resource: "a"})
		require.NoError(w.T, alpha.Operator().Pause(ctx, keyspace.Pool, "proxies", 20*time.Second, ""))
		testkit.Must(pool.Remove(ctx, []string{"a"})).In(w.T)
	}, codes(inspect.Paused, inspect.OneHeld), `beta has waited 0s for pool "proxies": it is paused for 20s more; and it wants only a, which alpha has held for 0s and renews (heard of 0s ago). Next: in 20s (00:00:20 UTC) a leaves the pool, and the wait with it.`},
	"a free one during a pause": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		alpha.filled("a", "b")
		require.NoError(w.T, alpha.Operator().Pause(ctx, keyspace.Pool, "proxies", 20*time.Second, ""))
		beta.await(beta.pool(allocator.Config[string]{}), &allocator.AllocateOptions{Resource: "a"})
	}, codes(inspect.Paused), `beta has waited 0s for pool "proxies": it is paused for 20s more. Next: in 20s (00:00:20 UTC) the pause ends, and beta gets it.`},
	"a free one leaves during a pause": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := alpha.filled("a")
		testkit.Must(pool.Add(ctx, []string{"b"}, &allocator.AddOptions{Expiry: 10 * time.Second})).In(w.T)
		require.NoError(w.T, alpha.Operator().Pause(ctx, keyspace.Pool, "proxies", 20*time.Second, ""))
		same := beta.pool(allocator.Config[string]{})
		beta.await(same, nil)
		beta.await(same, nil)
	}, codes(inspect.Paused), `2 wait for pool "proxies", beta first (0s): it is paused for 20s more. Next: in 20s (00:00:20 UTC) the pause ends, and beta gets it, others perhaps.`},
	"more leave during a pause than are read": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := alpha.filled("a")
		for n := range 11 {
			testkit.Must(pool.Add(ctx, []string{strconv.Itoa(n)}, &allocator.AddOptions{Expiry: time.Duration(n+1) * time.Second})).In(w.T)
		}
		require.NoError(w.T, alpha.Operator().Pause(ctx, keyspace.Pool, "proxies", 20*time.Second, ""))
		beta.await(beta.pool(allocator.Config[string]{}), nil)
	}, codes(inspect.Paused), `1 waits for pool "proxies", beta first (0s): it is paused for 20s more. Next: not known beyond 00:00:10 UTC.`},
	// The rest that was asked for of a leased resource begins when somebody finds the lease over, and during a pause
	// nobody need look: at its end the resource may rest still.
	"a rest that may begin later, during a pause": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := beta.filled("a")
		alpha.take(alpha.pool(allocator.Config[string]{}), &allocator.AllocateOptions{NoRenew: true})
		require.NoError(w.T, pool.Rest(ctx, "a", 2*time.Second, "banned", nil))
		alpha.Die()
		w.Advance(testkit.Lease - ms)
		require.NoError(w.T, beta.Operator().Pause(ctx, keyspace.Pool, "proxies", 2100*ms, ""))
		beta.await(pool, nil)
		w.Advance(ms)
	}, codes(inspect.Paused, inspect.Resting), `1 waits for pool "proxies", beta first (1ms): it is paused for 2.1s more; and the one resource rests for 2s more: "banned". Next: not known beyond 00:00:07 UTC.`},
	"one that is lost": {func(w *world) {
		taken(w, &allocator.AllocateOptions{Resource: "a"}, "a")
		w.Do("FLUSHALL")
		w.Advance(3 * time.Second)
	}, codes(inspect.OneAbsent), `1 waits for pool "proxies", beta first (4s): it wants only a, which is not in the pool: nothing has filled it yet. Nothing ends by itself.`},
	"one that it is bound to": {func(w *world) {
		alpha := w.process("alpha")
		pool := alpha.filled("a", "b")
		alpha.take(pool, &allocator.AllocateOptions{Bind: "customer-7", BindFor: time.Hour})
		w.awaits(&allocator.AllocateOptions{Bind: "customer-7", BindWait: 15 * time.Second, BindFor: time.Hour})
		w.Advance(time.Second)
	}, codes(inspect.OneHeld, inspect.Bound), `1 waits for pool "proxies", beta first (1s): it waits for a, which "customer-7" is bound to and which alpha has held for 1s and renews (heard of 1s ago); in 14s it takes any other. Next: in 14s (00:00:15 UTC) the wait for a alone ends, and beta gets it.`},
	"one that it is bound to, during a longer pause": {func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := alpha.filled("a", "b")
		alpha.take(pool, &allocator.AllocateOptions{Bind: "customer-7", BindFor: time.Hour})
		require.NoError(w.T, alpha.Operator().Pause(ctx, keyspace.Pool, "proxies", 20*time.Second, ""))
		beta.await(beta.pool(allocator.Config[string]{}), &allocator.AllocateOptions{Bind: "customer-7", BindWait: 5 * time.Second, BindFor: time.Hour})
		w.Advance(time.Second)
	}, codes(inspect.Paused, inspect.OneHeld, inspect.Bound), `beta has waited 1s for pool "proxies": it is paused for 19s more; and it waits for a, which "customer-7" is bound to and which alpha has held for 1s and renews (heard of 1s ago); in 19s it takes any other. Next: in 19s (00:00:20 UTC) the wait for a alone ends, and beta gets it.`},
}
