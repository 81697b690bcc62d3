package inspect

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
)

const lease = 10 * time.Second

// noon is when the snapshots are taken.
var noon = time.Date(2026, 1, 1, 0, 0, 40, 0, time.UTC)

func before(d time.Duration) time.Time { return noon.Add(-d) }
func after(d time.Duration) time.Time  { return noon.Add(d) }

// holds is a hold of a process that renews it, heard of 1.2 s ago; each change makes it another one.
func holds(label string, changes ...func(*reader.Held)) *reader.Held {
	h := &reader.Held{Holder: berth.Holder{
		ID: "n-" + label + ".1", Node: "n-" + label, Label: label, Weight: 1, Fence: 7, Lease: lease, Granted: before(220 * time.Second),
	}, Record: state.Record{Phase: 'h', Wait: lease}, Deadline: after(8800 * time.Millisecond)}
	for _, change := range changes {
		change(h)
	}
	h.Detached = h.Record.Phase == 'd' // as a reader tells it
	if h.Lease > h.Record.Wait {
		h.WaitLease = h.Record.Wait
	}
	return h
}

func silent(d time.Duration) func(*reader.Held) {
	return func(h *reader.Held) { h.Deadline = before(d).Add(h.Lease) }
}

func of(resource string) func(*reader.Held)   { return func(h *reader.Held) { h.Resource = resource } }
func ownedBy(owner string) func(*reader.Held) { return func(h *reader.Held) { h.Owner = owner } }

func fixed(left time.Duration) func(*reader.Held) {
	return func(h *reader.Held) { h.NoRenew, h.Deadline = true, after(left) }
}

func limited(left time.Duration) func(*reader.Held) {
	return func(h *reader.Held) { h.MaxHold, h.Record.Limit = time.Hour, after(left) }
}

func endless(h *reader.Held) {
	h.Lease, h.NoRenew, h.Deadline, h.Granted = berth.Forever, true, time.Time{}, before(3*time.Hour)
}

// waits is a claim that came 12 s ago, in the order in which a snapshot lists it.
func waits(label string, changes ...func(*reader.Place)) *reader.Place {
	w := &reader.Place{Waiter: berth.Waiter{
		ID: "n-" + label + ".1", Node: "n-" + label, Label: label, Weight: 1, Since: before(12 * time.Second),
	}, Record: state.Record{Heard: before(time.Second), Wait: lease}, Lane: 254, Place: "1767225628000"}
	for _, change := range changes {
		change(w)
	}
	return w
}

func heavy(weight int) func(*reader.Place) { return func(w *reader.Place) { w.Weight = weight } }
func only(key string) func(*reader.Place) {
	return func(w *reader.Place) { w.Resource, w.Wants.Resource = key, key }
}

func quiet(d time.Duration) func(*reader.Place) {
	return func(w *reader.Place) { w.Record.Heard = before(d) }
}

// readAs is a name with its holds.
func readAs(kind keyspace.Kind, name string, capacity int, entries []*reader.Held) *snapshot {
	row := reader.Row{Name: berth.Name{Kind: kind, Name: name, At: noon, Capacity: capacity}}
	for _, h := range entries {
		row.Held += h.Weight
	}
	return &snapshot{Snapshot: reader.Snapshot{Row: row, Known: true, Holds: entries}, namespace: "berth"}
}

func lockOf(entries ...*reader.Held) *snapshot {
	return readAs(keyspace.Lock, "nightly", 1, entries)
}

func semOf(capacity int, entries ...*reader.Held) *snapshot {
	return readAs(keyspace.Sem, "gpu", capacity, entries)
}

// stored is a resource of which nothing else is known.
func stored(i state.Item) reader.Item { return reader.Item{Item: i} }

// poolOf is a pool of the resources of its holds, and of others.
func poolOf(entries []*reader.Held, others map[string]reader.Item) *snapshot {
	s := readAs(keyspace.Pool, "proxies", 0, entries)
	s.Held, s.Pool, s.Filled, s.Items = 0, &berth.PoolInfo{}, true, map[string]reader.Item{}
	for key, i := range others {
		i.Max = max(i.Max, 1)
		s.Items[key] = i
		if !i.Absent {
			s.Capacity++
		}
		if i.Ends > 0 {
			s.Pool.Resting++
		}
		if i.Leaving {
			s.Pool.Leaving++
		}
	}
	for _, h := range entries {
		i, known := s.Items[h.Resource]
		if !known {
			s.Capacity++
			i.Max = 1
		}
		if len(i.Claims) == 0 {
			s.Held++
		}
		i.Claims = append(i.Claims, h.ID)
		s.Items[h.Resource] = i
	}
	for _, i := range s.Items {
		if i.Free() {
			s.Pool.Free++
		}
	}
	return s
}

