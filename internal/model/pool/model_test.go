package pool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/testkit/amount"
)

// history takes the model through steps that are written down, and the laws hold after each.
type history struct {
	*driver
	t     *testing.T
	ahead int // the priority of who asks now
}

// opens begins a history of a pool with some resources, which are all that it is to have.
func opens(t *testing.T, keys ...string) *history {
	t.Helper()
	h := &history{driver: newDriver(alone()), t: t}
	h.now, h.us = h.Now().UnixMilli(), h.Now().UnixMicro()
	if len(keys) > 0 {
		h.adds(0, 1, true, keys...)
	}
	return h
}

// step runs a step, and the laws are kept.
func (h *history) step(do func()) {
	h.t.Helper()
	h.begins()
	h.granted, h.handed, h.came, h.there = nil, nil, nil, true
	do()
	require.Empty(h.t, h.broken())
	require.Empty(h.t, h.fault)
}

func (h *history) pass(ms int) {
	h.Advance(time.Duration(ms) * time.Millisecond)
	h.now, h.us = h.Now().UnixMilli(), h.Now().UnixMicro()
}

// adds puts resources into the pool for so long, 0 = for good, for so many holders each; whole says
// that nothing else is to come.
func (h *history) adds(lasts int64, most int, whole bool, keys ...string) {
	h.t.Helper()
	h.step(func() { h.model.add(0, lasts, most, whole, opinion{}, keys) })
}

// asks has a claim ask that may wait, and returns the status.
func (h *history) asks(id string, w wants) string {
	h.t.Helper()
	return h.askedBy(id, w, true)
}

// all has claims ask for the same, one after the other.
func (h *history) all(w wants, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.asks(id, w)
	}
}

// tries has a claim ask that may not wait.
func (h *history) tries(id string, w wants) string {
	h.t.Helper()
	return h.askedBy(id, w, false)
}

func (h *history) askedBy(id string, w wants, may bool) (status string) {
	h.t.Helper()
	c := h.claims[id]
	if c == nil {
		if w.kind == "" {
			w.kind = "o"
		}
		c = &claim{id: id, node: "n", wants: w, wait: 60_000, lease: 60_000, renews: true, priority: h.ahead}
		c.asked = first{c.lease, true}
		h.claims[id] = c
	}
	h.step(func() {
		reply := h.model.acquire(c, "n", may, opinion{}, "")
		c.told = standing{lane: c.lane, place: c.place, until: c.until, ticket: c.ticket}
		status = reply[0].(string)
	})
	return status
}

func (h *history) gives(id string, rest int64) {
	h.t.Helper()
	c := h.claims[id]
	h.step(func() { h.model.release(c, "n", 0, rest, c.fence, "", 0) })
}

func (h *history) removes(keys ...string) {
	h.t.Helper()
	h.step(func() { h.model.remove(h.rev, fmt.Sprint("n.", h.rev), keys) })
}

func (h *history) rests(key string, lasts int64) {
	h.t.Helper()
	h.step(func() { h.model.rest(key, lasts, "", h.rev, fmt.Sprint("n.", h.rev), false) })
}

// sets is an operator's call about the pool, or a resource.
func (h *history) sets(key, words string) {
	h.t.Helper()
	h.step(func() { h.configure(key, strings.Fields(words), words, h.rev, fmt.Sprint("n.", h.rev)) })
}

func (h *history) sweeps() {
	h.t.Helper()
	h.step(func() { h.model.sweep("n", "0") })
}

// lapses lets time pass until somebody looks.
func (h *history) lapses(ms int) {
	h.t.Helper()
	h.pass(ms)
	h.sweeps()
}

// taken has "me" be bound to r1, which the claim a holds.
func (h *history) taken() {
	h.t.Helper()
	h.binds("me", "r1")
	h.asks("a", named("r1"))
}

func (h *history) binds(name, key string) {
	h.t.Helper()
	h.step(func() { h.model.tie(name, key, 0) })
}

// flushes loses all, and those who waited ask where they stood.
func (h *history) flushes(ids ...string) {
	h.t.Helper()
	h.step(h.forget)
	h.step(func() {
		for _, id := range ids {
			h.model.restore(h.claims[id])
		}
		h.restored("n")
	})
}

// are says what has become of each claim: it holds a resource, waits for one, waits, or is gone.
func (h *history) are(want ...string) {
	h.t.Helper()
	var got []string
	for _, w := range want {
		var id string
		_, err := fmt.Sscan(w, &id)
		require.NoError(h.t, err)
		switch c := h.claims[id]; {
		case c.deadline > h.now:
			got = append(got, id+" holds "+c.resource)
		case c.alive > h.now && c.lane != "":
			got = append(got, id+" waits for "+c.lane)
		case c.alive > h.now:
			got = append(got, id+" waits")
		default:
			got = append(got, id+" is gone")
		}
	}
	require.Equal(h.t, want, got)
}

