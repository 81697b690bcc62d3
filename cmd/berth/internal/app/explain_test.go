package app_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// explained runs explain, and leaves out what is never the same twice.
func explained(t *testing.T, url string, args ...string) apptest.Result {
	t.Helper()
	got := apptest.Call(t, url, args...)
	lines := strings.Split(apptest.Settled(got.Out), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	got.Out = strings.Join(lines, "\n")
	return got
}

func TestExplain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	url := s.URL()
	sem := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "alpha"}), "gpu", 2, semaphore.Config{})
	first := apptest.Got(sem.Acquire(apptest.Owned("order 66\x1b[2J"), nil))(t)
	require.Equal(t, apptest.Outcome(0, "Nobody waits for semaphore \"gpu\": 1 of 2 is free.\n", ""), explained(t, url, "sem", "explain", "gpu"))
	apptest.Got(sem.Acquire(ctx, &semaphore.AcquireOptions{Lease: berth.Forever}))(t)
	other := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "beta"}), "gpu", 2, semaphore.Config{})
	go func() { _, _ = other.Acquire(ctx, nil) }() // ends with the node
	waiter := apptest.WaitingFor(t, s, keyspace.Sem, "gpu")

	held := `all 2 are held; alpha has held it for * and renews it (heard of * ago), and 1 other holds the rest.
Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in *.

DOES LABEL OWNER NODE FENCE FOR LEFT PROCESS HEARD CLAIM
holds alpha "order 66\x1b[2J" ITS_NODE * * * renewing * *
holds alpha - ITS_NODE * * forever endless * *
`
	held = strings.ReplaceAll(held, "ITS_NODE", first.Node())
	require.Equal(t, apptest.Outcome(0, `1 waits for semaphore "gpu", beta first (*): `+held, ""), explained(t, url, "sem", "explain", "gpu"))
	require.Equal(t, apptest.Outcome(0, `beta has waited * for semaphore "gpu": `+held, ""), explained(t, url, "sem", "explain", "gpu", waiter))
	require.Equal(t, apptest.Outcome(0, "alpha has held semaphore \"gpu\" for * and renews it (heard of * ago).\nNothing ends by itself: alpha renews.\n", ""),
		explained(t, url, "sem", "explain", "gpu", first.ID()))

	for _, args := range [][]string{{"sem", "explain", "cpu"}, {"lock", "explain", "gpu"}, {"pool", "explain", "gpu"}, {"sem", "explain", "gpu", "x"}} {
		got := apptest.Call(t, url, args...).Ends(t, 1, args)
		require.Regexp(t, ` is (not )?known`, got.Out)
		require.Empty(t, got.Err)
	}
	require.Equal(t, 69, apptest.Call(t, apptest.Nobody, "sem", "explain", "gpu").Code)
}

func TestExplainAPool(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a", apptest.Wild)
	apptest.Got(pool.Allocate(ctx, &allocator.AllocateOptions{Resource: apptest.Wild}))(t)
	beta := apptest.PoolOf(t, s, "proxies", node.Config{Label: "beta"})
	go func() { _, _ = beta.Allocate(ctx, &allocator.AllocateOptions{Resource: apptest.Wild}) }() // ends with the node
	waiter := apptest.WaitingFor(t, s, keyspace.Pool, "proxies")
	got := explained(t, s.URL(), "pool", "explain", "proxies")
	require.Equal(t, `1 waits for pool "proxies", beta first (*): it wants only "c\x1b[2J\xff", which host/one/1 has held for * and renews (heard of * ago).
Nothing ends by itself: host/one/1 renews. If it is not heard of again, beta gets it in *.
`, got.Out)

	text := apptest.Call(t, s.URL(), "pool", "explain", "proxies", "--json").Out
	require.Contains(t, text, `"resourceBase64": "YxtbMkr/"`)
	e := apptest.Read[inspect.Explanation](t, text)
	require.Equal(t, berth.Ref{Kind: keyspace.Pool, Name: "proxies"}, berth.Ref{Kind: e.Kind, Name: e.Name})
	require.Contains(t, e.Why, `it wants only "c\x1b[2J\xff", which`)
	require.Equal(t, inspect.OneHeld, e.Reasons[0].Code)
	require.Equal(t, apptest.Wild, e.Reasons[0].Resource)
	require.Len(t, e.Blockers, 1)
	holder := e.Blockers[0].Hold
	require.Equal(t, apptest.Wild, holder.Resource)
	require.Positive(t, holder.Left)
	require.Equal(t, inspect.Renewing, e.Blockers[0].Process)
	require.False(t, e.Blockers[0].Heard.At.Before(holder.Granted))
	require.Nil(t, e.Next)
	require.Positive(t, e.IfSilent.In)
	require.Equal(t, []string{waiter}, e.IfSilent.Grants)
	require.Equal(t, apptest.Wild, e.IfSilent.Resource)
}

