package top

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// atPool is a model that shows a pool with a hold, a waiting claim and two resources.
func atPool(t *testing.T) *play {
	t.Helper()
	p := begin(t, 80, 24)
	pool := of(keyspace.Pool, contended("proxies", 1))
	pool.Pool = &berth.PoolInfo{}
	p.names(pool)
	p.keys("enter")
	p.reads(looked(pool, []string{"n1.a"}, []string{"n3.c"}, inspect.Resource{Key: "p1", Claims: []string{"n1.a"}, Max: 1}, inspect.Resource{Key: "p2", Rests: time.Minute}))
	return p
}

func TestEachActionIsAskedForToldAndConfirmed(t *testing.T) {
	sem := act.Action{Kind: keyspace.Sem, Name: "gpu"}
	pool := act.Action{Kind: keyspace.Pool, Name: "proxies"}
	with := func(a act.Action, change func(a *act.Action)) act.Action {
		change(&a)
		return a
	}
	for _, tt := range []struct {
		name, keys, will string
		pool             bool
		want             act.Action
	}{
		{"release", "down r 'a b' enter", `Release claim "n2.b"`, false, with(sem, func(a *act.Action) { a.Verb, a.Claim, a.Reason = act.Release, "n2.b", "a b" })},
		{"pause", "p '1h30m' enter enter", `Pause semaphore "gpu" for 1h30m.`, false, with(sem, func(a *act.Action) { a.Verb, a.For = act.Pause, 90*time.Minute })},
		{"pause for days", "p '1d' enter 'new disk' enter", `The reason: "new disk"`, false, with(sem, func(a *act.Action) { a.Verb, a.For, a.Reason = act.Pause, 24*time.Hour, "new disk" })},
		{"unpause", "u enter", `End the pause of semaphore "gpu".`, false, with(sem, func(a *act.Action) { a.Verb = act.Unpause })},
		{"resize", "z '4' enter enter enter", `Set the capacity of semaphore "gpu" to 4`, false, with(sem, func(a *act.Action) { a.Verb, a.Capacity = act.Resize, 4 })},
		{"resize for good", "z '4' enter 'y' enter 'more' enter", "for good.", false, with(sem, func(a *act.Action) { a.Verb, a.Capacity, a.Keep, a.Reason = act.Resize, 4, true, "more" })},
		{"rest of a hold's resource", "t '10m' enter 'banned' enter", `Let resource "p1" of pool "proxies" rest for 10m00s`, true, with(pool, func(a *act.Action) { a.Verb, a.Resource, a.For, a.Reason = act.Rest, "p1", 10*time.Minute, "banned" })},
		{"rest of a resource", "G t 'forever' enter 'banned' enter", `Let resource "p2" of pool "proxies" rest until somebody ends it`, true, with(pool, func(a *act.Action) { a.Verb, a.Resource, a.For, a.Reason = act.Rest, "p2", berth.Forever, "banned" })},
		{"end of a rest", "G t '0' enter enter", `End the rest of resource "p2"`, true, with(pool, func(a *act.Action) { a.Verb, a.Resource = act.Rest, "p2" })},
		{"drain", "down d enter enter enter", `Drain node "n2"`, false, act.Action{Verb: act.Drain, Node: "n2"}},
		{
			"drain by force", "down d '1h' enter '5m' enter 'down' enter", "ended by force", false,
			act.Action{Verb: act.Drain, Node: "n2", For: time.Hour, Force: true, ForceAfter: 5 * time.Minute, Reason: "down"},
		},
		{"undrain", "down D enter", `End the drain of node "n2"`, false, act.Action{Verb: act.Undrain, Node: "n2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := func() *play {
				if tt.pool {
					return atPool(t)
				}
				return atName(t, 80, 24)
			}
			p := at()
			p.keys(tt.keys)
			p.shows(tt.will, "Do this? Type y to do it.")
			require.Empty(t, p.fake.done)
			p.keys("y")
			require.Equal(t, []act.Action{tt.want}, p.fake.done)
			p.shows("1 action under way", "under way")
			p.send(outcome{action: tt.want, done: "so it is"})
			p.shows(string(tt.want.Verb)+" ", ": so it is")
			p.showsNot("action under way")
			p.send(tick(noon.Add(time.Second)))
			p.shows(": so it is")
			p.keys("down")
			p.showsNot(": so it is")
			for _, no := range []string{"n", "esc", "enter", "f1", "'x'"} {
				p := at()
				p.keys(tt.keys + " " + no)
				require.Empty(t, p.fake.done)
				p.shows("nothing was done")
				p.keys("y")
				require.Empty(t, p.fake.done)
			}
		})
	}
}

