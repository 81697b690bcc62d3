package app_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// knot is a circle of three: two locks and a semaphore. With owners each process gives one.
type knot struct {
	*embedded.Server
	last berth.Hold // the youngest
}

func tie(t *testing.T, owners bool) *knot {
	t.Helper()
	s := apptest.Server(t)
	ctx := context.Background()
	of := func(owner string) context.Context {
		if owners {
			return berth.WithOwner(ctx, owner)
		}
		return ctx
	}
	k := &knot{Server: s}
	var locks []apptest.Locks
	var sems []*semaphore.Semaphore
	for _, label := range []string{"vm/pay/1", "vm/pay/2", "vm/pay/3"} {
		locks = append(locks, apptest.LocksOf(t, s, node.Config{Label: label}))
		sems = append(sems, semaphore.New(apptest.NodeOf(t, s, node.Config{Label: label}), "gpu", 1, nil))
	}
	_, err := locks[0].Lock(of("order-1"), "a", nil)
	require.NoError(t, err)
	_, err = locks[1].Lock(of("order-2"), "b '", nil)
	require.NoError(t, err)
	k.last, err = sems[2].Acquire(of("order-3"), nil)
	require.NoError(t, err)
	go func() { _, _ = locks[0].Lock(of("order-1"), "b '", nil) }() // these end with their nodes
	go func() { _, _ = sems[1].Acquire(of("order-2"), nil) }()
	go func() { _, _ = locks[2].Lock(of("order-3"), "a", nil) }()
	apptest.WaitingFor(t, s, keyspace.Lock, "a")
	apptest.WaitingFor(t, s, keyspace.Lock, "b '")
	apptest.WaitingFor(t, s, keyspace.Sem, "gpu")
	return k
}

func TestExplainCycles(t *testing.T) {
	t.Parallel()
	k := tie(t, true)
	circle := `A circle, by owner: certain, as far as each owner does one thing after another.
  order-1 (vm/pay/1) has held lock "a" for *, and has waited * for lock "b '".
  order-2 (vm/pay/2) has held lock "b '" for *, and has waited * for semaphore "gpu".
  order-3 (vm/pay/3) has held semaphore "gpu" for *, and has waited * for lock "a".
  Nothing of it ends by itself.
  To end it, end the youngest hold, that of order-3 (vm/pay/3); its process goes on inside until it hears:
    berth sem release gpu ` + k.last.ID() + ` --force
Read: 3 names that somebody waits for.
`
	var got apptest.Result
	require.Eventually(t, func() bool { // each wait is noted beside it
		got = apptest.Call(t, k.URL(), "explain", "--cycles")
		return strings.Contains(got.Out, "Read: 3 names")
	}, apptest.Patience, 10*time.Millisecond)
	require.Equal(t, 1, got.Code, got.Err)
	lines := strings.Split(apptest.Settled(strings.ReplaceAll(got.Out, k.last.ID(), "ID")), "\n")
	circle = strings.ReplaceAll(circle, k.last.ID(), "ID")
	require.ElementsMatch(t, strings.Split(circle, "\n"), lines)

	var document struct {
		Namespace string
		Names     int
		Partial   bool
		Skipped   int
		Circles   []struct {
			By      string
			Certain bool
			Links   []struct {
				Actor, Kind, Name string
				Wait              struct{ ForMs, LeftMs *int64 }
				For, Holds        []struct {
					Kind, Name string
					Hold       struct {
						Claim         string
						ForMs, LeftMs *int64
					}
				}
			}
			Ends    []struct{}
			Release []struct {
				Name string
				Hold struct{ Claim string }
			}
			Behind int
		}
	}
	got = apptest.Call(t, k.URL(), "explain", "--cycles", "--json")
	require.Equal(t, 1, got.Code)
	require.NoError(t, json.Unmarshal([]byte(got.Out), &document))
	require.Equal(t, "berth", document.Namespace)
	require.Len(t, document.Circles, 1)
	c := document.Circles[0]
	require.True(t, c.Certain)
	require.Len(t, c.Links, 3)
	require.Equal(t, k.last.ID(), c.Release[0].Hold.Claim)
	require.NotNil(t, c.Links[0].Wait.LeftMs)
	require.Positive(t, *c.Links[0].For[0].Hold.LeftMs)
	require.NotNil(t, c.Ends, "not null")

	require.Zero(t, apptest.Call(t, k.URL(), "sem", "release", "gpu", k.last.ID(), "--force").Code)
	got = apptest.Call(t, k.URL(), "explain", "--cycles")
	require.Zero(t, got.Code)
	require.Contains(t, got.Out, "No circle was found.\n")
}

