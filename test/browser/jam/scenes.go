package jam

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// full fills the semaphore. First in line is one that needs more than one place.
func (j *Jam) full(ctx context.Context) error {
	jobs := []string{"bert", "whisper", "resnet-152", "llama-ft", "yolo", "t5", "wav2vec"}
	for i, job := range jobs {
		n, err := j.node(fmt.Sprintf("trainer-%d@rack-%d", i+1, i/3+1))
		if err != nil {
			return err
		}
		p, err := semaphore.New(n, Full, 8, semaphore.Config{}).Acquire(berth.WithOwner(ctx, "train/"+job), &semaphore.AcquireOptions{
			Meta: map[string]string{"ticket": fmt.Sprintf("ML-%d", 1041+i)},
		})
		if err != nil {
			return err
		}
		j.Holds = append(j.Holds, p)
		j.works(p)
	}
	waiting := 0
	for i := range 8 {
		of, err := j.node(fmt.Sprintf("queue-runner-%d", i+1))
		if err != nil {
			return err
		}
		s := semaphore.New(of, Full, 8, semaphore.Config{})
		for n := range 5 {
			opts := &semaphore.AcquireOptions{Weight: 1, Meta: map[string]string{"rate": fmt.Sprintf("1e-%d", n+2)}}
			if waiting == 0 {
				opts.Weight = 2
			}
			if i == 0 && n < 2 {
				opts.Priority = 10
			}
			waiting++
			if err := j.waits(ctx, keyspace.Sem, Full, waiting, owned(fmt.Sprintf("sweep/%d.%d", i+1, n+1), permit(s, opts))); err != nil {
				return err
			}
		}
	}
	return nil
}

// cycle has three processes each hold what another one waits for.
func (j *Jam) cycle(ctx context.Context) error {
	holds, locks := make([]hold, len(Cycle)), make([]*qlock.Locks, len(Cycle))
	owner := func(i int) string { return fmt.Sprintf("order-%d", 1042+i) }
	for i, name := range Cycle {
		var err error
		if locks[i], err = j.locks(fmt.Sprintf("checkout-%d", i+1)); err != nil {
			return err
		}
		if holds[i], err = owned(owner(i), locked(locks[i], name, nil))(ctx); err != nil {
			return err
		}
		held := holds[i]
		j.work.Go(func() { // what waits with it gives it back too
			<-j.ctx.Done()
			_ = held.Release(context.WithoutCancel(ctx))
		})
		<-time.After(2 * time.Millisecond) // their ages differ
	}
	for i := range Cycle {
		next := Cycle[(i+1)%len(Cycle)]
		if err := j.waits(ctx, keyspace.Lock, next, 1, owned(owner(i), locked(locks[i], next, nil)), holds[i]); err != nil {
			return err
		}
	}
	return nil
}

// resting has all resources of a pool rest, each for another reason.
func (j *Jam) resting(ctx context.Context) error {
	pool, err := j.pools("billing-sync", Resting)
	if err != nil {
		return err
	}
	keys := []string{"ana@example.org", "ben@example.org", "chi@example.org", "dov@example.org", "eve@example.org"}
	if _, err := pool.Add(ctx, keys, nil); err != nil {
		return err
	}
	for i, rest := range []struct {
		lasts  time.Duration
		reason string
	}{
		{25 * time.Minute, "429: too many requests"},
		{2 * time.Hour, "asks for a captcha"},
		{berth.Forever, "its password was changed; Eva asks the owner"},
		{40 * time.Minute, "429: too many requests"},
		{26 * time.Hour, "locked until tomorrow by the provider"},
	} {
		if err := pool.Rest(ctx, keys[i], rest.lasts, rest.reason, nil); err != nil {
			return err
		}
	}
	for i := range 4 {
		if err := j.waits(ctx, keyspace.Pool, Resting, i+1, owned(fmt.Sprintf("customer-%d", 7+i), allocated(pool, nil))); err != nil {
			return err
		}
	}
	return j.waits(ctx, keyspace.Pool, Resting, 5, owned("customer-3", allocated(pool, &allocator.AllocateOptions{Resource: "chi@example.org"})))
}

// proxies has a pool of which one resource is wanted, and others are free.
func (j *Jam) proxies(ctx context.Context) error {
	pool, err := j.pools("crawler", Proxies)
	if err != nil {
		return err
	}
	if _, err := pool.Add(ctx, []string{"10.0.0.1:3128", "10.0.0.2:3128", "10.0.0.3:3128", "10.0.0.4:3128"}, nil); err != nil {
		return err
	}
	for _, site := range []string{"news", "shop"} {
		if err := j.takes(ctx, owned(site, allocated(pool, &allocator.AllocateOptions{Bind: site}))); err != nil {
			return err
		}
	}
	return j.waits(ctx, keyspace.Pool, Proxies, 1, owned("news/images", allocated(pool, &allocator.AllocateOptions{Resource: "10.0.0.1:3128"})))
}