// A resource that one claim holds stands for that claim.
func TestTheKeysOfAClaimTakeTheOneThatHoldsTheResource(t *testing.T) {
	pool := of(keyspace.Pool, contended("proxies", 1))
	pool.Pool = &berth.PoolInfo{}
	at := func(claims ...string) *play {
		p := atPool(t)
		l := looked(pool, []string{"n1.a", "n2.b"}, []string{"n3.c"}, inspect.Resource{Key: "p0"}, inspect.Resource{Key: "p1", Claims: claims, Max: 2})
		l.Holds[1].Node = "n9" // it was taken over
		p.reads(l)
		p.keys("G")
		require.Contains(t, p.row(), "p1")
		return p
	}
	p := at("n2.b")
	p.keys("r enter y d enter enter enter y D enter y t '5m' enter 'banned' enter y")
	require.Equal(t, []act.Action{
		{Verb: act.Release, Kind: keyspace.Pool, Name: "proxies", Claim: "n2.b"},
		{Verb: act.Drain, Node: "n9"},
		{Verb: act.Undrain, Node: "n9"},
		{Verb: act.Rest, Kind: keyspace.Pool, Name: "proxies", Resource: "p1", For: 5 * time.Minute, Reason: "banned"},
	}, p.fake.done)
	p.keys("n")
	require.Equal(t, subject{topic: ofNode, node: "n9"}, p.top().subject())

	for _, claims := range [][]string{nil, {"n1.a", "n2.b"}} {
		for _, key := range []string{"r", "d", "D", "n"} {
			p := at(claims...)
			p.keys(key)
			p.shows("select a claim")
			require.Nil(t, p.form)
			require.Len(t, p.screens, 2)
		}
	}
	p = at("n7.unread")
	p.keys("d")
	p.shows("drain: the node of this claim is not known")
	p.keys("r")
	p.shows(`release claim "n7.unread" of pool "proxies"`)
}

func TestWhatCannotBeIsAskedForAgain(t *testing.T) {
	for _, tt := range []struct {
		keys, says string
		pool       bool
	}{
		{"p enter", "! this is not a time such as 90s", false},
		{"p 'soon' enter", "! this is not a time such as 90s", false},
		{"p '0' enter", "! it is above 0", false},
		{"p '-5m' enter", "! it is above 0", false},
		{"p 'forever' enter", "! this is not a time", false},
		{"p '400d' enter enter", "! a pause lasts above 0, at most 366d00h", false},
		{"z 'four' enter", "! this is not a whole number", false},
		{"z '0' enter enter enter", "! 0 is below 1", false},
		{"z '4' enter 'maybe' enter", "! type y or n", false},
		{"d '-5m' enter", "! it is above 0; enter alone is until it is ended", false},
		{"d enter '-5m' enter", "! it is above 0; enter alone is never", false},
		{"t '5m' enter enter", "! a rest needs one", true},
	} {
		t.Run(tt.keys, func(t *testing.T) {
			p := atName(t, 80, 24)
			if tt.pool {
				p = atPool(t)
			}
			p.keys(tt.keys)
			p.shows(tt.says)
			p.keys("y")
			require.Empty(t, p.fake.done)
		})
	}
}