func TestACircleNamesEachProcess(t *testing.T) {
	t.Parallel()
	of := func(label, claim string) inspect.Held {
		return inspect.Held{Kind: keyspace.Lock, Name: "a", Hold: inspect.Blocker{Claim: claim, Node: "n-" + label, Label: label, For: time.Second}}
	}
	wait := of("inner", "w").Hold
	link := inspect.Link{Actor: "anna", Kind: keyspace.Lock, Name: "b", Wait: wait, Holds: []inspect.Held{of("outer", "h")}}
	require.Equal(t, `anna has held lock "a" (outer) for 1s, and has waited 1s for lock "b" (inner)`, app.LinkSays(link))
	link.Holds = append(link.Holds, of("inner", "i"))
	require.Equal(t, `anna has held lock "a" (outer) for 1s, lock "a" (inner) for 1s, and has waited 1s for lock "b" (inner)`, app.LinkSays(link))
	for claim, who := range map[string]string{"h": "it", "i": "outer"} {
		end := inspect.End{Event: inspect.Event{What: inspect.LeaseEnds, Claim: claim, If: []string{"n-outer"}, In: time.Second}, Kind: keyspace.Lock, Name: "a", Frees: true}
		require.Contains(t, app.EndSays(inspect.Circle{Links: []inspect.Link{link}, Ends: []inspect.End{end}}), "By itself: unless "+who+" is heard of, in 1s (")
	}
}

func TestExplainCyclesByLabel(t *testing.T) {
	t.Parallel()
	k := tie(t, false)
	require.Eventually(t, func() bool {
		return strings.Contains(apptest.Call(t, k.URL(), "explain", "--cycles").Out, "Read: 3 names")
	}, apptest.Patience, 10*time.Millisecond)
	got := apptest.Call(t, k.URL(), "explain", "--cycles")
	require.Zero(t, got.Code, "it is possible only")
	require.Contains(t, got.Out, "A circle, by label: possible; a process may wait in one goroutine and hold in another.\n  vm/pay/")
	require.Equal(t, 1, apptest.Call(t, k.URL(), "explain", "--cycles", "--loose").Code)
	got = apptest.Call(t, k.URL(), "explain", "--cycles", "--limit", "1", "--json")
	require.Contains(t, got.Out, `"by": "label"`)
}

func TestExplainCyclesOfNothing(t *testing.T) {
	t.Parallel()
	url := apptest.Server(t).URL()
	require.Equal(t, apptest.Outcome(0, "No circle was found.\nRead: 0 names that somebody waits for.\n", ""), apptest.Call(t, url, "explain", "--cycles"))
	got := apptest.Call(t, url, "explain", "--cycles", "--json")
	require.Contains(t, got.Out, `"circles": []`)
	got = apptest.Call(t, url, "explain", "--cycles", "--within", "1ns")
	require.Equal(t, 69, got.Code, "that nothing was read is not that there is nothing")
	require.Contains(t, got.Err, "waits: no answer in time")
	for args, says := range map[string]string{
		"":                      "say 'berth sem explain NAME', or lock, or pool",
		"gpu":                   "say 'berth sem explain NAME', or lock, or pool",
		"--cycles gpu":          "say 'berth sem explain NAME', or lock, or pool",
		"--cycles --within -1s": "invalid --within: -1s is not above 0",
		"--cycles --limit -1":   "invalid --limit: -1 is below 0",
	} {
		got := apptest.Call(t, url, append([]string{"explain"}, strings.Fields(args)...)...)
		require.Equal(t, 64, got.Code, args)
		require.Contains(t, got.Err, says)
	}
	require.Equal(t, 69, apptest.Call(t, apptest.Nobody, "explain", "--cycles").Code)
}

func TestAShellReadsWhatWasMeant(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"berth sem release gpu a.b --force": {"berth", "sem", "release", "gpu", "a.b", "--force"},
		"''":                                {""},
		"'a b' '$(rm)' '~' 'größe'":         {"a b", "$(rm)", "~", "größe"},
		`'it'\''s' 'a\b' '"x"'`:             {"it's", `a\b`, `"x"`},
		`$'\033[2J\342\200\256'`:            {"\x1b[2J\u202e"},
		`$'\377\047\134 a1'`:                {"\xff'\\ a1"},
	} {
		require.Equal(t, want, app.Shell(words...))
	}
}
