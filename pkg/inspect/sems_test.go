package inspect_test

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

var semStates = map[string]state{
	"some are free": {func(w *world) string {
		w.process("alpha").permit("gpu", 3, nil)
		return ""
	}, codes(inspect.Free), `Nobody waits for semaphore "gpu": 2 of 3 are free.`},
	"full": {func(w *world) string {
		alpha := w.process("alpha")
		for range 3 {
			alpha.permit("gpu", 3, nil)
		}
		w.process("beta").awaitPermit("gpu", 3, nil)
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Full), `1 waits for semaphore "gpu", beta first (1s): all 3 are held; alpha has held it for 1s and renews it (heard of 1s ago), and 2 others hold the rest. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"not enough for the first": {func(w *world) string {
		alpha := w.process("alpha")
		alpha.permit("gpu", 3, &semaphore.AcquireOptions{Weight: 2})
		w.process("beta").awaitPermit("gpu", 3, &semaphore.AcquireOptions{Weight: 2})
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Full), `1 waits for semaphore "gpu", beta first (1s): 2 of 3 are held and it asks for 2; alpha has held it for 1s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"a heavier one is first": {func(w *world) string {
		w.process("alpha").permit("gpu", 3, &semaphore.AcquireOptions{Weight: 2})
		w.process("gamma").awaitPermit("gpu", 3, &semaphore.AcquireOptions{Weight: 2})
		w.process("beta").awaitPermit("gpu", 3, nil)
		w.Advance(time.Second)
		return w.waiting(keyspace.Sem, "gpu", "beta")
	}, codes(inspect.Full, inspect.Heavier, inspect.Behind), `beta has waited 999ms for semaphore "gpu", 1 ahead: 2 of 3 are held, and gamma, who is first, asks for 2; alpha has held it for 1s and renews it (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, gamma and beta get it in 5s.`},
	"too heavy for ever": {func(w *world) string {
		w.process("alpha").permit("gpu", 3, &semaphore.AcquireOptions{Weight: 3})
		w.process("gamma").awaitPermit("gpu", 3, nil)
		beta := w.process("beta")
		beta.awaitPermit("gpu", 3, &semaphore.AcquireOptions{Weight: 3})
		beta.Deafen(true)
		require.NoError(w.T, semaphore.NewOperator(w.process("delta").Node).Resize(context.Background(), "gpu", 2, nil))
		return w.waiting(keyspace.Sem, "gpu", "beta")
	}, codes(inspect.TooHeavy, inspect.Over, inspect.Full, inspect.Behind), `beta has waited 0s for semaphore "gpu", 1 ahead: it asks for 3 of a capacity of 2 and is taken out when its process is next heard of. Nothing ends by itself: alpha renews. If it is not heard of again, gamma gets it in 6s.`},
	"the capacity was lowered": {func(w *world) string {
		alpha := w.process("alpha")
		for range 5 {
			alpha.permit("gpu", 5, nil)
		}
		w.process("beta").awaitPermit("gpu", 5, nil)
		require.NoError(w.T, semaphore.NewOperator(alpha.Node).Resize(context.Background(), "gpu", 3, nil))
		return ""
	}, codes(inspect.Over, inspect.Full), `1 waits for semaphore "gpu", beta first (0s): 5 are held of a capacity of 3, which was lowered; alpha has held it for 0s and renews it (heard of 0s ago), and 4 others hold the rest. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 6s.`},
	"its own owner": {func(w *world) string {
		alpha := w.process("alpha")
		w.process("gamma").permit("gpu", 3, nil)
		w.Advance(ms)
		alpha.permitFor("order-7", "gpu", 3, nil)
		alpha.permitFor("order-7", "gpu", 3, nil)
		alpha.awaitPermitFor("order-7", "gpu", 3, nil)
		return ""
	}, codes(inspect.Own, inspect.Full), `1 waits for semaphore "gpu", alpha (order-7) first (0s): its own owner order-7 holds 2 of 3; gamma has held it for 1ms and renews it (heard of 1ms ago), and 2 others hold the rest. Nothing ends by itself: gamma renews. If it is not heard of again, alpha (order-7) gets it in 6s.`},
	"nobody has looked": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		for range 2 {
			alpha.permit("gpu", 2, nil)
		}
		w.Advance(time.Second)
		beta.awaitPermit("gpu", 2, nil)
		alpha.Die()
		beta.Cut()
		w.Advance(testkit.Lease - 500*ms)
		return ""
	}, codes(inspect.Ready, inspect.Silent), `1 waits for semaphore "gpu", beta first (5.5s): 2 of 2 are free, and nobody has looked yet. beta, who is first, has not been heard of for 5.5s. Next: when somebody calls; "berth sem sweep gpu" does it now.`},
	"it changes whenever it is read": {func(w *world) string {
		alpha, capacity := w.process("alpha"), 10
		alpha.permit("gpu", capacity, &semaphore.AcquireOptions{Weight: 10})
		w.process("beta").awaitPermit("gpu", capacity, &semaphore.AcquireOptions{Weight: 10})
		reads := w.Process()
		reads.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "ZMSCORE" { // of the second of two trips
				capacity++
				require.NoError(w.T, semaphore.NewOperator(alpha.Node).Resize(context.Background(), "gpu", capacity, nil))
			}
			return link.Pass
		})
		var err error
		w.look, err = inspect.New(reads.Redis, inspect.Config{})
		require.NoError(w.T, err)
		return ""
	}, codes(inspect.Full, inspect.Moved), `1 waits for semaphore "gpu", beta first (0s): 10 of 12 are held and it asks for 10; alpha has held it for 0s and renews it (heard of 0s ago). It changed while it was read. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 6s.`},
	"more hold, and more wait, than are read": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		for range 101 {
			alpha.permit("gpu", 101, nil)
		}
		for range 102 {
			beta.awaitPermit("gpu", 101, nil)
		}
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Full, inspect.Part, inspect.Part), `Up to 102 wait for semaphore "gpu", beta first (1s): all 101 are held; alpha has held it for 1s and renews it (heard of 1s ago), and 100 others hold the rest. 100 of 101 holds were read. 100 of 102 waiting claims were read. Next: not known; of 101 holds the first 100 to end were read, and none of them ends by itself.`},
	"nobody is left to look": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		alpha.permit("gpu", 1, nil)
		w.Advance(2 * time.Second)
		beta.awaitPermit("gpu", 1, nil)
		alpha.Die()
		beta.Die()
		w.Advance(5 * time.Second)
		return ""
	}, codes(inspect.Full, inspect.Silent), `1 waits for semaphore "gpu", beta first (5s): the one is held; alpha has held it for 7s and has not been heard of for 5s: its process is dead, stopped or cut off. beta, who is first, has not been heard of for 5s. Nothing is granted by itself: no waiting process has been heard of.`},
}