// in has claims wait, those for one resource in its lane.
func (s *snapshot) in(claims ...*reader.Place) *snapshot {
	for _, w := range claims {
		if w.Resource != "" {
			s.Lanes = append(s.Lanes, w)
		} else {
			s.Line = append(s.Line, w)
		}
	}
	s.Waiting = len(claims)
	return s
}

func (s *snapshot) with(change func(*snapshot)) *snapshot {
	change(s)
	return s
}

// asked is a snapshot for one claim of it.
func (s *snapshot) asked(label string) *snapshot {
	id := "n-" + label + ".1"
	for i := range s.Line {
		if s.Line[i].ID == id {
			s.claim = &reader.Asked{Word: "wait", Wait: s.Line[i], Rank: i}
		}
	}
	for i := range s.Holds {
		if s.Holds[i].ID == id {
			s.claim = &reader.Asked{Word: "hold", Hold: s.Holds[i]}
		}
	}
	return s
}

const alphaRenews = "alpha has held it for 3m40s and renews it (heard of 1.2s ago)"

// sentences are what no state of TestEachSentenceIsOfARealState says, of a name (claim "") or of a claim.
var sentences = []struct {
	code  Code
	s     *snapshot
	claim string
	why   string
	then  string
}{
	{Unknown, lockOf().with(func(s *snapshot) { s.Known, s.server = false, &reader.Server{Full: true} }), "", `No lock "nightly" is known in namespace "berth": nobody has used it, or it was forgotten, as idle names are. The server is full: it refuses new claims, and who holds or waits goes on.`, ""},
	{Holding, poolOf([]*reader.Held{holds("alpha", of("10.0.0.1"))}, nil).asked("alpha"), "n-alpha.1", `alpha has held 10.0.0.1 of pool "proxies" for 3m40s and renews it (heard of 1.2s ago).`, `Nothing ends by itself: alpha renews.`},
	{
		Locked, lockOf(holds("alpha", endless, func(h *reader.Held) { h.Record.Phase = 'd' })).in(waits("beta")), "",
		`1 waits for lock "nightly", beta first (12s): alpha has left it to whoever resumes it, without end.`,
		`Nothing ends by itself: alpha has no end.`,
	},
	{
		Locked, lockOf(holds("alpha", func(h *reader.Held) { h.ID = "n-alpha.0" })).
			in(waits("alpha", quiet(3*time.Second)), waits("beta")).asked("alpha"),
		"n-alpha.1",
		`alpha has waited 12s for lock "nightly": ` + alphaRenews + `.`,
		`Nothing ends by itself: alpha renews. If it is not heard of again, that ends in 7s.`,
	},
	{
		Paused, semOf(2, holds("alpha"), holds("delta")).in(waits("beta")).with(func(s *snapshot) { s.Pause = &berth.Pause{Left: 20 * time.Second} }), "",
		`1 waits for semaphore "gpu", beta first (12s): it is paused for 20s more; and all 2 are held; ` + alphaRenews + `, and 1 other holds the rest.`,
		`In 20s (00:01:00 UTC) the pause ends, and what is held stays held. Nothing else ends by itself: alpha renews. If it is not heard of again, beta gets it in 20s.`,
	},
	{
		Ready, semOf(3, holds("alpha")).in(waits("beta", heavy(2))), "",
		`1 waits for semaphore "gpu", beta first (12s): 2 of 3 are free, and nobody has looked yet.`, `Next: within 50ms, if a waiting process runs; a sweep does it now.`,
	},
	{
		Ready, semOf(3, holds("alpha")).in(waits("beta", quiet(7*time.Second))), "",
		`1 waits for semaphore "gpu", beta first (12s): 2 of 3 are free, and nobody has looked yet. beta, who is first, has not been heard of for 7s.`, `Next: once alpha next renews, within 3.3s; a sweep does it now.`,
	},
	{
		Full, semOf(3, holds("alpha"), holds("delta", fixed(20*time.Second))).in(waits("beta", heavy(2))), "",
		`1 waits for semaphore "gpu", beta first (12s): 2 of 3 are held and it asks for 2; ` + alphaRenews + `, and 1 other holds the rest.`,
		`Next: in 20s (00:01:00 UTC) the lease of delta ends, and beta gets it.`,
	},
	{
		Full, semOf(1, holds("alpha", silent(7*time.Second))).in(waits("beta", quiet(7*time.Second))), "",
		`1 waits for semaphore "gpu", beta first (12s): the one is held; alpha has held it for 3m40s and has not been heard of for 7s: ` +
			`its process is dead, stopped or cut off. beta, who is first, has not been heard of for 7s.`,
		`Nothing is granted by itself: no waiting process has been heard of.`,
	},
	{
		Full, semOf(2, holds("omega", endless), holds("alpha")).in(waits("beta")), "",
		`1 waits for semaphore "gpu", beta first (12s): all 2 are held; omega has held it for 3h00m without end ` +
			`(nothing tells when its process was last heard of), and 1 other holds the rest.`,
		`Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 8.8s.`,
	},
	{
		Locked, lockOf(holds("alpha", fixed(time.Hour), func(h *reader.Held) {
			h.Record.Phase, h.Granted, h.Deadline = 'g', before(200*time.Millisecond), after(9*time.Second)
		})).in(waits("beta")), "",
		`1 waits for lock "nightly", beta first (12s): alpha was granted it 200ms ago and has not taken it up yet.`,
		`Next: not known: alpha has not taken it up yet.`,
	},
	{
		Locked, lockOf(holds("alpha")).in(waits("beta", quiet(7*time.Second))), "",
		`1 waits for lock "nightly", beta first (12s): ` + alphaRenews + `. beta, who is first, has not been heard of for 7s.`,
		`Nothing ends by itself: alpha renews.`,
	},
	{
		Empty, poolOf(nil, nil).in(waits("beta")).with(func(s *snapshot) { s.Refresh = noon.Add(24 * time.Hour) }), "",
		`1 waits for pool "proxies", beta first (12s): the pool has no resources; its Source may be asked again from 2026-01-02 00:00:40 UTC.`, `Nothing ends by itself.`,
	},
	{
		Taken, poolOf([]*reader.Held{holds("alpha", of("a")), holds("delta", of("b")), holds("eps", of("c"))},
			map[string]reader.Item{"d": stored(state.Item{Ends: after(20 * time.Second).UnixMilli()}), "e": {Damaged: true}}).in(waits("beta")), "",
		`1 waits for pool "proxies", beta first (12s): of 5 resources 3 are leased, 1 rests and 1 is damaged; ` + alphaRenews + `, and 2 others hold the rest.`,
		`Next: in 20s (00:01:00 UTC) the rest of d ends, and beta gets it.`,
	},
	{
		Full, semOf(101, holds("alpha")).in(waits("beta")).with(func(s *snapshot) { s.Held, s.HoldsLeft, s.Replica, s.Moving = 101, 4999, true, true }), "",
		`1 waits for semaphore "gpu", beta first (12s): all 101 are held; ` + alphaRenews + `, and 4 999 others hold the rest. This is what the replica knows. It changed while it was read. 1 of 5 000 holds were read, those that end first.`,
		`Next: not known; of 5 000 holds the first 1 to end were read, and none of them ends by itself.`,
	},
}

