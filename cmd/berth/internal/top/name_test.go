package top

import (
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestANameOpensIntoItsClaims(t *testing.T) {
	p := atName(t, 80, 24)
	require.Equal(t, subject{topic: ofName, kind: keyspace.Sem, name: "gpu"}, p.fake.looks[1])
	p.shows("semaphore gpu", "full: 2 of 2 held, 2 waiting, the longest for 1m00s; 0s ago", "All of it is held. Nothing ends by itself.",
		"Held by 2 claims", "In line 2 claims", "> holds 1m00s 8s host/n1.a", " waits 1m00s 8s host/n4.d",
		"host/n1.a has held it for 1m00s, since 11:59:00 UTC; its process renews it")
	p.keys("down down")
	p.shows("> waits 1m00s 8s host/n3.c", "Claim n3.c waits for the others.")
	p.keys("enter")
	p.shows("Claim n3.c waits for the others.", "claim     n3.c", "node      n3", "priority  0")
	p.showsNot("Held by")
	p.keys("esc x")
	p.shows("All of it is held. Nothing ends by itself.")
	p.showsNot("Held by", "n3.c")
	p.keys("esc n")
	require.Equal(t, subject{topic: ofNode, node: "n3"}, p.fake.looks[2])
	p.shows("Claims of node n3", "Reading ...")
	p.keys("esc")
	require.Equal(t, subject{topic: ofName, kind: keyspace.Sem, name: "gpu"}, p.fake.looks[3])
	p.shows("> waits 1m00s 8s host/n3.c")
	p.keys("esc esc")
	p.shows("The most contended")
}

func TestAllThatIsKnownOfAClaimIsInLines(t *testing.T) {
	p := atName(t, 80, 24)
	l := looked(contended("gpu", 2), []string{"n1.a"}, nil)
	l.Holds[0].Meta = map[string]string{"b": "2\x1b[2J", "a": "1"}
	p.reads(l)
	p.keys("enter")
	p.shows(`claim n1.a node n1 label host/n1.a weight 1 fence 0 lease 10s metadata a=1 metadata b="2\x1b[2J"`)
}

func TestOfAPoolTheResourcesAreShown(t *testing.T) {
	p := begin(t, 80, 24)
	pool := of(keyspace.Pool, contended("proxies", 1))
	pool.Pool = &berth.PoolInfo{Resting: 1, Leaving: 1}
	p.names(pool)
	p.keys("enter")
	p.reads(looked(pool, []string{"n1.a"}, []string{"n3.c"},
		inspect.Resource{Key: "p1", Claims: []string{"n1.a"}, Max: 1, RestsThen: time.Minute, Leaving: true},
		inspect.Resource{Key: "p2\x1b[2J", Rests: berth.Forever, Reason: "banned\n"},
		inspect.Resource{Key: "p3", Damaged: true}, inspect.Resource{Key: "p4", Absent: true}))
	p.shows("0 free, 1 resting, 1 leaving", "Resources that are leased, waited for, resting or leaving",
		" p1 leased, leaves then 1m00s then host/n1.a", ` "p2\x1b[2J" resting forever - "banned\n"`)
	p.keys("G k k k")
	p.shows("Resource p1 is leased to 1 claim, of at most 1 at once. It then rests for 1m00s.", "It leaves the pool")
	p.keys("j")
	p.shows(`Resource "p2\x1b[2J" rests until somebody ends that. The reason: "banned\n".`)
	p.keys("j")
	p.shows("Resource p3 is damaged")
	p.keys("j")
	p.shows("Resource p4 is not in the pool.")
}

func TestBesideWideRowsStandsTheExplanation(t *testing.T) {
	p := atName(t, 200, 50)
	require.Regexp(t, `Held by 2 claims +\| host/n1.a has held it for 1m00s`, p.screen())
	require.Regexp(t, `> holds .*n1\.a +\| It ends in 8s`, p.screen())
}

// An action is about what was selected, however the list has moved since, and whatever stands in its row now.
func TestAListThatMovesUnderTheCursorChangesNoTarget(t *testing.T) {
	gpu := contended("gpu", 2)
	p := atName(t, 80, 24)
	p.keys("down")
	require.Contains(t, p.row(), "n2.b")
	p.reads(looked(gpu, []string{"n2.b", "n5.e"}, []string{"n3.c", "n4.d"})) // n1.a has ended, n5.e has come
	require.Contains(t, p.row(), "n2.b")
	p.keys("r")
	p.shows(`release claim "n2.b" of semaphore "gpu"`)
	p.reads(looked(gpu, []string{"n5.e"}, []string{"n3.c", "n4.d"})) // it ends while somebody types
	p.keys("'stuck' enter")
	p.shows(`Release claim "n2.b" of semaphore "gpu" by force.`, `The reason: "stuck"`)
	p.reads(looked(gpu, []string{"n6.f", "n5.e"}, nil))
	p.keys("y")
	require.Equal(t, []act.Action{{Verb: act.Release, Kind: keyspace.Sem, Name: "gpu", Claim: "n2.b", Reason: "stuck"}}, p.fake.done)
}

func TestAClaimThatHasEndedIsNotActedOn(t *testing.T) {
	gpu := contended("gpu", 2)
	p := atName(t, 80, 24)
	p.reads(looked(gpu, []string{"n2.b", "n5.e"}, []string{"n3.c"}))
	require.Regexp(t, `^> ended .*n1\.a`, p.row())
	p.shows("This is not there any more")
	for key, verb := range map[string]string{"r": "release", "d": "drain"} {
		p.keys(key)
		p.shows(verb + ": the selected one is not there any more; select another")
		require.Nil(t, p.form)
	}
	p.keys("down")
	require.Contains(t, p.row(), "n2.b", "what stands there now")
	p.showsNot("n1.a")
	p.keys("r enter y")
	require.Equal(t, "n2.b", p.fake.done[0].Claim)
}

// What was last read of a row that is gone is true no more: no process renews it, and nothing of it is left.
func TestARowThatIsGoneSaysNothingOfWhatItWas(t *testing.T) {
	gpu := contended("gpu", 2)
	for keys, ends := range map[string][]string{"": {"n2.b", "n3.c"}, "down down": {"n1.a", "n4.d"}} {
		p := atName(t, 120, 24)
		p.keys(keys)
		require.Regexp(t, "(holds|waits) 1m00s 8s host/n[13]", p.row())
		p.reads(looked(gpu, ends[:1], ends[1:]))
		require.Regexp(t, `^> ended 1m00s - host/(n[13]\.[ac]) - 1 - (n[13]\.[ac])$`, p.row())
		p.keys("enter")
		p.shows("It is not there any more.", "claim     n")
		p.showsNot("renew", "ends in", "waits for", "lease", "ahead")
	}

	p := begin(t, 120, 24)
	p.open(&nodeScreen{node: "n3"})
	claims := func(ids ...string) (n watch.Node) {
		for _, id := range ids {
			h := hold(id).Holder
			n.Claims.Items = append(n.Claims.Items, inspect.Claim{Kind: keyspace.Sem, Name: "gpu", Hold: &h})
		}
		return n
	}
	p.reads(claims("n3.a", "n3.b"))
	p.keys("home")
	require.Regexp(t, "^> sem gpu holds 1m00s 8s .*n3.a", p.row())
	p.reads(claims("n3.b"))
	require.Regexp(t, "^> sem gpu ended 1m00s - .*n3.a", p.row())
}

func TestAClaimThatIsGrantedStaysSelected(t *testing.T) {
	p := atName(t, 80, 24)
	p.keys("down down")
	p.reads(looked(contended("gpu", 2), []string{"n2.b", "n3.c"}, []string{"n4.d"}))
	require.Regexp(t, `^> holds .*n3\.c`, p.row())
}

func TestAClaimThatWasOpenedIsSelected(t *testing.T) {
	p := begin(t, 80, 24)
	p.names(contended("gpu", 1))
	p.open(&nodeScreen{node: "n3"})
	p.reads(watch.Node{Node: inspect.Node{ID: "n3", State: inspect.NodeZombie, Heard: inspect.Heard{At: noon.Add(-time.Minute)}}, Claims: watch.Claims{At: noon, Items: []inspect.Claim{
		{Kind: keyspace.Sem, Name: "gpu", Wait: &berth.Waiter{ID: "n3.c", Label: "host", Since: noon.Add(-time.Minute), Waited: time.Minute, Alive: time.Second}, Paused: 1},
		{Kind: keyspace.Lock, Name: "nightly", Hold: &berth.Holder{ID: "n3.x", Label: "host", Granted: noon.Add(-time.Hour), Held: time.Hour, Left: berth.Forever}},
		{Kind: keyspace.Sem, Name: "gpu", Wait: &berth.Waiter{ID: "n3.c", Label: "host", Since: noon.Add(-time.Minute), Waited: time.Minute, Alive: time.Second}},
	}}})
	p.shows("Heard of 1m0s ago, zombie; 3 claims, 0s ago", "> lock nightly", "forever", "waits, paused")
	p.keys("down enter")
	require.Equal(t, subject{topic: ofName, kind: keyspace.Sem, name: "gpu", claim: "n3.c"}, p.fake.looks[len(p.fake.looks)-1])
	p.reads(looked(contended("gpu", 1), []string{"n1.a"}, []string{"n2.b", "n3.c"}))
	require.Contains(t, p.row(), "n3.c")
	p.keys("esc esc")

	p.open(newName(keyspace.Sem, "gpu", "n8.far"))
	far := looked(contended("gpu", 1), []string{"n1.a"}, nil)
	far.WaitsLeft, far.Asked = 7, askedFor(inspect.Explanation{Claim: "n8.far", Why: "It is the 300th in line.", Reasons: []inspect.Reason{{Code: inspect.Full}}})
	p.reads(far)
	p.shows("In line 0 claims, and 7 more that were not read", "The claim that you came from", "It is the 300th in line.")
	p.keys("r enter y")
	require.Equal(t, "n8.far", p.fake.done[0].Claim)
	p.keys("d")
	require.Nil(t, p.form)
	p.shows("drain: the node of this claim is not known")
	p.keys("n")
	p.shows("the node of this claim is not known")
	require.Equal(t, ofName, p.top().subject().topic)
	far.Asked = askedFor(inspect.Explanation{Claim: "n8.far", Why: "It is not known.", Reasons: []inspect.Reason{{Code: inspect.Absent}}})
	p.reads(far)
	p.keys("r")
	require.Nil(t, p.form)
	p.keys("enter")
	p.shows("It is not known. It is not there any more.")
}

// A claim keeps its id when another process resumes it, or takes it over: the node is that of its record.
func TestTheNodeOfAClaimThatWasTakenOverIsThatOfItsRecord(t *testing.T) {
	taken, waits := hold("n8.far"), wait("n8.far")
	taken.Node, waits.Node, taken.Resource = "n9", "n9", "p1"
	for does, asked := range map[string]inspect.AskedClaim{"holds": {Hold: &taken}, "waits": {Wait: &waits}} {
		t.Run(does, func(t *testing.T) {
			p := begin(t, 80, 24)
			p.open(newName(keyspace.Pool, "proxies", "n8.far"))
			far := looked(of(keyspace.Pool, contended("proxies", 1)), []string{"n1.a"}, []string{"n2.b"})
			far.HoldsLeft, far.Asked = 7, map[string]inspect.AskedClaim{"n8.far": asked}
			p.reads(far)
			p.shows("The claim that you came from")
			require.Regexp(t, "^> "+does+" 1m00s 8s host/n8.far", p.row())
			p.keys("enter")
			p.shows("node      n9")
			p.keys("esc d enter enter")
			p.shows(`Drain node "n9"`)
			p.keys("esc n")
			require.Equal(t, subject{topic: ofNode, node: "n9"}, p.fake.looks[len(p.fake.looks)-1])
			p.keys("esc t")
			require.Equal(t, does == "holds", p.form != nil, "a resource")
		})
	}
}

// A name of a newer form, or a damaged one, has no counts and no rows, but an explanation.
func TestANameThatCannotBeReadIsExplained(t *testing.T) {
	p := begin(t, 80, 24)
	p.open(newName(keyspace.Sem, "gpu", ""))
	newer := watch.Name{Look: inspect.Look{
		Name:        berth.Name{Kind: keyspace.Sem, Name: "gpu", Err: fmt.Errorf("the form 9: %w", berth.ErrIncompatible)},
		Explanation: inspect.Explanation{Why: "It is of a newer Berth\x1b[2J.", Then: "Nothing is known of it."},
	}}
	p.reads(newer)
	says := []string{"this name cannot be read: the form 9: ", `It is of a newer Berth\x1b[2J. Nothing is known of it.`}
	p.shows(says...)
	p.showsNot("0 of 0 held", "Nobody", "nothing could be read", "Reading ...")
	p.keys("r")
	p.shows("release: select a claim")
	p.keys("x")
	p.shows(says...)

	p = atName(t, 80, 24)
	p.reads(newer)
	p.shows(says...)
	require.Regexp(t, "^> ended ", p.row())
	p.keys("r")
	require.Nil(t, p.form)
}

// askedFor is a claim that was asked for, of which no record was read.
func askedFor(e inspect.Explanation) map[string]inspect.AskedClaim {
	return map[string]inspect.AskedClaim{e.Claim: {Explanation: e}}
}

// knot is a cycle of two locks.
func knot(first, second string) inspect.Cycle {
	lock := func(name string, h *berth.Holder, w *berth.Waiter) inspect.Claim {
		return inspect.Claim{Kind: keyspace.Lock, Name: name, Hold: h, Wait: w}
	}
	a := lock(first, &berth.Holder{ID: "n1.a", Node: "n1", Label: "one", Owner: "jane", Held: time.Minute}, nil)
	b := lock(second, &berth.Holder{ID: "n2.b", Node: "n2", Label: "two", Owner: "bob", Held: time.Second}, nil)
	jane := lock(second, nil, &berth.Waiter{ID: "n1.w", Node: "n1", Label: "one", Since: noon.Add(-time.Minute), Waited: 53 * time.Second})
	bob := lock(first, nil, &berth.Waiter{ID: "n2.w", Node: "n2", Label: "two"})
	return inspect.Cycle{
		By: "owner", Certain: true, Behind: 3, Release: []inspect.Claim{b},
		Links: []inspect.Link{
			{Actor: "jane", Wait: jane, For: []inspect.Claim{b}, Holds: []inspect.Claim{a}},
			{Actor: "bob", Wait: bob, For: []inspect.Claim{a}, Holds: []inspect.Claim{b}},
		},
	}
}

func TestANameSaysItsCycleAndTheCommandsThatMend(t *testing.T) {
	gpu, cycle := bad("a", 2, berth.LevelStuck, inspect.InCycle), knot("a", "b")
	for _, namespace := range []string{"berth", "shop"} {
		p := begin(t, 80, 24)
		p.namespace, p.where = namespace, view.In(namespace)
		p.names(gpu)
		p.keys("enter")
		n := looked(gpu, []string{"n1.a"}, []string{"n2.w"})
		n.Explanation.Mend = []inspect.Mend{{Verb: "release", Kind: keyspace.Lock, Name: "a", Claim: "n1.a", If: "it is dead"}}
		n.At, n.Cycle = noon, &cycle
		p.reads(n)
		option := map[string]string{"shop": "--namespace shop "}[namespace]
		for _, keys := range []string{"", "x"} {
			p.keys(keys)
			p.shows("stuck: cycle: 2 of 2 held",
				`A cycle, by owner, certain, 7s ago: jane (one) has held lock "a" for 1m00s,`, `bob (two) has held lock "b" for 1s,`,
				"Nothing of it ends by itself.", "To mend it: berth lock release "+option+"b n2.b --force",
				"To mend it, if it is dead: berth lock release "+option+"a n1.a --force")
		}
		p.keys("esc")
		p.shows("> holds", "  waits")
	}
}

func TestCyclesAreShownAndOpened(t *testing.T) {
	p := begin(t, 80, 24)
	p.keys("c")
	p.reads(inspect.Cycles{At: noon, Names: 2})
	p.shows("0 cycles found among 2 names")
	p.reads(inspect.Cycles{At: noon, Names: 2, Cycles: []inspect.Cycle{knot("a", "b")}})
	p.shows("Cycle 1, by owner: certain", `> jane (one) has held lock "a" for 1m00s`, "Nothing of it ends by itself. Behind it: 3 claims more.",
		"To end it, release this hold, the youngest:", "held for 1s by bob")
	p.keys("end r enter")
	p.shows(`Release claim "n2.b" of lock "b" by force.`)
	p.keys("y")
	require.Equal(t, act.Action{Verb: act.Release, Kind: keyspace.Lock, Name: "b", Claim: "n2.b"}, p.fake.done[0])
	p.reads(inspect.Cycles{At: noon, Names: 2})
	p.shows("No longer of a cycle: ")
	p.keys("n")
	require.Equal(t, subject{topic: ofNode, node: "n2"}, p.fake.looks[len(p.fake.looks)-1])
	p.keys("esc enter")
	require.Equal(t, subject{topic: ofName, kind: keyspace.Lock, name: "b", claim: "n2.b"}, p.fake.looks[len(p.fake.looks)-1])
}

func TestAReadingOfWhatIsNoLongerShownIsDropped(t *testing.T) {
	p := atName(t, 80, 24)
	p.keys("esc")
	p.send(reading{subject: subject{topic: ofName, kind: keyspace.Sem, name: "gpu"}, seq: 9, value: looked(contended("gpu", 1), nil, nil), now: noon})
	require.Equal(t, []int{1, 2}, p.fake.nexts)
	require.Nil(t, p.send(tea.FocusMsg{}))
}