func TestWhatIsTypedAfterARefusalReplacesTheLine(t *testing.T) {
	for _, tt := range []struct{ keys, line string }{
		{"", "soon"},
		{"'5m'", "5m"},
		{"enter '5m'", "5m"},
		{"backspace", "soo"},
		{"backspace 'n'", "soon"},
		{"left 'er'", "sooner"},
		{"right 'er'", "sooner"},
		{"up '5m'", "soon5m"},
		{"ctrl+u", ""},
		{"ctrl+u '1h'", "1h"},
	} {
		t.Run(tt.keys, func(t *testing.T) {
			p := atName(t, 80, 24)
			p.keys("p 'soon' enter " + tt.keys)
			p.shows("> " + tt.line + "_")
		})
	}
	p := atName(t, 80, 24)
	p.keys("p 'soon' enter")
	p.send(tea.PasteMsg{Content: "5m"})
	p.shows("> 5m_")
	p.showsNot("! this is not a time")
}

func TestAnOutcomeIsToldWhateverIsShown(t *testing.T) {
	p := atName(t, 80, 24)
	p.keys("d enter enter enter y")
	p.shows("drain of node n1 is under way; it stays in force until it is ended by D", "1 action under way")
	p.keys("esc p")
	drain := act.Action{Verb: act.Drain, Node: "n1"}
	p.send(outcome{action: drain, done: `node "n1": 1 hold left`, err: errors.New("broken\x1b[2J")})
	p.shows("To pause", `drain n1: node "n1": 1 hold left; broken\x1b[2J`)
	p.keys("'5m'")
	p.shows(`broken\x1b[2J`, "> 5m_")
	p.keys("esc")
	p.showsNot("broken")
	p.send(outcome{action: act.Action{Verb: act.Pause, Kind: keyspace.Sem, Name: "a\nb"}, err: context.DeadlineExceeded})
	p.shows(`pause "a\nb": not done: context deadline exceeded`)
}

// Somebody who ends a drain sees both what has come of that and what the drain came to, whichever comes first; the
// drain has not failed.
func TestADrainThatIsEndedFromHereHasNotFailed(t *testing.T) {
	drain, undrain := act.Action{Verb: act.Drain, Node: "n1"}, act.Action{Verb: act.Undrain, Node: "n1"}
	stop := outcome{drain, `node "n1": 1 left`, &berth.OvertakenError{Changed: "stop"}}
	ended := outcome{action: undrain, done: `node "n1": the drain has ended`}
	failed := outcome{action: undrain, err: errors.New("broken")}
	again := outcome{drain, `node "n1": 1 left`, &berth.OvertakenError{Changed: "drain"}}
	fails := outcome{drain, `node "n1": 2 left`, errors.New("broken")}
	const is, was = `undrain n1: node "n1": the drain has ended`, `drain n1: node "n1": 1 left`
	for name, tt := range map[string]struct {
		keys  string
		comes []outcome
		says  string
		bad   bool
	}{
		"the end first":       {"d enter enter enter y D enter y", []outcome{ended, stop}, is + "; " + was + "; ended by D", false},
		"the drain first":     {"d enter enter enter y D enter y", []outcome{stop, ended}, is + "; " + was + "; ended by D", false},
		"an end that fails":   {"d enter enter enter y D enter y", []outcome{failed, stop}, "undrain n1: not done: broken; " + was + "; changed by another call meanwhile: stop", true},
		"one that fails late": {"d enter enter enter y D enter y", []outcome{stop, failed}, "undrain n1: not done: broken; " + was + "; ended by D", true},
		"by somebody else":    {"d enter enter enter y", []outcome{stop}, was + "; changed by another call meanwhile: stop", true},
		"an end before it":    {"D enter y d enter enter enter y", []outcome{ended, stop}, is + "; " + was + "; changed by another call meanwhile: stop", true},
		"of another node":     {"d enter enter enter y down D enter y", []outcome{stop}, was + "; changed by another call meanwhile: stop", true},
		"another drain":       {"d enter enter enter y D enter y", []outcome{ended, again}, is + "; " + was + "; changed by another call meanwhile: drain", true},
		"a drain that fails":  {"d enter enter enter y D enter y", []outcome{ended, fails}, is + `; drain n1: node "n1": 2 left; broken`, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := atName(t, 80, 24)
			p.keys(tt.keys)
			for _, o := range tt.comes {
				p.send(o)
			}
			require.Equal(t, tt.says, p.status)
			require.Equal(t, tt.bad, p.bad)
			p.shows(tt.says)
		})
	}

	p := atName(t, 80, 24)
	p.keys("d enter enter enter y D enter y")
	p.send(ended)
	p.keys("down") // it was read
	p.send(stop)
	require.Equal(t, was+"; ended by D", p.status)
	p.keys("down")
	p.send(outcome{action: act.Action{Verb: act.Pause, Kind: keyspace.Sem, Name: "gpu"}, done: "paused"})
	p.send(stop)
	p.shows("pause gpu: paused; " + was)
}

