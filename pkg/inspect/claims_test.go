package inspect

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// TestAListingSaysWhoIsOverdue: who calls three times within the shorter of its lease and its wait lease.
func TestAListingSaysWhoIsOverdue(t *testing.T) {
	t.Parallel()
	hold := func(kind keyspace.Kind, name string, h berth.Holder) Claim {
		h.Held = time.Hour
		return Claim{Kind: kind, Name: name, Hold: &h}
	}
	lease := func(lease, left time.Duration) berth.Holder { return berth.Holder{Lease: lease, Left: left} }
	bounded, paced, grant := lease(10*time.Second, time.Second), lease(time.Hour, time.Hour-7*time.Second), lease(10*time.Second, 3*time.Second)
	bounded.MaxHold, paced.WaitLease = time.Minute, 10*time.Second
	fixed, detached := lease(10*time.Second, time.Second), lease(10*time.Second, time.Second)
	fixed.NoRenew, detached.Detached = true, true
	page := Page[Claim]{Items: []Claim{
		hold(keyspace.Sem, "a", lease(10*time.Second, 4*time.Second)),
		hold(keyspace.Sem, "a", lease(10*time.Second, 4*time.Second-1)),
		hold(keyspace.Sem, "a", bounded), hold(keyspace.Sem, "a", paced), hold(keyspace.Sem, "a", fixed), hold(keyspace.Sem, "a", detached),
		hold(keyspace.Sem, "a", lease(berth.Forever, berth.Forever)), hold(keyspace.Sem, "a", grant),
		{Kind: keyspace.Sem, Name: "a", Wait: &berth.Waiter{}},
		hold(keyspace.Lock, "l", lease(time.Minute, 8*time.Second)), hold(keyspace.Lock, "l", lease(10*time.Second, 8*time.Second)),
		hold(keyspace.Lock, "edge", lease(time.Minute, 8*time.Second)), hold(keyspace.Lock, "edge", lease(time.Minute, 8*time.Second)),
	}, Next: "more"}
	page.Items[7].Hold.Held = time.Second
	judge(&page, "")
	var got []Process
	for _, c := range page.Items {
		got = append(got, c.Process)
	}
	require.Equal(t, []Process{
		Renewing, Overdue, "", Overdue, Fixed, Detached, Endless, Renewing, "",
		Renewing, Renewing, // entries share a deadline, that of the shortest lease
		"", "", // the page ends within them
	}, got)
	page.Items = page.Items[11:]
	page.Next = ""
	judge(&page, "")
	require.Equal(t, Overdue, page.Items[0].Process)
	page.Items[0].Process, page.Items[1].Process = "", ""
	judge(&page, "from here")
	require.Zero(t, page.Items[0].Process)
	require.Zero(t, page.Items[1].Process)
	page.Replica = true
	judge(&page, "")
	require.Zero(t, page.Items[0].Process, "it may lag behind those who renew")
}

// TestAReplicaKnowsOfNoDead: it may lag behind those who probe and renew.
func TestAReplicaKnowsOfNoDead(t *testing.T) {
	t.Parallel()
	hold := berth.Holder{ID: "a.1", Node: "a", Lease: berth.Forever, Left: berth.Forever, ZombieAfter: time.Second}
	for _, replica := range []bool{false, true} {
		n := berth.Name{Kind: keyspace.Lock, Held: 1, Replica: replica}
		got := trouble(&n, []reader.Found[berth.Holder]{{Entry: hold}}, map[string]bool{"a": true}, func(*berth.Holder) bool { return false })
		require.Equal(t, map[bool]berth.Level{false: berth.LevelStuck, true: berth.LevelBusy}[replica], got.Level)
	}
}

// A walk over all nodes goes on for as long as somebody looks: of a million claims it remembers those of one name, and counts.
func TestAWalkOverNodesRemembersTheClaimsOfOneName(t *testing.T) {
	t.Parallel()
	const many = 50
	var w Nodes
	page := func(name string, waits, holds int) (p Page[Claim]) {
		p.At = noon
		for i := range waits {
			p.Items = append(p.Items, Claim{Name: name, Wait: &berth.Waiter{ID: fmt.Sprint(name, i), Node: "n"}})
		}
		for i := range holds { // the first of those that waited was granted meanwhile
			p.Items = append(p.Items, Claim{Name: name, Hold: &berth.Holder{ID: fmt.Sprint(name, waits-1+i), Node: "n"}})
		}
		return p
	}
	want := []Claimed{}
	for _, name := range []string{"a", "b", "c"} {
		whole := page(name, many, many)
		for items := range slices.Chunk(whole.Items, 30) { // a name may be in several pages
			w.add(Page[Claim]{At: noon, Items: items})
		}
		require.Len(t, w.claims, 2*many-1)
		want = append(want, Claimed{Name: name, Claims: many})
	}
	w.add(page("a", 1, 0)) // a server may list a name twice
	w.count()
	require.Equal(t, want[1:], w.node("n", reader.Node{}, nil).Holds)
	require.Equal(t, []Claimed{{Name: "a", Claims: 1}, {Name: "b", Claims: many - 1}, {Name: "c", Claims: many - 1}}, w.node("n", reader.Node{}, nil).Waits)
}
