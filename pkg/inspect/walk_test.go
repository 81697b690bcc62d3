package inspect_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// walk is a random history of one semaphore, one lock and one pool.
type walk struct {
	*world
	t      *rapid.T
	names  map[keyspace.Kind]string
	kinds  []keyspace.Kind // that are used: of one alone, more happens at once
	keeper *citizen        // claims nothing, and lives for ever
	folk   []*citizen
	claims []*walked
	tokens []func(ctx context.Context, c *citizen) error // each resumes a hold that was detached
	leaves map[string]time.Time                          // when a resource leaves the pool, if by itself
}

// citizen is a process.
type citizen struct {
	*process
	label string
	pool  *allocator.Pool[string]
	died  time.Time // zero: it lives
}

// GoString is how a story names it.
func (c *citizen) GoString() string { return c.label }

// walked is a claim: its number is in its Meta.
type walked struct {
	n    int
	by   *citizen
	kind keyspace.Kind
	call *testkit.Wait[berth.Hold]
}

// GoString is how a story names it.
func (c *walked) GoString() string {
	return fmt.Sprintf("claim %d of %s, of a %s", c.n, c.by.label, c.kind)
}

// TestWhatComesNextIsWhatHappens: at any moment of a random history, what Explain says comes next by itself
// is what then happens if nobody calls, and not before.
func TestWhatComesNextIsWhatHappens(t *testing.T) {
	require.NoError(t, amount.Histories(3))
	require.NoError(t, flag.Set("rapid.v", "true")) // into the story
	inWorld(t, func(w *world) {
		runs, story := 0, &story{TB: w.T}
		rapid.Check(story, func(rt *rapid.T) {
			runs++
			story.lines = nil
			defer func() {
				if rt.Failed() {
					w.T.Logf("what has failed:\n%s", strings.Join(story.lines, "\n"))
				}
			}()
			k := newWalk(w, rt, runs)
			defer k.close()
			steps := map[string]func(*rapid.T){
				"acquire": k.acquire, "acquire more": k.acquire, "acquire again": k.acquire, "acquire still more": k.acquire,
				"acquire most": k.acquire,
				"release":      k.release, "detach": k.detach, "resume": k.resume, "renew": k.renew, "cancel": k.cancel,
				"force": k.force, "want": k.want, "pause": k.pause, "resize": k.resize, "rest": k.rest, "change": k.change,
				"die": k.die, "die again": k.die, "pass": k.pass, "foresee": k.foresee, "foresee more": k.foresee,
				"foresee again": k.foresee, "foresee still more": k.foresee, "": func(*rapid.T) { synctest.Wait() },
			}
			for range 3 {
				rt.Repeat(steps)
			}
		})
	})
}

// story keeps what rapid tells of a history, and tells it once that has failed: ids and goroutines are not rapid's to
// draw, so it may find no such history again. It is a TB, because rapid asks a T for what bubbles do not have.
type story struct {
	testing.TB
	lines []string
}

func (s *story) Logf(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *story) Log(args ...any) { s.Logf("%s", fmt.Sprint(args...)) }

func newWalk(w *world, rt *rapid.T, run int) *walk {
	k := &walk{world: w, t: rt, leaves: map[string]time.Time{}, names: map[keyspace.Kind]string{
		keyspace.Sem: fmt.Sprint("gpu-", run), keyspace.Lock: fmt.Sprint("nightly-", run), keyspace.Pool: fmt.Sprint("proxies-", run),
	}}
	all := []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool}
	k.kinds = rapid.SampledFrom([][]keyspace.Kind{all, all, all[:1], all[1:2], all[2:], all[2:]}).Draw(rt, "kinds")
	cfg := allocator.Config[string]{
		Cooldown: k.duration("cooldown", 0, 0, 3*time.Second), MaxSharers: k.number("sharers", 1, 2),
	}
	k.keeper = k.citizen("keeper", cfg)
	for i := range 4 {
		k.folk = append(k.folk, k.citizen(fmt.Sprint("p", i), cfg))
	}
	testkit.Must(k.keeper.pool.Add(ctx, []string{"a", "b", "c"}[:k.number("resources", 1, 3)], nil)).In(rt)
	return k
}

func (k *walk) citizen(label string, cfg allocator.Config[string]) *citizen {
	p := k.process(label)
	return &citizen{process: p, label: label, pool: allocator.New(p.Node, k.names[keyspace.Pool], cfg)}
}

func (k *walk) close() {
	for _, c := range k.claims {
		c.call.Cancel(nil)
	}
	for _, c := range append(k.folk, k.keeper) {
		c.Shut()
		c.Redis.Close()
	}
	synctest.Wait()
}

func (k *walk) duration(label string, all ...time.Duration) time.Duration {
	return rapid.SampledFrom(all).Draw(k.t, label)
}

func (k *walk) number(label string, least, most int) int {
	return rapid.IntRange(least, most).Draw(k.t, label)
}