// What comes after the end of the program is printed: an end of a drain tells what has become of the drain.
func TestADrainThatWasEndedDoesNotStayInForce(t *testing.T) {
	drain, undrain := act.Action{Verb: act.Drain, Node: "n1"}, act.Action{Verb: act.Undrain, Node: "n1"}
	left := outcome{drain, `node "n1": 1 left`, context.Canceled}
	const stays = "berth: the drain of node n1 stays in force; 'berth drain --node n1 --stop' ends it\n"
	for name, tt := range map[string]struct {
		keys   string
		unsaid []outcome
		says   string
	}{
		"a drain": {"d enter enter enter y", []outcome{left}, stays},
		"ended": {
			"d enter enter enter y D enter y",
			[]outcome{left, {action: undrain, done: "it has ended"}},
			"berth: undrain n1: it has ended\nberth: drain n1: node \"n1\": 1 left; ended by D\n",
		},
		"not ended": {
			"d enter enter enter y D enter y",
			[]outcome{left, {action: undrain, err: errNotBegun}},
			"berth: undrain n1: not done: the program has ended before it began\n" + stays,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := atName(t, 80, 24)
			p.keys(tt.keys)
			var out strings.Builder
			p.last(&out, tt.unsaid)
			require.Equal(t, tt.says, out.String())
		})
	}
}

func TestPastedTextIsMadeHarmless(t *testing.T) {
	p := atName(t, 80, 24)
	p.send(tea.PasteMsg{Content: "y"})
	p.keys("r")
	p.send(tea.PasteMsg{Content: "up\x1b[2J\nenter\u202ey"})
	p.shows("> up[2Jentery_")
	p.send(tea.PasteMsg{Content: strings.Repeat("é", 400)})
	p.keys("enter")
	require.Len(t, p.form.asks, 1)
	p.shows("Do this?")
	p.send(tea.PasteMsg{Content: "y"})
	require.Empty(t, p.fake.done, "a confirmation is typed")
	p.keys("y")
	require.LessOrEqual(t, len(p.fake.done[0].Reason), 512)
	require.True(t, strings.HasPrefix(p.fake.done[0].Reason, "up[2Jenteryéé"))
}

func TestNothingIsDoneThatIsNotShown(t *testing.T) {
	p := atName(t, 80, 24)
	p.keys("p '5m' enter enter")
	p.send(tea.WindowSizeMsg{Width: 39, Height: 24})
	p.shows("The window is too small")
	p.keys("y")
	require.Empty(t, p.fake.done)
	p.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	p.keys("y")
	require.Len(t, p.fake.done, 1)

	p = begin(t, 80, 24)
	long := contended(strings.Repeat("name ", 100), 1)
	p.names(long)
	p.keys("p '5m' enter enter")
	p.send(tea.WindowSizeMsg{Width: 40, Height: 10})
	p.keys("y")
	require.Empty(t, p.fake.done)
	p.shows("make the window larger")
	p.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	p.keys("y")
	require.Len(t, p.fake.done, 1)
}

