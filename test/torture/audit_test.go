package torture

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
)

// The rules of the audit, beside those of the checker.
const (
	ruleEnd   = "end" // a worker ends, and its race detector is silent
	ruleWhole = "whole"
	ruleKeys  = "keys"
)

// auditLimit bounds what the driver itself asks of a server, far above what anything takes.
const auditLimit = testkit.Patience

// keysLimit is how long the keys of an idle name may last: Linger, which is a minute
// here, after the last tombstone, which lasts as long, and after the leases of those that
// were killed: the longest lease, what extensions add, and the clock set back.
const keysLimit = 2*time.Minute + 15*time.Second

// kept is how long the key may last that has who was found dead, and keptDrains the one that has what operators have said: a
// drain without an end is remembered for 30 days.
const (
	kept       = 24*time.Hour + 2*time.Minute
	keptDrains = 30*24*time.Hour + 2*time.Minute
)

// lasts is how long a key may last.
func (r *round) lasts(key string) time.Duration {
	switch {
	case strings.HasPrefix(key, r.ns+":notice:"):
		return keptDrains
	case strings.HasPrefix(key, r.ns+":swarm:"):
		return kept
	}
	return keysLimit
}

// leaseOfAudit is that of the driver's own holds: no pause of the machine ends one.
const leaseOfAudit = 30 * time.Second

// inspector is the driver's own node.
type inspector struct {
	node *node.Node
	pool map[string]*allocator.Pool[string]
}

func (r *round) inspector() *inspector {
	r.Helper()
	n, err := node.New(r.world.client, node.Config{Namespace: r.ns, Lease: leaseOfAudit})
	require.NoError(r, err)
	i := &inspector{node: n, pool: map[string]*allocator.Pool[string]{}}
	for _, p := range pools {
		i.pool[p.Name] = allocator.New(n, p.Name, allocator.Config[string]{
			MaxSharers: p.Sharers, Cooldown: time.Duration(p.Cooldown) * time.Millisecond,
		})
	}
	return i
}

func (i *inspector) close(r *round) {
	r.Helper()
	require.NoError(r, i.node.Close(r.within(auditLimit)))
}

// claimed is a claim as a listing shows it.
type claimed struct{ name, id, node string }

// claims are all that wait or hold, by name; of locks those that wait.
func (r *round) claims() (all [][]claimed) {
	r.Helper()
	reader := testkit.Patient{T: r.T}.Reader(r.world.client, r.ns)
	for _, key := range r.allNames() {
		kind, name, _ := strings.Cut(strings.TrimSuffix(key, "}"), ":{")
		var found []claimed
		if keyspace.Kind(kind) != keyspace.Lock {
			for _, h := range reader.Holders(keyspace.Kind(kind), name) {
				found = append(found, claimed{name, h.ID, h.Node})
			}
		}
		for _, w := range reader.Waiters(keyspace.Kind(kind), name) {
			found = append(found, claimed{name, w.ID, w.Node})
		}
		all = append(all, found)
	}
	return all
}

// fill adds the resources that a pool does not have: all of them in a new round, what a
// server that has lost its data does not know any more, and what workers have taken out
// and not put back.
func (r *round) fill() {
	r.Helper()
	fill := history.Fill{From: history.Monotonic()}
	i := r.inspector()
	defer i.close(r)
	for _, p := range pools {
		_, err := i.pool[p.Name].Add(r.within(auditLimit), p.Resources, nil)
		require.NoError(r, err, "adding resources to the pool %s", p.Name)
	}
	fill.To = history.Monotonic()
	r.fills = append(r.fills, fill)
}

// audit takes all that there is, once the workers have gone, and looks at the keys.
func (r *round) audit() []checker.Violation {
	r.Helper()
	i := r.inspector()
	var found []checker.Violation
	add := func(rule, text string, args ...any) {
		found = append(found, checker.Violation{Rule: rule, Text: fmt.Sprintf(text, args...), Faults: r.faults})
	}
	lasts := func(when string, remove, poolsToo bool) {
		for key, left := range r.keys(remove) {
			if strings.Contains(key, ":pool:") && !poolsToo {
				continue // those of a pool with resources have no expiry
			}
			r.tally.check(ruleKeys)
			if left < 0 || left > r.lasts(key) {
				add(ruleKeys, "%s, and the key %s lasts for %v", when, key, left)
			}
		}
	}
	lasts("the workers have gone", false, false) // before anything else is done: a call would put right what is wrong here
	ctx := r.within(auditLimit)
	var release []func(context.Context) error
	takes := func(h berth.Hold, err error, lacks string, args ...any) (had bool) {
		r.tally.check(ruleWhole)
		if err != nil {
			add(ruleWhole, lacks+": %v", append(args, err)...)
			return false
		}
		release = append(release, h.Release)
		return true
	}
	for _, s := range sems {
		permit, err := semaphore.New(i.node, s.Name, s.Capacity, semaphore.Config{}).Acquire(ctx, &semaphore.AcquireOptions{Weight: s.Capacity})
		takes(permit, err, "the semaphore %s has not its capacity of %d", s.Name, s.Capacity)
	}
	for _, l := range locks {
		lock, err := qlock.New(i.node, qlock.Config{Lease: leaseOfAudit}).Lock(ctx, l.Name, nil)
		takes(lock, err, "the lock %s cannot be had", l.Name)
	}
	for _, p := range pools {
		sharers := max(1, p.Sharers)
		for range len(p.Resources) * sharers {
			a, err := i.pool[p.Name].Allocate(ctx, nil)
			if !takes(a, err, "the pool %s has not its %d resources for %d each", p.Name, len(p.Resources), sharers) {
				break
			}
		}
	}
	for _, give := range release {
		require.NoError(r, give(r.within(auditLimit)))
	}
	for _, p := range pools {
		state, err := allocator.NewOperator(i.node).Inspect(r.within(auditLimit), p.Name)
		require.NoError(r, err)
		r.tally.check(ruleWhole)
		if len(state.Problems) > 0 {
			add(ruleWhole, "the pool %s: %v", p.Name, state.Problems)
		}
		_, err = i.pool[p.Name].Clear(r.within(auditLimit))
		require.NoError(r, err)
	}
	i.close(r)
	lasts("nothing is held and nobody waits", true, true)
	return found
}

// keys are those of the round, but for its registry's, with what is left of them; and all
// are deleted, if so wished.
func (r *round) keys(remove bool) map[string]time.Duration {
	r.Helper()
	found := map[string]time.Duration{}
	for _, server := range r.world.d.Masters(r) {
		client := r.world.direct(r, server)
		ctx := r.within(auditLimit)
		var cursor uint64
		for {
			page, err := client.Do(ctx, client.B().Scan().Cursor(cursor).Match(r.ns+":*").Count(1000).Build()).AsScanEntry()
			require.NoError(r, err)
			for _, key := range page.Elements {
				left, err := client.Do(ctx, client.B().Pttl().Key(key).Build()).AsInt64()
				require.NoError(r, err)
				if strings.HasPrefix(key, r.ns) && !strings.HasPrefix(key, r.ns+":waits:") && left != -2 { // -2: it has gone
					found[key] = time.Duration(left) * time.Millisecond
				}
				if remove {
					require.NoError(r, client.Do(ctx, client.B().Unlink().Key(key).Build()).Error())
				}
			}
			if cursor = page.Cursor; cursor == 0 {
				break
			}
		}
	}
	return found
}
