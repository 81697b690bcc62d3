package inspect_test

import (
	"context"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
)

var lockStates = map[string]state{
	"unknown": {func(*world) string { return "" }, codes(inspect.Unknown), `No lock "nightly" is known in namespace "berth": nobody has used it, or it was forgotten, as idle names are.`},
	"newer": {func(w *world) string {
		w.Do("HSET", w.State, "v", "3 and new words")
		return ""
	}, codes(inspect.Incompatible), `Lock "nightly" was written by a newer Berth (format 3); this one can say nothing of it.`},
	"foreign": {func(w *world) string {
		w.Do("SET", w.State, "mine")
		return ""
	}, codes(inspect.Foreign), `What is stored as lock "nightly" is not Berth's: something else writes below namespace "berth".`},
	"idle": {func(w *world) string {
		require.NoError(w.T, w.process("alpha").lock("nightly", "", nil).Release(context.Background()))
		return ""
	}, codes(inspect.Free), `Nobody waits for lock "nightly": it is free.`},
	"held, and nobody waits": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Locked), `Nobody waits for lock "nightly": alpha has held it for 1s and renews it (heard of 1s ago).`},
	"a claim that holds": {func(w *world) string {
		id := w.process("alpha").lock("nightly", "", nil).ID()
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(3 * time.Second)
		return id
	}, codes(inspect.Holding), `alpha has held lock "nightly" for 3s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews.`},
	"a claim that nobody knows": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		return "nobody"
	}, codes(inspect.Absent), `Claim ID of lock "nightly" is not known: it never came, it has ended, or the server has lost it.`},
	"a claim that was ended by force": {func(w *world) string {
		alpha := w.process("alpha")
		id := alpha.lock("nightly", "", nil).ID()
		w.process("beta").awaitLock("nightly", "", nil)
		w.process("gamma").awaitLock("nightly", "", nil)
		alpha.Die()
		_, err := w.process("delta").Operator().Release(context.Background(), berth.Target{Kind: keyspace.Lock, Name: "nightly", Claim: id})
		require.NoError(w.T, err)
		return id
	}, codes(inspect.Gone), "Claim ID was ended by force less than a minute ago."},
	"a claim that has left the line": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		beta := w.process("beta")
		beta.Once("lock_acquire", link.LoseReply)
		wait := beta.awaitLock("nightly", "", nil)
		id := w.waiting(keyspace.Lock, "nightly", "beta")
		wait.Cancel(nil)
		w.Advance(ms)
		return id
	}, codes(inspect.Gone), "Claim ID has left the line less than a minute ago."},
	"a damaged claim": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		w.process("beta").awaitLock("nightly", "", nil)
		w.Do("HSET", w.State, "c:n.1", "h rubbish")
		return "n.1"
	}, codes(inspect.Damaged), "What is stored of claim ID is damaged."},
	"held": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1s): alpha has held it for 1s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"others are ahead": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		w.process("beta").awaitLock("nightly", "", nil)
		w.process("gamma").awaitLock("nightly", "", nil)
		w.Advance(time.Second)
		return w.waiting(keyspace.Lock, "nightly", "gamma")
	}, codes(inspect.Locked, inspect.Behind), `gamma has waited 999ms for lock "nightly", 1 ahead: alpha has held it for 1s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"others have a higher priority": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		w.process("gamma").awaitLock("nightly", "", nil)
		w.process("beta").awaitLock("nightly", "", &qlock.LockOptions{Priority: 5})
		w.process("delta").awaitLock("nightly", "", &qlock.LockOptions{Priority: 6})
		return w.waiting(keyspace.Lock, "nightly", "gamma")
	}, codes(inspect.Locked, inspect.Outranked), `gamma has waited 0s for lock "nightly", 2 ahead: alpha has held it for 0s and renews it (heard of 0s ago). 2 of higher priority are ahead. Nothing ends by itself: alpha renews. If it is not heard of again, delta gets it in 6s.`},
	"a dead holder": {func(w *world) string {
		alpha := w.process("alpha")
		alpha.lock("nightly", "", nil)
		w.process("beta").awaitLock("nightly", "", nil)
		alpha.Die()
		w.Advance(5 * time.Second)
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (5s): alpha has held it for 5s and has not been heard of for 5s: its process is dead, stopped or cut off. Next: unless it is heard of, in 1s (00:00:06 UTC) the lease of alpha ends, and beta gets it.`},
	"a dead waiter": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		beta := w.process("beta")
		beta.awaitLock("nightly", "", nil)
		beta.Die()
		w.Advance(4 * time.Second)
		return w.waiting(keyspace.Lock, "nightly", "beta")
	}, codes(inspect.Silent, inspect.Locked), `beta has waited 4s for lock "nightly": its own process has not been heard of for 4s; unless it is, the claim is dropped after 2s more. Next: unless it is heard of, in 2s (00:00:06 UTC) the claim of beta leaves the line.`},
	"a dead waiter is the first": {func(w *world) string {
		w.process("alpha").lock("nightly", "", &qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true})
		beta := w.process("beta")
		beta.awaitLock("nightly", "", nil)
		beta.Die()
		w.Advance(4 * time.Second)
		return ""
	}, codes(inspect.Locked, inspect.Silent), `1 waits for lock "nightly", beta first (4s): alpha has held it for 4s, for 16s more at most. beta, who is first, has not been heard of for 4s. Nothing is granted by itself: no waiting process has been heard of.`},
	"nobody has looked": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		alpha.lock("nightly", "", nil)
		w.Advance(time.Second)
		beta.awaitLock("nightly", "", nil)
		alpha.Die()
		beta.Cut()
		w.Advance(testkit.Lease - 500*ms)
		return ""
	}, codes(inspect.Ready, inspect.Silent), `1 waits for lock "nightly", beta first (5.5s): it is free, and nobody has looked yet. beta, who is first, has not been heard of for 5.5s. Next: when somebody calls; "berth lock sweep nightly" does it now.`},
	"entries": {func(w *world) string {
		alpha := w.process("alpha")
		alpha.lock("nightly", "order-7", nil)
		alpha.lock("nightly", "order-7", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(3 * time.Second)
		return ""
	}, codes(inspect.Entries), `1 waits for lock "nightly", beta first (3s): order-7 holds it by 2 entries and gives it back with the last; alpha has held it for 3s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"an entry of a process that lives, behind one of a dead one": {func(w *world) string {
		alpha, gamma := w.process("alpha"), w.process("gamma")
		alpha.lock("nightly", "order-7", nil)
		id := gamma.lock("nightly", "order-7", &qlock.LockOptions{Conflict: qlock.WorkThrough}).ID()
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(2 * time.Second)
		alpha.Die()
		w.Advance(5 * time.Second)
		return id
	}, codes(inspect.Holding), `gamma has held lock "nightly" for 7s, by an entry. Next: unless alpha is heard of, in 1s (00:00:08 UTC) the lease of gamma ends, and beta gets it.`},
	"its own owner": {func(w *world) string {
		alpha := w.process("alpha")
		alpha.lock("nightly", "order-7", &qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true})
		alpha.awaitLock("nightly", "order-7", &qlock.LockOptions{Conflict: qlock.Wait})
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Own, inspect.Locked), `1 waits for lock "nightly", alpha (order-7) first (1s): its own owner order-7 holds it; alpha (order-7) has held it for 1s, for 19s more at most. Next: in 19s (00:00:20 UTC) the lease of alpha (order-7) ends, and alpha (order-7) gets it.`},
	"last come, first served": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		w.process("beta").awaitLock("nightly", "", &qlock.LockOptions{Access: qlock.LIFO})
		return w.waiting(keyspace.Lock, "nightly", "beta")
	}, codes(inspect.Locked, inspect.LIFO), `beta has waited 0s for lock "nightly": alpha has held it for 0s and renews it (heard of 0s ago). It is last come, first served: who comes later passes it. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 6s.`},
	"drawn": {func(w *world) string {
		w.process("alpha").lock("nightly", "", nil)
		for range 8 {
			w.process("beta").awaitLock("nightly", "", &qlock.LockOptions{Access: qlock.Random})
		}
		return ""
	}, codes(inspect.Locked, inspect.Drawn), `8 wait for lock "nightly", beta first (0s): alpha has held it for 0s and renews it (heard of 0s ago). Places are drawn: who comes later may pass it. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 6s.`},
	"paused": {func(w *world) string {
		alpha := w.process("alpha")
		alpha.lock("nightly", "", nil)
		w.process("beta").awaitLock("nightly", "", nil)
		require.NoError(w.T, alpha.Operator().Pause(context.Background(), keyspace.Lock, "nightly", time.Hour, "migration"))
		return ""
	}, codes(inspect.Paused, inspect.Locked), `1 waits for lock "nightly", beta first (0s): it is paused for 1h00m more: "migration"; and alpha has held it for 0s and renews it (heard of 0s ago). In 1h00m (01:00:00 UTC) the pause ends, and alpha still has it. Nothing else ends by itself: alpha renews. If it is not heard of again, beta gets it in 1h00m.`},
	"paused while it is free": {func(w *world) string {
		require.NoError(w.T, w.process("alpha").Operator().Pause(context.Background(), keyspace.Lock, "nightly", time.Hour, "migration"))
		w.process("beta").awaitLock("nightly", "", nil)
		return ""
	}, codes(inspect.Paused), `1 waits for lock "nightly", beta first (0s): it is paused for 1h00m more: "migration". Next: in 1h00m (01:00:00 UTC) the pause ends, and beta gets it.`},
	"paused, and nobody waits": {func(w *world) string {
		require.NoError(w.T, w.process("alpha").Operator().Pause(context.Background(), keyspace.Lock, "nightly", time.Hour, "migration"))
		return ""
	}, codes(inspect.Paused), `Nobody waits for lock "nightly": it is paused for 1h00m more: "migration".`},
	"wanted back": {func(w *world) string {
		alpha := w.process("alpha")
		id := alpha.lock("nightly", "", nil).ID()
		w.process("beta").awaitLock("nightly", "", nil)
		_, err := w.process("delta").Operator().Want(context.Background(), berth.Target{Kind: keyspace.Lock, Name: "nightly", Claim: id})
		require.NoError(w.T, err)
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Locked, inspect.Asked), `1 waits for lock "nightly", beta first (1s): alpha has held it for 1s and renews it (heard of 1s ago). alpha was asked to give back 1s ago. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"a fixed lease": {func(w *world) string {
		w.process("alpha").lock("nightly", "", &qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true})
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1s): alpha has held it for 1s, for 19s more at most. Next: in 19s (00:00:20 UTC) the lease of alpha ends, and beta gets it.`},
	"a maximum hold": {func(w *world) string {
		w.process("alpha").lock("nightly", "", &qlock.LockOptions{MaxHold: 20 * time.Second})
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1s): alpha has held it for 1s and renews it, for 19s more at most (heard of 1s ago). Next: in 19s (00:00:20 UTC) the maximum hold of alpha ends, and beta gets it.`},
	"a long lease of a dead process": {func(w *world) string {
		alpha := w.process("alpha")
		alpha.lock("nightly", "", &qlock.LockOptions{Lease: time.Hour})
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(3 * time.Second)
		alpha.Die()
		w.Advance(5 * time.Second)
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (8s): alpha has held it for 8s and has not been heard of for 6s: its process is dead, stopped or cut off. Next: unless it is heard of, in 59m54s (01:00:01 UTC) the lease of alpha ends, and beta gets it.`},
	"without end": {func(w *world) string {
		w.process("alpha").lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever})
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(time.Minute)
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1m00s): alpha has held it for 1m00s without end (nothing tells when its process was last heard of). Nothing ends by itself: alpha has no end.`},
	"without end, in a swarm": {func(w *world) string {
		w.swarmed("alpha").lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever})
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(time.Minute)
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1m00s): alpha has held it for 1m00s without end (its node was heard of 1s ago). Nothing ends by itself: alpha has no end.`},
	"a dead process, as the swarm has found": {func(w *world) string {
		alpha := w.swarmed("alpha")
		alpha.lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever})
		w.process("beta").awaitLock("nightly", "", nil)
		node, swarm := alpha.ID(), "berth:swarm:{nodes}:"
		alpha.Die()
		w.Advance(time.Minute)
		// As a flush leaves it that has not come to this lock yet.
		dead := strconv.FormatInt(time.Now().UnixMilli()-1000, 10)
		w.Do("ZREM", swarm+"probes", "p:"+node)
		w.Do("ZADD", swarm+"probes", strconv.FormatInt(1<<44+time.Now().UnixMilli(), 10), "c:"+node)
		w.Do("HSET", swarm+"state", "n:"+node, "1 "+dead+" 15000 alpha")
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1m00s): alpha has held it for 1m00s, and the swarm has declared its process dead. Next: with a next flush of the swarm the hold of alpha ends.`},
	"detached": {func(w *world) string {
		_, err := w.process("alpha").lock("nightly", "", &qlock.LockOptions{Lease: 20 * time.Second}).Detach(context.Background())
		require.NoError(w.T, err)
		w.process("beta").awaitLock("nightly", "", nil)
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", beta first (1s): alpha has left it to whoever resumes it, for 19s more. Next: in 19s (00:00:20 UTC) the lease of alpha ends, and beta gets it.`},
	"granted to a process that is not there, and nobody else would look": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		held := alpha.lock("nightly", "", nil)
		beta.awaitLock("nightly", "", nil)
		beta.awaitLock("nightly", "", nil)
		beta.Cut()
		require.NoError(w.T, held.Release(context.Background()))
		w.Advance(200 * ms)
		return w.waiting(keyspace.Lock, "nightly", "beta")
	}, codes(inspect.Locked), `beta has waited 199ms for lock "nightly": beta was granted it 200ms ago and has not taken it up yet. Nothing ends by itself: beta has not taken it up yet.`},
	"granted to a process that is not there": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		held := alpha.lock("nightly", "", nil)
		beta.awaitLock("nightly", "", nil)
		w.process("gamma").awaitLock("nightly", "", nil)
		beta.Cut()
		require.NoError(w.T, held.Release(context.Background()))
		w.Advance(200 * ms)
		return ""
	}, codes(inspect.Locked), `1 waits for lock "nightly", gamma first (199ms): beta was granted it 200ms ago and has not taken it up yet. Nothing ends by itself: beta has not taken it up yet. If it is not heard of again, gamma gets it in 5.8s.`},
}