// once says yes one time out of so many.
func (k *walk) once(label string, outOf int) bool { return k.number(label, 1, outOf) == outOf }

func (k *walk) kind() keyspace.Kind {
	return rapid.SampledFrom(k.kinds).Draw(k.t, "kind")
}

func (k *walk) resource() string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(k.t, "resource")
}

// alive is a process that lives. There is always one.
func (k *walk) alive() *citizen {
	return rapid.SampledFrom(slices.DeleteFunc(slices.Clone(k.folk), func(c *citizen) bool { return !c.died.IsZero() })).Draw(k.t, "process")
}

func (k *walk) acquire(*rapid.T) {
	c, kind, name := k.alive(), k.kind(), ""
	name = k.names[kind]
	lease := k.duration("lease", 0, 0, 2*time.Second, 9*time.Second, 20*time.Second, berth.Forever)
	fixed, most := k.once("fixed", 3), k.duration("max hold", 0, 0, 0, 4*time.Second, 11*time.Second)
	priority := k.number("priority", -1, 1)
	meta := map[string]string{"n": strconv.Itoa(len(k.claims))}
	owner, acquire := "", func(context.Context) (berth.Hold, error) { return nil, nil }
	switch kind {
	case keyspace.Sem:
		s := semaphore.New(c.Node, name, 3, semaphore.Config{})
		opts := &semaphore.AcquireOptions{Lease: lease, NoRenew: fixed, MaxHold: most, Priority: priority, Meta: meta, Weight: k.number("weight", 1, 3)}
		acquire = func(ctx context.Context) (berth.Hold, error) { return s.Acquire(ctx, opts) }
	case keyspace.Lock:
		opts := &qlock.LockOptions{
			Lease: lease, NoRenew: fixed, MaxHold: most, Priority: priority, Meta: meta,
			Access:   rapid.SampledFrom([]qlock.Access{qlock.Queued, qlock.Queued, qlock.Random, qlock.LIFO}).Draw(k.t, "access"),
			Conflict: rapid.SampledFrom([]qlock.Conflict{qlock.Wait, qlock.WorkThrough, qlock.ExtendAndWorkThrough}).Draw(k.t, "conflict"),
		}
		if lease == berth.Forever {
			opts.Conflict = qlock.Wait
		}
		owner = rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(k.t, "owner")
		acquire = func(ctx context.Context) (berth.Hold, error) { return c.locks.Lock(ctx, name, opts) }
	case keyspace.Pool:
		opts := &allocator.AllocateOptions{Lease: lease, NoRenew: fixed, MaxHold: most, Priority: priority, Meta: meta, Cooldown: k.duration("cooldown", 0, 0, 2*time.Second)}
		if k.once("one resource", 3) {
			opts.Resource = k.resource()
		} else if k.once("bound", 3) {
			opts.Bind, opts.BindFor = "customer", k.duration("bind for", 5*time.Second, time.Hour)
			opts.BindWait = k.duration("bind wait", 0, 3*time.Second, 8*time.Second, berth.Forever)
		}
		acquire = func(ctx context.Context) (berth.Hold, error) { return c.pool.Allocate(ctx, opts) }
	}
	k.claims = append(k.claims, &walked{n: len(k.claims), by: c, kind: kind, call: testkit.Queue(of(owner), k.World, acquire)})
}

