package model

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Reads compares what the reader says of a name with what the scripts that only read say, in one
// instant.
func Reads(t TB, redis rueidis.Client, space keyspace.Space, kind keyspace.Kind, name string) {
	t.Helper()
	run := scriptkit.NewRunner(redis, scriptkit.Options{Retry: berth.Retry{Attempts: 1}})
	r := reads{TB: t, Reader: reader.New(run, space, true), kind: kind, name: name, call: func(script string, args ...string) scriptkit.Reply {
		s := line.Library().Script(script)
		keys := []string{space.State(kind, name), space.Line(kind, name), space.Key(kind, name, keyspace.ItemsPart)}
		reply, err := run.Run(context.Background(), s, scriptkit.Once, keys[:min(len(keys), len(s.Header.Keys))], args)
		must(t, err)
		return reply
	}}
	revision := r.call("claim_revision")
	got, err := r.Revision(context.Background(), kind, name)
	if revision.Status() == "incompatible" {
		r.refused(err, revision.Int(1))
		_, err = r.Name(context.Background(), kind, name)
		r.refused(err, revision.Int(1))
		_, err = r.HoldersPage(context.Background(), kind, name, "", 10)
		r.refused(err, revision.Int(1))
		_, err = r.WaitersPage(context.Background(), kind, name, "", 10)
		r.refused(err, revision.Int(1))
		return
	}
	must(t, err)
	same(t, "revision", got, revision.Int(1))
	n, err := r.Name(context.Background(), kind, name)
	must(t, err)
	switch kind {
	case keyspace.Sem:
		r.semaphore(n)
	case keyspace.Lock:
		r.lock(n)
	case keyspace.Pool:
		r.pool(n)
	}
	r.holders()
	r.waiters(n)
}

type reads struct {
	TB
	*reader.Reader
	kind keyspace.Kind
	name string
	call func(script string, args ...string) scriptkit.Reply
}

func (r *reads) refused(err error, number int64) {
	r.Helper()
	want := berth.ErrIncompatible
	if number == 0 {
		want = state.ErrDamaged
	}
	if !errors.Is(err, want) {
		r.Fatalf("a name with the number %d is read with the error %v", number, err)
	}
}

func (r *reads) equal(what string, got, want any) {
	r.Helper()
	if !reflect.DeepEqual(got, want) {
		r.Fatalf("%s: the reader says\n%+v, the script\n%+v", what, got, want)
	}
}

func numbers(reply scriptkit.Reply, from, to int) (all []int) {
	for i := from; i <= to; i++ {
		all = append(all, int(reply.Int(i)))
	}
	return all
}

func (r *reads) semaphore(n reader.Name) {
	r.Helper()
	r.equal("capacity, held, holders, waiting, expired", []int{n.Capacity, n.Held, n.Holders, n.Waiting, n.Expired},
		numbers(r.call("claim_stats", "100"), 1, 5))
}

func (r *reads) pool(n reader.Name) {
	r.Helper()
	p := n.Pool
	if p == nil {
		p = &reader.Pool{}
	}
	r.equal("resources, free, leased, resting, leaving, holders, waiting, expired",
		[]int{n.Capacity, p.Free, n.Held, p.Resting, p.Leaving, n.Holders, n.Waiting, n.Expired}, numbers(r.call("pool_stats", "100"), 1, 8))
}

func (r *reads) lock(n reader.Name) {
	r.Helper()
	reply := r.call("lock_info")
	now := time.UnixMilli(reply.Int(1))
	_, entries, err := r.Entries(context.Background(), r.name)
	must(r, err)
	var want []reader.Found[berth.Holder]
	for i := 8; i < reply.Len(); i += 3 {
		h, err := line.Holder(r.name, reply.Str(i), now, reply.Int(i+1), reply.Str(i+2))
		h.Held = max(h.Held, 0)
		want = append(want, reader.Found[berth.Holder]{Entry: h, Err: err})
	}
	r.equal("entries", fmt.Sprintf("%+v", entries), fmt.Sprintf("%+v", want))
	r.equal("waiting", n.Waiting, int(reply.Int(2)))
	l := n.Lock
	if l == nil {
		l = &reader.Lock{}
	}
	r.equal("re-entries", []any{l.Reentries, l.WorkedThroughAt, l.Extended, l.LastLease, l.ExtendedAt, n.Held}, []any{
		int(reply.Int(3)), state.Instant(reply.Int(4)), state.Millis(reply.Int(5)), state.Millis(reply.Int(6)), state.Instant(reply.Int(7)),
		min(len(want), 1),
	})
}