var (
	some  = wants{}
	named = func(key string) wants { return wants{only: key} }
	bound = func(name string, patience int64) wants { return wants{bind: name, patience: patience} }
)

func TestWhatBecomesOfThoseWhoWaitForOneResource(t *testing.T) {
	for name, test := range map[string]func(h *history){
		"a named claim takes its own, though another one comes first": func(h *history) {
			require.Equal(h.t, "granted", h.asks("a", named("r2")))
			h.are("a holds r2")
		},
		"a named claim waits while another one is free, and keeps nobody from that": func(h *history) {
			h.asks("a", named("r1"))
			require.Equal(h.t, "queued", h.asks("b", named("r1")))
			require.Equal(h.t, "granted", h.asks("c", some))
			h.are("a holds r1", "b waits for r1", "c holds r2")
		},
		"a try gets what a wait would get at once": func(h *history) {
			h.asks("a", named("r1"))
			require.Equal(h.t, "held", h.tries("b", named("r1")))
			require.Equal(h.t, "granted", h.tries("c", named("r2")))
		},
		"who is bound by a hand-off of the same call waits for that": func(h *history) {
			h.asks("a", some)
			h.binds("me", "r1")
			h.asks("b", bound("me", 9000))
			h.step(func() { h.tie("me", "", 0) })
			h.claims["a"].deadline = h.now
			require.Equal(h.t, "queued", h.asks("c", bound("me", 9000)))
			h.are("b holds r1", "c waits for r1")
		},
		"rests by the settings": func(h *history) {
			h.sets("", ". 500 . . . .")
			h.asks("a", named("r1"))
			h.asks("b", named("r2"))
			h.sets("r2", "0 . .")
			h.gives("a", 0)
			h.gives("b", 0)
			require.Equal(h.t, []string{"r2"}, h.free)
			require.Equal(h.t, h.now+500, h.items["r1"].ends)
		},
		"limits": func(h *history) {
			h.sets("", ". . . . 59999 .")
			require.Equal(h.t, "limited", h.asks("a", some))
			h.sets("", ". . . . 60000 .")
			require.Equal(h.t, "granted", h.asks("a", some))
			h.sets("", "- - - - - -")
			require.Equal(h.t, unset, h.set)
		},
		"a late copy sets nothing": func(h *history) {
			late := h.rev
			h.sets("", "m . . . . .")
			h.step(func() {
				require.Equal(h.t, "stale", h.configure("", []string{"l", ".", ".", ".", ".", "."}, "late", late, "late")[0])
			})
			require.Equal(h.t, "m", h.set[setPolicy])
		},
		"what is not in the pool is absent": func(h *history) {
			require.Equal(h.t, "absent", h.asks("a", named("x")))
			require.Equal(h.t, "absent", h.tries("b", named("x")))
			h.are("a is gone", "b is gone")
		},
		"a check of health wants its resource alone": func(h *history) {
			h.adds(0, 2, true, "r1")
			require.Equal(h.t, "granted", h.tries("a", wants{only: "r1", kind: "a"}))
			h.gives("a", 0)
			h.asks("b", named("r1"))
			require.Equal(h.t, "held", h.tries("c", wants{only: "r1", kind: "a"}))
			require.Equal(h.t, "granted", h.tries("d", named("r1")))
		},
		"who comes first gets it, in whichever line he waits": func(h *history) {
			h.all(some, "a", "b", "c")
			h.asks("d", named("r1"))
			h.all(some, "e")
			h.gives("a", 0)
			h.are("c holds r1", "d waits for r1", "e waits")
			h.gives("b", 0)
			h.are("d waits for r1", "e holds r2")
			h.gives("c", 0)
			h.are("d holds r1")
		},
		"a priority goes before a place": func(h *history) {
			h.all(some, "a", "b", "c")
			h.ahead = 1
			h.asks("d", named("r1"))
			h.ahead = 0
			h.asks("e", named("r1"))
			h.gives("a", 0)
			h.are("c waits", "d holds r1", "e waits for r1")
			h.gives("d", 0)
			h.are("c holds r1", "e waits for r1")
		},
		"several that are free at once go round in one order": func(h *history) {
			h.all(some, "a", "b")
			h.asks("c", named("r2"))
			h.all(some, "d")
			h.asks("e", named("r2"))
			h.pass(60_000)
			for _, id := range []string{"c", "d", "e"} {
				h.claims[id].alive = h.now + 1
			}
			h.sweeps()
			h.are("c holds r2", "d holds r1", "e waits for r2")
			require.Less(h.t, h.claims["c"].fence, h.claims["d"].fence)
		},
		"who is bound waits for that, and then takes another one": func(h *history) {
			h.taken()
			require.Equal(h.t, "queued", h.asks("b", bound("me", 300)))
			h.lapses(299)
			h.are("b waits for r1")
			h.lapses(1)
			h.are("b holds r2")
			require.Equal(h.t, "r2", h.bound("me"))
		},
		"who is bound takes no other one in any case": func(h *history) {
			h.taken()
			h.asks("b", bound("me", forever))
			h.lapses(50_000)
			h.are("b waits for r1")
			h.gives("a", 0)
			h.are("b holds r1")
		},
		"who is bound and does not wait takes another one": func(h *history) {
			h.taken()
			require.Equal(h.t, "granted", h.asks("b", bound("me", 0)))
			h.are("b holds r2")
		},
		"who is bound to nothing, or to what is absent, takes any": func(h *history) {
			h.asks("a", bound("me", forever))
			h.are("a holds r1")
			h.binds("you", "r2")
			h.removes("r2")
			h.adds(0, 1, true, "r3")
			h.asks("b", bound("you", forever))
			h.are("b holds r3")
		},
		"a try of who is bound": func(h *history) {
			h.binds("me", "r1")
			require.Equal(h.t, "granted", h.tries("a", bound("me", 300)))
			require.Equal(h.t, "held", h.tries("b", bound("me", 300)))
			require.Equal(h.t, "granted", h.tries("c", bound("me", 0)))
		},
		"a binding that changes meanwhile changes nothing": func(h *history) {
			h.binds("me", "r1")
			h.all(some, "a", "b")
			h.asks("c", bound("me", 900))
			h.binds("me", "r2")
			h.gives("b", 0)
			h.are("c waits for r1")
			h.gives("a", 0)
			h.are("c holds r1")
			require.Equal(h.t, "r1", h.bound("me"))
		},
		"the place stays when patience ends": func(h *history) {
			h.binds("me", "r1")
			h.all(some, "a", "b")
			h.asks("c", bound("me", 300))
			h.all(some, "d")
			h.lapses(300)
			h.are("c waits", "d waits")
			h.gives("b", 0)
			h.are("c holds r2", "d waits")
		},
		"removed: what is named is absent, who is bound takes another one": func(h *history) {
			h.taken()
			h.asks("b", named("r1"))
			h.asks("c", bound("me", forever))
			h.removes("r1") // and it is leased
			h.are("a holds r1", "b is gone", "c holds r2")
			require.Equal(h.t, map[string]bool{"absent n b": true}, h.absent)
			require.Empty(h.t, h.lanes)
		},
		"expired": func(h *history) {
			h.adds(500, 1, true, "r1")
			h.binds("me", "r1")
			h.all(some, "a", "b")
			h.asks("c", named("r1"))
			h.asks("d", bound("me", forever))
			require.Equal(h.t, h.now+500, h.looks("r1"))
			h.lapses(500)
			h.are("a holds r1", "c is gone", "d waits")
		},
		"a replace fills the pool": func(h *history) {
			h.forget()
			h.asks("a", named("r1"))
			h.step(func() { h.start(h.rev, "turn") })
			h.step(func() { h.prune(h.gen) })
			h.are("a is gone")
		},
		"not named by a replace, or named": func(h *history) {
			h.all(some, "a", "b")
			h.asks("c", named("r1"))
			h.asks("d", named("r2"))
			h.step(func() { h.start(h.rev, "turn") })
			h.step(func() { h.model.add(h.gen, 0, 0, false, opinion{}, []string{"r2"}) })
			h.are("c waits for r1", "d waits for r2")
			h.step(func() { h.prune(h.gen) })
			h.are("c is gone", "d waits for r2")
		},
		"it rests": func(h *history) {
			h.taken()
			h.asks("b", named("r1"))
			h.asks("c", bound("me", 600))
			h.gives("a", 500)
			h.are("b waits for r1", "c waits for r1")
			require.Equal(h.t, h.now+500, h.looks("r1"))
			h.lapses(500)
			h.are("b holds r1", "c waits for r1")
		},
		"it rests without end": func(h *history) {
			h.binds("me", "r1")
			h.rests("r1", forever)
			h.asks("a", named("r1"))
			h.asks("b", bound("me", 600))
			require.Zero(h.t, h.looks("r1"))
			h.lapses(600)
			h.are("a waits for r1", "b holds r2")
			h.rests("r1", 0)
			h.are("a holds r1")
		},
		"more may hold it": func(h *history) {
			h.all(named("r1"), "a", "b", "c")
			h.adds(0, 2, true, "r1")
			h.are("a holds r1", "b holds r1", "c waits for r1")
		},
		"who shares it keeps it from nobody": func(h *history) {
			h.asks("a", named("r1"))
			h.asks("b", wants{only: "r1", kind: "s"})
			h.asks("c", named("r1"))
			h.gives("a", 0)
			h.are("b holds r1", "c holds r1")
		},
		"the first has died": func(h *history) {
			h.all(named("r1"), "a", "b", "c")
			h.claims["b"].alive = h.now
			h.gives("a", 0)
			h.are("b is gone", "c holds r1")
			require.Empty(h.t, h.lanes)
		},
		"all have died": func(h *history) {
			h.all(named("r1"), "a", "b")
			h.claims["b"].alive = h.now
			h.gives("a", 0)
			h.are("b is gone")
			require.Equal(h.t, []string{"r2", "r1"}, h.free)
			require.Empty(h.t, h.lanes)
		},
		"the first leaves": func(h *history) {
			h.all(named("r1"), "a", "b")
			h.gives("b", 0)
			h.are("b is gone")
			require.Empty(h.t, h.lanes)
			h.gives("a", 0)
			h.asks("c", named("r1"))
			h.are("c holds r1")
		},
		"the holder has died": func(h *history) {
			h.all(named("r1"), "a", "b")
			h.claims["a"].deadline = h.now
			h.sweeps()
			h.are("a is gone", "b holds r1")
		},
		"the holder is thrown out": func(h *history) {
			h.all(named("r1"), "a", "b")
			h.step(func() { h.model.force(h.claims["a"], 900) })
			h.are("a is gone", "b holds r1")
		},
		"it comes back from a swap": func(h *history) {
			h.asks("a", some)
			h.asks("b", named("r1"))
			h.step(func() { h.model.swap(h.claims["a"], h.claims["a"].fence, 0, "", 0) })
			h.are("a holds r2", "b holds r1")
		},
		"a swap passes nobody": func(h *history) {
			h.all(some, "a", "b", "c")
			h.asks("d", named("r2"))
			h.step(func() { h.model.swap(h.claims["a"], h.claims["a"].fence, 0, "", 0) })
			h.are("a holds r1", "b holds r2", "c waits", "d waits for r2")
		},
		"a flush, and the resource comes again": func(h *history) {
			h.all(named("r1"), "a", "b")
			h.flushes("b")
			h.are("b waits for r1")
			require.Equal(h.t, forever, h.looks("r1"))
			h.adds(0, 1, false, "r2")
			h.are("b waits for r1")
			h.adds(0, 1, true, "r1")
			h.are("b holds r1")
		},
		"a flush, and the pool is whole without it": func(h *history) {
			h.taken()
			h.asks("b", named("r1"))
			h.asks("c", bound("me", forever))
			h.asks("d", bound("me", 500))
			h.flushes("b", "c", "d")
			h.are("b waits for r1", "c waits for r1", "d waits for r1")
			h.adds(0, 1, true, "r2")
			h.are("b is gone", "c holds r2", "d waits")
		},
		"a flush that lasts longer than patience": func(h *history) {
			h.taken()
			h.asks("b", bound("me", 500))
			h.pass(500)
			h.flushes("b")
			h.are("b waits")
		},
		"restored when it is absent": func(h *history) {
			h.all(named("r1"), "a", "b")
			h.removes("r1")
			h.step(func() { require.Equal(h.t, "absent", h.model.restore(h.claims["b"])) })
			h.are("b is gone")
		},
		"named before the pool is filled": func(h *history) {
			h.forget()
			require.Equal(h.t, "queued", h.asks("a", named("r1")))
			require.Equal(h.t, "full", h.tries("b", named("r1")))
			h.adds(0, 1, false, "r2")
			h.are("a waits for r1")
			h.adds(0, 1, false, "r1")
			h.are("a holds r1")
		},
		"removed before the pool is filled": func(h *history) {
			h.forget()
			h.adds(0, 1, false, "r1")
			h.all(named("r1"), "a", "b")
			h.removes("r1")
			h.are("b waits for r1")
			h.gives("a", 0)
			h.are("b waits for r1")
			h.adds(0, 1, true, "r2")
			h.are("b is gone")
		},
	} {
		t.Run(name, func(t *testing.T) { test(opens(t, "r1", "r2")) })
	}
}

// alone is a world without a server: its clock moves only when it is told to.
func alone() World {
	now := time.UnixMilli(1_800_000_000_000)
	return World{
		Now:     func() time.Time { return now },
		Advance: func(d time.Duration, _ ...string) { now = now.Add(d) },
	}
}

func TestTheModelKeepsItsOwnLaws(t *testing.T) {
	require.NoError(t, amount.Histories(200))
	rapid.Check(t, func(rt *rapid.T) { Run(rt, alone()) })
}