// held is a hold of a process that lives, nil for none.
func (k *walk) held() *walked {
	var all []*walked
	for _, c := range k.claims {
		if c.by.died.IsZero() && c.call.Over() && c.call.Err == nil && c.call.Got.Err() == nil {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return rapid.SampledFrom(all).Draw(k.t, "hold")
}

func (k *walk) release(*rapid.T) {
	if c := k.held(); c != nil {
		_ = c.call.Got.Release(ctx) // it may just have ended
	}
}

func (k *walk) detach(*rapid.T) {
	c := k.held()
	if c == nil {
		return
	}
	token, err := c.call.Got.Detach(ctx)
	if err != nil {
		return
	}
	k.tokens = append(k.tokens, func(ctx context.Context, by *citizen) (err error) {
		h := berth.Hold(nil)
		switch c.kind {
		case keyspace.Sem:
			h, err = semaphore.New(by.Node, token.Name, 3, semaphore.Config{}).Resume(ctx, token)
		case keyspace.Lock:
			h, err = by.locks.Resume(ctx, token)
		case keyspace.Pool:
			h, err = by.pool.Resume(ctx, token)
		}
		if err == nil {
			c.by, c.call.Got = by, h
		}
		return err
	})
}

func (k *walk) resume(*rapid.T) {
	if n := len(k.tokens); n > 0 {
		_ = k.tokens[n-1](ctx, k.alive()) // its lease may have ended
		k.tokens = k.tokens[:n-1]
	}
}

func (k *walk) renew(*rapid.T) {
	c := k.held()
	if c == nil {
		return
	}
	if l, ok := c.call.Got.(*qlock.Lock); ok && k.once("extend", 2) {
		_ = l.Extend(ctx, k.duration("by", time.Second, 5*time.Second))
	} else if h, ok := c.call.Got.(interface {
		Renew(ctx context.Context) error
	}); ok {
		_ = h.Renew(ctx)
	}
}

func (k *walk) cancel(*rapid.T) {
	for _, c := range k.claims {
		if c.by.died.IsZero() && !c.call.Over() && k.once("cancel", 3) {
			c.call.Cancel(nil)
			return
		}
	}
}

func (k *walk) force(*rapid.T) {
	kind := k.kind()
	for _, s := range k.view(kind) {
		if k.once("force", 4) {
			k.done(testkit.Second(k.keeper.Operator().Release(ctx, berth.Target{Kind: kind, Name: k.names[kind], Claim: s.id})))
			return
		}
	}
}

func (k *walk) want(*rapid.T) {
	kind := k.kind()
	k.done(testkit.Second(k.keeper.Operator().Want(ctx, berth.Target{Kind: kind, Name: k.names[kind]})))
}

func (k *walk) pause(*rapid.T) {
	kind := k.kind()
	lasts := k.duration("pause", 0, 3*time.Second, 10*time.Second)
	if lasts == 0 {
		k.done(k.keeper.Operator().Unpause(ctx, kind, k.names[kind]))
	} else {
		k.done(k.keeper.Operator().Pause(ctx, kind, k.names[kind], lasts, "migration"))
	}
}

func (k *walk) resize(*rapid.T) {
	err := semaphore.NewOperator(k.keeper.Node).Resize(ctx, k.names[keyspace.Sem], k.number("capacity", 1, 4), nil)
	if err != nil {
		require.ErrorIs(k.t, err, berth.ErrAbsent)
	}
}

func (k *walk) rest(*rapid.T) {
	err := k.keeper.pool.Rest(ctx, k.resource(), k.duration("rest", 2*time.Second, 7*time.Second, berth.Forever), "banned", nil)
	if err != nil {
		require.ErrorIs(k.t, err, berth.ErrAbsent)
	}
}

// change adds a resource, has one leave in a while, or now.
func (k *walk) change(*rapid.T) {
	key, err := []string{k.resource()}, error(nil)
	if k.once("remove", 4) {
		_, err = k.keeper.pool.Remove(ctx, key)
	} else {
		lasts := k.duration("expiry", 0, 0, 4*time.Second, 13*time.Second)
		_, err = k.keeper.pool.Add(ctx, key, &allocator.AddOptions{Expiry: lasts})
		k.leaves[key[0]] = time.Now().Add(lasts)
	}
	require.NoError(k.t, err)
}

// die has a process die, after which a while may pass. One lives on.
func (k *walk) die(*rapid.T) {
	k.kill(k.alive())
	k.Advance(k.duration("while", ms, 1500*ms, 4*time.Second))
}

func (k *walk) kill(c *citizen) {
	c.Die()
	c.died = time.Now()
	synctest.Wait()
	if !slices.ContainsFunc(k.folk, func(c *citizen) bool { return c.died.IsZero() }) {
		k.folk = append(k.folk, k.citizen(fmt.Sprint("p", len(k.folk)), allocator.Config[string]{}))
	}
}

func (k *walk) pass(*rapid.T) {
	k.Advance(k.duration("pass", ms, 77*ms, time.Second, 2500*ms, 7*time.Second))
}

// done looks at what an operator's call has returned.
func (k *walk) done(err error) {
	if !errors.Is(err, berth.ErrNotHeld) {
		require.NoError(k.t, err)
	}
	synctest.Wait()
}

// stand is where a claim stands.
type stand struct {
	claim    *walked
	id, node string
	holds    bool
	resource string // that it has, or waits for alone
	hold     berth.Holder
	first    bool // of those who wait for the same
}

// view is where the claims of a name stand that live by the server's clock, by their IDs.
func (k *walk) view(kind keyspace.Kind) (all []stand) {
	holds := testkit.Must(k.look.Holders(ctx, kind, k.names[kind], "", 0)).In(k.t)
	for _, h := range holds.Items {
		all = append(all, stand{k.of(h.Meta), h.ID, h.Node, true, h.Resource, h, false})
	}
	waits := testkit.Must(k.look.Waiters(ctx, kind, k.names[kind], "", 0)).In(k.t)
	for _, w := range waits.Items {
		if w.Alive > 0 {
			all = append(all, stand{k.of(w.Meta), w.ID, w.Node, false, w.Resource, berth.Holder{}, w.Ahead == 0})
		}
	}
	slices.SortFunc(all, func(a, b stand) int { return cmp.Compare(a.id, b.id) })
	return all
}

func (k *walk) of(meta map[string]string) *walked {
	n := testkit.Must(strconv.Atoi(meta["n"])).In(k.t)
	return k.claims[n]
}