// paused has a name stand still that has room, and one more wait for the process that was killed.
func (j *Jam) paused(ctx context.Context) error {
	n, err := j.node("mailer")
	if err != nil {
		return err
	}
	s := semaphore.New(n, Paused, 4, semaphore.Config{})
	if err := j.takes(ctx, permit(s, nil)); err != nil {
		return err
	}
	if err := n.Operator().Pause(ctx, keyspace.Sem, Paused, 2*time.Hour, "the relay moves to another data centre"); err != nil {
		return err
	}
	for i := range 3 {
		if err := j.waits(ctx, keyspace.Sem, Paused, i+1, owned(fmt.Sprintf("newsletter-%d", i+1), permit(s, nil))); err != nil {
			return err
		}
	}
	locks, err := j.locks("reports")
	if err != nil {
		return err
	}
	return j.waits(ctx, keyspace.Lock, Endless, 1, locked(locks, Endless, nil))
}

// forgotten has a hold without end that no process has, a drain that nobody has ended, and a name that a newer Berth wrote.
func (j *Jam) forgotten(ctx context.Context) error {
	locks, err := j.locks("deployer")
	if err != nil {
		return err
	}
	l, err := locks.Lock(berth.WithOwner(ctx, "deploy-311"), Left, &qlock.LockOptions{Lease: berth.Forever})
	if err != nil {
		return err
	}
	if _, err := l.Detach(ctx); err != nil {
		return err
	}
	err = j.waits(ctx, keyspace.Lock, Left, 1, owned("deploy-312", locked(locks, Left, nil)))
	if err != nil {
		return err
	}
	n, err := j.node("operator")
	if err != nil {
		return err
	}
	passed := make(chan struct{})
	has := sync.OnceFunc(func() { close(passed) })
	j.work.Go(func() { // it goes on for some seconds
		_, _ = n.Operator().Drain(j.ctx, berth.DrainTarget{Label: Drained}, &berth.DrainOptions{
			Reason: "the build machines get a new kernel", Each: func(berth.Drained) { has() },
		})
		has()
	})
	select {
	case <-passed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	space, err := keyspace.New(j.cfg.Namespace)
	if err != nil {
		return err
	}
	return j.redis.Do(ctx, j.redis.B().Hset().Key(space.State(keyspace.Lock, Newer)).FieldValue().FieldValue("v", "99 and new words").Build()).Error()
}

// regular has jobs that have run, one without success, and who leads.
func (j *Jam) regular(ctx context.Context) error {
	n, err := j.node("scheduler")
	if err != nil {
		return err
	}
	for name, outcome := range map[string]error{Report: nil, Failing: errors.New("exit status 1: no space left on device")} {
		_, err := once.New(n, name, once.Daily("02:00", "Europe/Berlin")).Do(ctx, func(context.Context, *once.Run) error { return outcome })
		if !errors.Is(err, outcome) {
			return errors.Join(fmt.Errorf("job %q has not ended as it was to", name), err)
		}
	}
	leads := make(chan struct{})
	led := sync.OnceFunc(func() { close(leads) })
	election := leader.New(n, Feed, leader.Config{Lease: j.cfg.Lease})
	j.work.Go(func() {
		_ = election.Run(j.ctx, func(leading context.Context) error { // it ends with the jam
			led()
			<-leading.Done()
			return nil
		})
	})
	select {
	case <-leads:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// strangers has names and texts that only somebody who means ill, or nobody, would choose.
func (j *Jam) strangers(ctx context.Context) error {
	of, err := j.node(closing)
	if err != nil {
		return err
	}
	locks, err := j.locks(backwards + broken)
	if err != nil {
		return err
	}
	meta := map[string]string{closing: broken, backwards: hidden, "wrong": wrong}
	for i, name := range []string{Image, Escaped, Long, RightTo} {
		s := semaphore.New(of, name, 1, semaphore.Config{})
		err = j.takes(ctx, owned(backwards, permit(s, &semaphore.AcquireOptions{Meta: meta})))
		for n := range 1 + i%2 {
			err = errors.Join(err, j.waits(ctx, keyspace.Sem, name, n+1, owned(broken+closing, permit(s, &semaphore.AcquireOptions{Meta: meta}))))
		}
		if err != nil {
			return err
		}
	}
	if err := of.Operator().Pause(ctx, keyspace.Sem, Image, time.Hour, closing+broken); err != nil {
		return err
	}
	for _, name := range []string{Script, Parent} {
		err := errors.Join(
			j.takes(ctx, owned(closing, locked(locks, name, &qlock.LockOptions{Meta: meta}))),
			j.waits(ctx, keyspace.Lock, name, 1, owned(hidden, locked(locks, name, nil))),
		)
		if err != nil {
			return err
		}
	}
	if _, err := once.New(of, Script, once.Daily("02:00", "UTC")).Do(ctx, func(context.Context, *once.Run) error { return nil }); err != nil {
		return err
	}
	pool, err := j.pools(Image, Location)
	if err != nil {
		return err
	}
	if _, err := pool.Add(ctx, []string{closing, Location, broken, wrong}, nil); err != nil {
		return err
	}
	err = j.takes(ctx, owned(Script, allocated(pool, &allocator.AllocateOptions{Resource: closing})))
	for _, key := range []string{Location, broken, wrong} {
		err = errors.Join(err, pool.Rest(ctx, key, time.Hour, Image+closing+backwards+broken, nil))
	}
	return errors.Join(err, j.waits(ctx, keyspace.Pool, Location, 1, owned(Image, allocated(pool, nil))),
		j.Until(ctx, keyspace.Pool, Location, func(n berth.Name) bool { return n.Held == 1 }))
}