func (r *reads) holders() {
	r.Helper()
	want, got := map[string]string{}, map[string]string{}
	for cursor := "0"; ; {
		reply := r.call("claim_holders", cursor, "3")
		now := time.UnixMilli(reply.Int(2))
		for i := 3; i < reply.Len(); i += 4 {
			h, err := line.Holder(r.name, reply.Str(i), now, reply.Int(i+1), reply.Str(i+2))
			h.Resource, h.Held = reply.Str(i+3), max(h.Held, 0)
			want[h.ID] = fmt.Sprintf("%+v %v", h, err)
		}
		if cursor = reply.Str(1); cursor == "0" {
			break
		}
	}
	if r.kind == keyspace.Lock { // of a lock it reads the group, too
		for id := range want {
			want[id] = ""
		}
	}
	var last time.Duration
	for cursor := ""; ; {
		page, err := r.HoldersPage(context.Background(), r.kind, r.name, cursor, 2)
		must(r, err)
		for _, f := range page.Found {
			h := f.Entry
			if f.Err == nil && r.kind != keyspace.Lock && h.Left < last {
				r.Fatalf("%s ends before the one before it", h.ID)
			}
			last = max(last, h.Left)
			if got[h.ID] = fmt.Sprintf("%+v %v", h, f.Err); r.kind == keyspace.Lock {
				got[h.ID] = ""
			}
			c, err := r.Claim(context.Background(), r.kind, r.name, h.ID)
			if f.Err == nil && (err != nil || c.Holder == nil || fmt.Sprintf("%+v", *c.Holder) != fmt.Sprintf("%+v", h)) {
				r.Fatalf("the claim %+v, %v; the holder %+v", c, err, h)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	r.equal("holders", got, want)
}

// seen is what is compared of a waiter.
func seen(id, label string, alive time.Duration, resource string, now time.Time, err error) string {
	if err != nil {
		alive, resource = 0, ""
	}
	return fmt.Sprintf("%s %s %s %q %d %v", id, label, alive, resource, now.UnixMilli(), err)
}

func (r *reads) waiters(n reader.Name) {
	r.Helper()
	var want, got []string
	ahead, lane, resource := map[string]int{}, 0, ""
	for place, claim := "", ""; ; {
		reply := r.call("claim_waiters", place, claim, "2")
		now := time.UnixMilli(reply.Int(1))
		read := 0
		for i := 2; i < reply.Len(); i += 5 {
			read++
			claim, place = reply.Str(i), reply.Str(i+1)
			if reply.Str(i+3) == "" {
				continue
			}
			record, err := state.ReadRecord(r.name, claim, reply.Str(i+3))
			_, wants, _ := strings.Cut(reply.Str(i+4), " ")
			if wants != resource {
				lane, resource = 0, wants
			}
			ahead[claim] = lane
			lane++
			want = append(want, seen(claim, record.Label, time.Duration(reply.Int(i+2))*time.Millisecond, wants, now, err))
		}
		if read < 2 {
			break
		}
	}
	first := ""
	for w, err := range r.Waiters(context.Background(), r.kind, r.name) {
		if err == nil && first == "" && w.Resource == "" {
			first = w.ID
		}
		r.equal("how many are ahead of "+w.ID, w.Ahead, ahead[w.ID])
	}
	for cursor := ""; ; {
		page, err := r.WaitersPage(context.Background(), r.kind, r.name, cursor, 2)
		must(r, err)
		for _, f := range page.Found {
			w := f.Entry
			got = append(got, seen(w.ID, w.Label, w.Alive, w.Resource, page.Now, f.Err))
			c, err := r.Claim(context.Background(), r.kind, r.name, w.ID)
			if f.Err != nil {
				continue
			}
			if err != nil || c.Waiter == nil || c.Waiter.Alive != w.Alive || c.Waiter.Resource != w.Resource || c.Waiter.BindWait != w.BindWait {
				r.Fatalf("the claim %+v, %v; the waiter %+v", c.Waiter, err, w)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	r.equal("waiters", got, want)
	live := slices.ContainsFunc(n.First, func(f reader.First) bool { return f.ID == first })
	if dead := slices.ContainsFunc(n.First, func(f reader.First) bool { return f.Dead }); first != "" && !live && !dead {
		r.Fatalf("the first in line is %s, and not among %+v", first, n.First)
	}
}