// knot is a cycle of three: two locks and a semaphore. With owners each process gives one.
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
		sems = append(sems, semaphore.New(apptest.NodeOf(t, s, node.Config{Label: label}), "gpu", 1, semaphore.Config{}))
	}
	apptest.Got(locks[0].Lock(of("order-1"), "a", nil))(t)
	apptest.Got(locks[1].Lock(of("order-2"), "b '", nil))(t)
	k.last = apptest.Got(sems[2].Acquire(of("order-3"), nil))(t)
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
	cycle := `A cycle, by owner: certain, as far as each owner does one thing after another.
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
		got = apptest.Call(t, k.URL(), "cycles")
		return strings.Contains(got.Out, "Read: 3 names")
	}, apptest.Patience, 10*time.Millisecond)
	require.Equal(t, 1, got.Code, got.Err)
	lines := strings.Split(apptest.Settled(strings.ReplaceAll(got.Out, k.last.ID(), "ID")), "\n")
	require.ElementsMatch(t, strings.Split(strings.ReplaceAll(cycle, k.last.ID(), "ID"), "\n"), lines)

	require.Zero(t, apptest.Call(t, k.URL(), "sem", "release", "gpu", k.last.ID(), "--force").Code)
	require.Contains(t, apptest.Call(t, k.URL(), "cycles").Ends(t, 0).Out, "No cycle was found.\n")
}

func TestANameInACycleSaysSo(t *testing.T) {
	t.Parallel()
	k := tie(t, true)
	explain := func(args ...string) string {
		got := apptest.Call(t, k.URL(), append([]string{"lock", "explain"}, args...)...)
		stuck := strings.Contains(got.Out, "It is in a cycle") || strings.Contains(got.Out, `"certain": true`)
		return got.Ends(t, map[bool]int{true: 1}[stuck]).Out
	}
	var told string
	require.Eventually(t, func() bool { // each wait is noted beside it
		told = explain("a")
		return strings.Contains(told, "It is in a cycle")
	}, apptest.Patience, 10*time.Millisecond)
	lines := strings.Split(apptest.Settled(strings.ReplaceAll(told, k.last.ID(), "ID")), "\n")
	require.Equal(t, "It is in a cycle, by owner: certain, as far as each owner does one thing after another.", lines[2])
	require.ElementsMatch(t, []string{
		`  order-1 (vm/pay/1) has held lock "a" for *, and has waited * for lock "b '".`,
		`  order-2 (vm/pay/2) has held lock "b '" for *, and has waited * for semaphore "gpu".`,
		`  order-3 (vm/pay/3) has held semaphore "gpu" for *, and has waited * for lock "a".`,
	}, lines[3:6])
	require.Equal(t, []string{"  Nothing of it ends by itself.", "    berth sem release gpu ID --force", ""}, slices.Delete(lines[6:], 1, 2))
	waiter := apptest.WaitingFor(t, k.Server, keyspace.Lock, "a")
	require.Eventually(t, func() bool { return strings.Contains(explain("a", waiter), "It is in a cycle, by owner") }, apptest.Patience, 10*time.Millisecond)
	type document struct {
		inspect.Explanation
		Cycle        *inspect.Cycle `json:"cycle"`
		CyclePartial bool           `json:"cyclePartial"`
	}
	var d document
	require.Eventually(t, func() bool { // the search ends after a second
		d = apptest.Read[document](t, explain("a", "--json"))
		return d.Cycle != nil
	}, apptest.Patience, 10*time.Millisecond)
	require.Len(t, d.Cycle.Links, 3)
	require.Equal(t, []any{"a", false, "owner"}, []any{d.Name, d.CyclePartial, d.Cycle.By})

	locks, beside := apptest.LocksOf(t, k.Server, node.Config{Label: "delta"}), apptest.LocksOf(t, k.Server, node.Config{Label: "echo"})
	for _, name := range []string{"other", "newer"} {
		apptest.Got(locks.Lock(context.Background(), name, nil))(t)
		go func() { _, _ = beside.Lock(context.Background(), name, nil) }() // ends with the node
		apptest.WaitingFor(t, k.Server, keyspace.Lock, name)
	}
	require.NotContains(t, explain("other"), "cycle")
	require.NotContains(t, explain("other", "--json"), "cycle")
	client := apptest.Got(k.Client(apptest.Patiently))(t)
	defer client.Close()
	newer := client.B().Arbitrary("HSET", "berth:lock:{newer}:state", "v", "4 and new words").Build()
	require.NoError(t, client.Do(t.Context(), newer).Error())
	require.Eventually(t, func() bool {
		return strings.Contains(explain("other"), "\nNo cycle was found that it is in, but not all was read.\n")
	}, apptest.Patience, 10*time.Millisecond)
	require.Contains(t, explain("other", "--json"), `"cyclePartial": true`)
	require.Eventually(t, func() bool { return strings.Contains(explain("a"), "It is in a cycle, by owner") }, apptest.Patience, 10*time.Millisecond)
}

func TestExplainCyclesByLabel(t *testing.T) {
	t.Parallel()
	k := tie(t, false)
	require.Eventually(t, func() bool {
		return strings.Contains(apptest.Call(t, k.URL(), "cycles").Out, "Read: 3 names")
	}, apptest.Patience, 10*time.Millisecond)
	got := apptest.Call(t, k.URL(), "cycles").Ends(t, 0, "it is possible only")
	require.Contains(t, got.Out, "A cycle, by label: possible; a process may wait in one goroutine and hold in another.\n  vm/pay/")
	require.Equal(t, 1, apptest.Call(t, k.URL(), "cycles", "--loose").Code)
	require.Contains(t, apptest.Call(t, k.URL(), "lock", "explain", "a").Ends(t, 0).Out, "It may be in a cycle, by label: possible;")
	require.Contains(t, apptest.Call(t, k.URL(), "cycles", "--limit", "1", "--json").Out, `"by": "label"`)
}

func TestExplainCyclesOfNothing(t *testing.T) {
	t.Parallel()
	url := apptest.Server(t).URL()
	require.Equal(t, apptest.Outcome(0, "No cycle was found.\nRead: 0 names that somebody waits for.\n", ""), apptest.Call(t, url, "cycles"))
	require.Contains(t, apptest.Call(t, url, "cycles", "--json").Out, `"cycles": []`)
	got := apptest.Call(t, url, "cycles", "--within", "1ns")
	require.Equal(t, 69, got.Code, "that nothing was read is not that there is nothing")
	require.Contains(t, got.Err, "waits: no answer in time")
	require.Equal(t, 69, apptest.Call(t, apptest.Nobody, "cycles").Code)
}

// TestExplainEndsWithTheCommandThatMends has bash read each command, and berth run what bash has read.
func TestExplainEndsWithTheCommandThatMends(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	mends := func(stuck int, want string, args ...string) {
		t.Helper()
		explain := func(code int) string { return apptest.Call(t, s.URL(), args...).Ends(t, code).Out }
		lines := strings.Split(strings.TrimSuffix(explain(stuck), "\n"), "\n")
		require.Contains(t, lines[1:], want)
		_, command, _ := strings.Cut(want, ": ")
		words := apptest.Got(exec.Command("bash", "-c", `berth() { printf '%s\0' "$@"; }; `+command).Output())(t)
		apptest.Call(t, s.URL(), strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")...).Ends(t, 0, command)
		require.NotContains(t, explain(0), want)
	}
	locks := apptest.LocksOf(t, s, node.Config{Label: "alpha"})
	hold := apptest.Got(locks.Lock(ctx, "-it's", &qlock.LockOptions{Lease: berth.Forever}))(t)
	apptest.Call(t, s.URL(), "lock", "pause", "--for", "1h", "--", "-it's").Ends(t, 0)
	here := []string{"lock", "explain", "--redis=" + s.URL(), "--namespace", "berth", "--", "-it's"}
	require.Contains(t, apptest.Call(t, "", here...).Ends(t, 0).Out, "berth lock unpause --redis 'redis://127.0.0.1:", "it means the same server")
	mends(0, `To mend it: berth lock unpause -- '-it'\''s'`, "lock", "explain", "--", "-it's")
	forgotten := `To mend it, if the process of alpha is dead: berth lock release --force -- '-it'\''s' ` + hold.ID()
	require.Contains(t, apptest.Call(t, s.URL(), "lock", "explain", "--", "-it's", hold.ID()).Out, forgotten)
	mends(0, forgotten, "lock", "explain", "--", "-it's")

	pool := apptest.Filled(t, s, "proxies", apptest.Wild)
	require.NoError(t, pool.Rest(ctx, apptest.Wild, berth.Forever, "banned", nil))
	mends(1, `To mend it, if it is fit for use: berth pool rest proxies $'c\033[2J\377' --for 0`, "pool", "explain", "proxies")

	waits := apptest.PoolOf(t, s, "new", node.Config{})
	go func() { _, _ = waits.Allocate(ctx, &allocator.AllocateOptions{Resource: "-a\x00"}) }() // ends with the node
	apptest.WaitingFor(t, s, keyspace.Pool, "new")
	mends(1, `To mend it: berth pool add new '"-a\x00"' --quoted`, "pool", "explain", "new")
	require.Contains(t, apptest.Call(t, s.URL(), "pool", "explain", "proxies", "--json").Out, `"mend": []`)
}