func TestAConfirmationSaysWhoseHoldItEndsAndWhoGetsIt(t *testing.T) {
	hold := berth.Holder{ID: "n2.b", Node: "n2", Owner: "eva", Label: "host/2", Held: 90 * time.Second}
	claim := inspect.Claim{Kind: keyspace.Sem, Name: "gpu", Hold: &hold}
	p := atName(t, 80, 24)
	p.fake.knows = nil
	p.keys("down r enter")
	p.shows("Reading ...")
	p.keys("y")
	require.NotNil(t, p.form)
	require.Len(t, p.fake.asked, 1)
	p.fake.knows = &act.Known{Claim: claim, Heirs: []berth.Waiter{{Owner: "bert", Waited: time.Minute}, {}}, Waiting: 2}
	p.send(nil)
	p.shows(`by force: owner "eva" (label "host/2") has held it for 1m30s. Owner "bert", who has waited for 1m00s, gets it, and 1 more get something.`)
	p.keys("y")
	require.Len(t, p.fake.done, 1)

	p.keys("w enter")
	p.shows(`Ask for claim "n2.b" of semaphore "gpu" back: owner "eva" (label "host/2") has held it`, "Nothing ends")
	p.keys("y")
	require.Equal(t, act.Want, p.fake.done[1].Verb)

	p.fake.err = fmt.Errorf("it has ended: %w", berth.ErrNotHeld)
	p.keys("r enter")
	p.shows("release gpu: not done: it has ended")
	require.Nil(t, p.form)

	p = atName(t, 80, 24) // what is late is of no action any more
	p.fake.knows = nil
	p.keys("down r enter esc w")
	p.fake.knows = &act.Known{Claim: claim}
	p.keys("enter")
	p.shows("Ask for claim")
}

// What is confirmed is read again: a claim that waited, and holds now, is not ended by that.
func TestAnActionIsNotDoneToWhatDoesSomethingElseNow(t *testing.T) {
	t.Parallel()
	s := jam(t)
	redis := apptest.Got(s.Client())(t)
	defer redis.Close()
	watcher := watch.New(apptest.Got(inspect.New(redis, inspect.Config{}))(t), nil)
	defer watcher.Close()
	l := newLive(t.Context(), watcher, act.New(redis, node.Config{}), "")
	held, waits := apptest.HoldersOf(t, s, keyspace.Sem, "gpu")[0], apptest.WaitersOf(t, s, keyspace.Sem, "gpu")[0]
	about := func(claim string) stands {
		return l.about(act.Action{Verb: act.Release, Kind: keyspace.Sem, Name: "gpu", Claim: claim})().(stands)
	}
	first, next := about(held.ID), about(waits.ID)
	require.Equal(t, []string{"holds", "waits"}, []string{first.known.Does(), next.known.Does()})
	require.Equal(t, waits.ID, first.known.Heirs[0].ID)
	require.NoError(t, l.do(first)().(outcome).err)
	require.ErrorIs(t, l.do(first)().(outcome).err, berth.ErrNotHeld)
	require.ErrorContains(t, l.do(next)().(outcome).err, "it holds")
	require.Equal(t, waits.ID, apptest.HoldersOf(t, s, keyspace.Sem, "gpu")[0].ID)
}

// The library drops what is to be done when the program ends in the same moment.
func TestAnActionThatIsNeverBegunIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t.Context(), nil, nil, "")
		pause := act.Action{Verb: act.Pause, Kind: keyspace.Sem, Name: "gpu"}
		late := l.do(stands{action: pause})
		require.Equal(t, []outcome{{action: pause, err: errNotBegun}}, l.end())
		require.Nil(t, late(), "it is not done after that was said")
	})
}

// An action that has begun is waited for, and only that one is done.
func TestAnActionThatHasBegunIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t.Context(), nil, nil, "")
		l.do(stands{action: act.Action{Verb: act.Pause, Kind: keyspace.Sem, Name: "gpu"}})
		require.True(t, l.begin(1))
		var said []outcome
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			said = l.end()
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Fatal("it was not waited for")
		default:
		}
		l.doing.Done()
		<-ended
		require.Empty(t, said)
	})
}