func TestExplainSentences(t *testing.T) {
	for _, test := range sentences {
		t.Run(string(test.code), func(t *testing.T) {
			e := explain(test.s, test.claim)
			require.Equal(t, test.why, e.Why)
			require.Equal(t, test.then, e.Then, test.why)
			require.Equal(t, test.code, e.Reasons[0].Code, test.why)
			guarded(t, test.s, test.claim)
		})
	}
}

// copies are as what they are copies of is now.
func copies[T any](of []*T) (all []*T) {
	for _, each := range of {
		same := *each
		all = append(all, &same)
	}
	return all
}

// guarded fails if an explanation is not of its snapshot alone, if a replica says that a process is dead, or if words that
// whoever may write to the namespace can store reach a terminal.
func guarded(t *testing.T, of *snapshot, claim string) {
	t.Helper()
	e := explain(of, claim)
	require.Equal(t, e, explain(of, claim), "it is pure")
	s := *of
	s.Replica = true
	e = explain(&s, claim)
	require.NotContains(t, e.String(), "dead, stopped")
	require.Nil(t, e.IfSilent)
	require.False(t, e.Next != nil && len(e.Next.If) > 0, e)

	wild := "a\x1b[2J\u202e\n\xff\u200b" + strings.Repeat("x", 500)
	s = *of
	s.Name.Name, s.Pause = wild, &berth.Pause{Left: time.Hour, Reason: wild}
	s.Holds, s.Line, s.Lanes = copies(s.Holds), copies(s.Line), copies(s.Lanes)
	for _, h := range s.Holds {
		h.Label, h.Owner = wild, wild
	}
	for _, w := range slices.Concat(s.Line, s.Lanes) {
		w.Label, w.Owner, w.Wants.Bind = wild, wild, wild
	}
	e = explain(&s, claim)
	for _, m := range append(e.Mend, Mend{If: e.String()}) {
		require.Equal(t, -1, strings.IndexFunc(m.If, text.Unreadable), "%q", m.If)
	}
	_, err := json.Marshal(e)
	require.NoError(t, err)
}