func TestWhatIsExplainedAndShownOfANameOfSeveralKinds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	call := func(code int, args ...string) string {
		return apptest.Call(t, s.URL(), args...).Ends(t, code, args).Out
	}
	for _, verb := range []string{"explain", "show"} {
		got := apptest.Call(t, s.URL(), verb, "gpu").Ends(t, 1)
		require.Empty(t, got.Out)
		require.Contains(t, got.Err, `no semaphore, lock or pool "gpu" in namespace "berth" is in use`)
		require.JSONEq(t, `{"namespace": "berth", "items": []}`, call(1, verb, "gpu", "--json"))
	}
	hold := apptest.Got(apptest.LocksOf(t, s, node.Config{Label: "alpha"}).Lock(ctx, "gpu", nil))(t)
	pool := apptest.Filled(t, s, "gpu", "a")
	require.Regexp(t, `^lock gpu\nNobody waits for lock "gpu": alpha has held it .*\n\npool gpu\nNobody waits for pool "gpu": 1 of 1 resource is free.\n$`, apptest.Settled(call(0, "explain", "gpu")))
	require.Regexp(t, `^lock gpu\ngpu: held for [^$]*\n\npool gpu\ngpu: 1 resource, 1 free, .*\n$`, call(0, "show", "gpu"))
	require.NotContains(t, call(0, "explain", "gpu", hold.ID()), "pool")
	require.NotContains(t, call(0, "show", "gpu", "--kind", "pool"), "lock")
	require.Contains(t, call(1, "explain", "gpu", "--kind", "sem"), `No semaphore "gpu" is known`)
	require.Contains(t, call(1, "show", "gpu", "--kind", "sem", "--json"), `"kind": "sem"`)

	require.NoError(t, pool.Rest(ctx, "a", berth.Forever, "banned", nil))
	require.Contains(t, call(1, "explain", "gpu"), "berth pool rest gpu a --for 0", "one of them is stuck")
	require.Contains(t, call(1, "explain", "gpu", "--json"), `"level": "stuck"`)
	call(0, "explain", "gpu", "--kind", "lock")
	client := apptest.Got(s.Client(apptest.Patiently))(t)
	defer client.Close()
	require.NoError(t, client.Do(ctx, client.B().Set().Key("berth:sem:{gpu}:state").Value("somebody else's").Build()).Error())
	require.Contains(t, call(65, "explain", "gpu"), "semaphore gpu\n")
	require.Contains(t, call(65, "show", "gpu"), "lock gpu\n")
}
