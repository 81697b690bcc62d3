//go:build unix

package run

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
)

// poolArgs are the arguments of a run of a role with a resource of the pool gpu.
func poolArgs(role string, flags ...string) []string {
	args := append([]string{"run", "--pool", "gpu"}, flags...)
	return append(args, "--", os.Args[0], apptest.RolePrefix+role)
}

// says are the arguments of a run whose command says what its resource is.
func says(flags ...string) []string {
	args := append([]string{"run", "--pool", "gpu", "--try"}, flags...)
	return append(args, "--", "sh", "-c", `printf %s "$BERTH_RESOURCE"`)
}

// holdsOf are the holds of a pool.
func holdsOf(t *testing.T, pool apptest.Pool) []berth.Holder {
	t.Helper()
	return apptest.HoldersOf(t, pool.Server, keyspace.Pool, pool.Name())
}

func TestTheCommandFindsItsResourceInTheEnvironment(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a b\xff")
	require.Equal(t, apptest.Outcome(0, "a b\xff", ""), apptest.Spawn(t, s.URL(), says()...))
	r := beginWith(t, s.URL(), poolArgs("polite"))
	info, err := pool.Ops.Resource(context.Background(), pool.Name(), "a b\xff")
	require.NoError(t, err)
	require.Len(t, info.Holders, 1)
	r.is(info.Holders[0], 10*time.Second)
	full := `berth: "gpu" not acquired: full (capacity 1, held 1, waiting 0); 1 resource, 0 free, 1 leased, 0 resting, waiting 0` + "\n"
	require.Equal(t, apptest.Outcome(75, "", full), apptest.Spawn(t, s.URL(), says()...), "it is the only one")
	r.ends(syscall.SIGTERM)
	require.Empty(t, r.errs.String())
	require.Equal(t, 0, apptest.Spawn(t, s.URL(), says()...).Code)
}

func TestASemaphoreHasNoResource(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	got := apptest.Spawn(t, s.URL(), "run", "--sem", "gpu", "--capacity", "1", "--", "sh", "-c", `printf %s "${BERTH_RESOURCE-none}"`)
	require.Equal(t, apptest.Outcome(0, "none", ""), got)
}

func TestTheOptionsOfAnAllocationAreItsClaims(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a")
	r := beginWith(t, s.URL(), poolArgs("polite", "--lease", "1h", "--no-renew", "--max-hold", "2h", "--bind", "anna", "--bind-for", "3h"))
	holder := holdsOf(t, pool)[0]
	require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour}, []time.Duration{holder.Lease, holder.MaxHold})
	require.True(t, holder.NoRenew)
	require.Greater(t, holder.Left, 59*time.Minute, "the whole lease from the start")
	binding, err := pool.Binding(context.Background(), "anna")
	require.NoError(t, err)
	require.Equal(t, "a", binding.Resource)
	require.Greater(t, binding.Left, 2*time.Hour)

	late := apptest.Spawn(t, s.URL(), poolArgs("polite", "--wait", "12s")...)
	require.Equal(t, 75, late.Code)
	require.Regexp(t, `^berth: "gpu" not acquired: timed out after [1-9][\d.]*s \(1 resource, 0 free, 1 leased, 0 resting, waiting 0\)\n$`, late.Err)
	waiter, leave := queued(t, s, keyspace.Pool, poolArgs("polite", "--priority", "7")...)
	require.Equal(t, 7, waiter.Priority)
	leave()
	r.ends(syscall.SIGINT)
}

// A run that says no --lease is taken within the pool's limits, and the longest hold of the pool ends its command.
func TestARunIsWithinTheLimitsOfThePool(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a")
	limits := func(l allocator.Settings) { require.NoError(t, pool.Ops.Set(t.Context(), pool.Name(), "", l)) }
	limits(allocator.Settings{MaxLease: 9 * time.Second})
	require.Equal(t, apptest.Outcome(0, "a", ""), apptest.Spawn(t, s.URL(), says()...))
	limits(allocator.Settings{MaxHold: 6 * time.Second})
	got := apptest.Spawn(t, s.URL(), "run", "--pool", "gpu", "--", "sleep", "60")
	require.Equal(t, 76, got.Code)
	require.NotContains(t, got.Err, "no renewal in time")
}

func TestWhoWaitsForAnEmptyPoolIsToldThatItIs(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	got := apptest.Spawn(t, s.URL(), poolArgs("polite", "--wait", "12s")...)
	require.Equal(t, 75, got.Code)
	require.Regexp(t, `timed out after [1-9][\d.]*s \(the pool is empty, waiting 0\)\n$`, got.Err)
	require.Contains(t, got.Err, "berth: warning: the pool \"gpu\" has no resources; waiting until it has\n", "before it waits")
	got = apptest.Spawn(t, s.URL(), says()...)
	require.Equal(t, apptest.Outcome(75, "", "berth: \"gpu\" not acquired: empty (held 0, waiting 0); the pool is empty, waiting 0\n"), got)
}

func TestARunWithAResourceGetsThatOneOrNone(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	got := apptest.Spawn(t, s.URL(), says("--resource", "b")...)
	require.Equal(t, apptest.Outcome(75, "", "berth: \"gpu\" not acquired: empty (held 0, waiting 0); b is absent\n"), got, "nothing has filled the pool yet")

	pool := apptest.Filled(t, s, "gpu", "a", "b", apptest.Wild)
	require.Equal(t, apptest.Outcome(0, "b", ""), apptest.Spawn(t, s.URL(), says("--resource", "b")...))
	require.Equal(t, apptest.Outcome(0, apptest.Wild, ""), apptest.Spawn(t, s.URL(), says("--resource", app.Key(apptest.Wild), "--quoted")...))
	for _, args := range [][]string{says("--resource", "z"), poolArgs("polite", "--resource", "z"), poolArgs("polite", "--resource", "z", "--wait", "2m")} {
		require.Equal(t, apptest.Outcome(67, "", "berth: resource z is not in pool \"gpu\" in namespace \"berth\"\n"), apptest.Spawn(t, s.URL(), args...))
	}

	held, err := pool.Allocate(context.Background(), &allocator.AllocateOptions{Resource: "b"})
	require.NoError(t, err)
	got = apptest.Spawn(t, s.URL(), says("--resource", "b")...)
	require.Equal(t, apptest.Outcome(75, "", "berth: \"gpu\" not acquired: held (waiting 0); b is leased\n"), got)
	require.NoError(t, held.Rest(berth.Forever, "answers\t429"))
	require.NoError(t, held.Release(context.Background()))
	got = apptest.Spawn(t, s.URL(), says("--resource", "b")...)
	require.Equal(t, 75, got.Code)
	require.Contains(t, got.Err, `; b is resting for forever: "answers\t429"`)
	require.Equal(t, apptest.Outcome(0, "a", ""), apptest.Spawn(t, s.URL(), says()...), "others are served")
}

// lane is what the first claim waits for that waits for one resource.
func lane(t *testing.T, pool apptest.Pool) (found berth.Waiter) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, waiter := range apptest.WaitersOf(t, pool.Server, keyspace.Pool, pool.Name()) {
			if found = waiter; waiter.Resource != "" {
				return true
			}
		}
		return false
	}, apptest.Patience, 10*time.Millisecond)
	return found
}

func TestABoundRunWaitsForItsResource(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "gpu", "a", "b")
	require.NoError(t, pool.Bind(ctx, "anna", "a", nil))
	require.NoError(t, pool.Bind(ctx, "ben", "a", nil))
	held, err := pool.Allocate(ctx, &allocator.AllocateOptions{Resource: "a"})
	require.NoError(t, err)
	require.Equal(t, apptest.Outcome(0, "b", ""), apptest.Spawn(t, s.URL(), says("--bind", "ben")...), "by default another one will do")
	require.Equal(t, apptest.Outcome(0, "b", ""), apptest.Spawn(t, s.URL(), says("--bind", "carl", "--bind-wait", "forever")...), "who is bound to nothing takes any")
	require.Equal(t, apptest.Outcome(75, "",
		"berth: \"gpu\" not acquired: held (waiting 0); 2 resources, 1 free, 1 leased, 0 resting, waiting 0; bound: a is leased\n"),
		apptest.Spawn(t, s.URL(), says("--bind", "anna", "--bind-wait", "forever")...))

	ended := make(chan apptest.Result, 1)
	cmd := apptest.Command(t, s.URL(), "run", "--pool", "gpu", "--bind", "anna", "--bind-wait", "1d", "--", "sh", "-c", `printf %s "$BERTH_RESOURCE"`)
	go func() { ended <- apptest.Finish(t, cmd) }()
	waiter := lane(t, pool)
	require.Equal(t, "a", waiter.Resource)
	require.Greater(t, waiter.BindWait, 23*time.Hour)
	require.LessOrEqual(t, waiter.BindWait, 24*time.Hour)
	require.NoError(t, held.Release(ctx))
	require.Equal(t, apptest.Outcome(0, "a", ""), <-ended)
}

func TestAResourceRestsAfterTheCommand(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a", "b")
	require.Equal(t, "a", apptest.Spawn(t, s.URL(), says("--cooldown", "1h")...).Out)
	self := apptest.Command(t, s.URL()).Path
	got := apptest.Spawn(t, s.URL(), "run", "--pool", "gpu", "--", self, "pool", "rest", "gpu", "b", "--for", "2h", "--reason", "answers 429")
	require.Equal(t, apptest.Outcome(0, "gpu: b is leased, and rests for 2h00m when it comes back\n", ""), got)
	for resource, least := range map[string]time.Duration{"a": 59 * time.Minute, "b": 119 * time.Minute} {
		info, err := pool.Ops.Resource(context.Background(), pool.Name(), resource)
		require.NoError(t, err)
		require.Equal(t, allocator.Resting, info.State)
		require.GreaterOrEqual(t, info.Left, least)
	}
	got = apptest.Spawn(t, s.URL(), says()...)
	require.Equal(t, 75, got.Code)
	require.Equal(t, "berth: \"gpu\" not acquired: resting (capacity 2, held 0, waiting 0); 2 resources, 0 free, 0 leased, 2 resting, waiting 0\n", got.Err)
}

func TestAKeyThatNoEnvironmentCanHaveStartsNoCommand(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "gpu", "a\x00b")
	got := apptest.Spawn(t, s.URL(), says()...)
	require.Equal(t, apptest.Outcome(126, "", "berth: resource \"a\\x00b\" of \"gpu\" has a NUL byte, which BERTH_RESOURCE cannot have\n"), got)
	require.Empty(t, holdsOf(t, pool), "it was given back")
}

func TestUsageOfARunWithAPoolOrOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"once a":                           {strings.Fields("--once a"), "--every is missing"},
		"once a every 10ms":                {strings.Fields("--once a --every 10ms"), "invalid --every: 10ms is below 20ms"},
		"once a every 0s offset 1h":        {strings.Fields("--once a --every 0s --offset 1h"), "invalid --every: "},
		"once a every 1h offset 1h":        {strings.Fields("--once a --every 1h --offset 1h"), "invalid --offset: 1h0m0s is not below --every, 1h0m0s\n"},
		"once a every 1h attempts 0":       {strings.Fields("--once a --every 1h --attempts 0"), "invalid --attempts: 0 is below 1\n"},
		"once a every 1h attempts -1":      {strings.Fields("--once a --every 1h --attempts -1"), "invalid --attempts: -1 is below 1\n"},
		"once a every 1h attempts 1000001": {strings.Fields("--once a --every 1h --attempts 1000001"), "invalid --attempts: 1000001 is not within 1 to 1000000\n"},
		"once a every 1h retry-after 0s":   {strings.Fields("--once a --every 1h --retry-after 0s"), "invalid --retry-after: it is 0"},
		"once a every 1h try":              {strings.Fields("--once a --every 1h --try"), "invalid --try: --once does not wait anyway, unless --wait is given\n"},
		"once a every 1h owner b":          {strings.Fields("--once a --every 1h --owner b"), "invalid --owner: it is not for --once"},
		"once a{ every 1h":                 {strings.Fields("--once a{ --every 1h"), "invalid --once: must have none of {}"},
		"once a every 1h lock b":           {strings.Fields("--once a --every 1h --lock b"), "invalid --once: with --sem, --lock or --pool there are two"},
		"lock a every 1h":                  {strings.Fields("--lock a --every 1h"), "invalid --every: it is for --once"},
		"once a every 1h retry-after -1s":  {strings.Fields("--once a --every 1h --retry-after -1s"), "invalid --retry-after: "},
		"lock a retry-after 1m":            {strings.Fields("--lock a --retry-after 1m"), "invalid --retry-after: it is for --once"},
		"pool a strict":                    {strings.Fields("--pool a --strict"), "invalid --strict: it is for --once"},
		"a pool and a lock":                {[]string{"--pool", "a", "--lock", "b"}, "invalid --pool: with --sem or --lock there are two"},
		"a pool and a semaphore":           {[]string{"--pool", "a", "--sem", "b"}, "invalid --pool: with --sem or --lock there are two"},
		"a pool with a capacity":           {[]string{"--pool", "a", "--capacity", "2"}, "a pool has neither --capacity nor --weight"},
		"a pool with a weight":             {[]string{"--pool", "a", "--weight", "2"}, "a pool has neither --capacity nor --weight"},
		"access of a pool":                 {[]string{"--pool", "a", "--access", "lifo"}, "invalid --access: a semaphore lets in who came first, and a pool too"},
		"a pool with braces":               {[]string{"--pool", "a{b}"}, "invalid --pool: must have none of {}"},
		"a pool of no name":                {[]string{"--pool", ""}, "invalid --pool"},
		"a binding of no name":             {[]string{"--pool", "a", "--bind", ""}, "invalid --bind: it is empty"},
		"a long binding":                   {[]string{"--pool", "a", "--bind", strings.Repeat("x", 513)}, "invalid --bind: 513 bytes"},
		"bind-for alone":                   {[]string{"--pool", "a", "--bind-for", "1h"}, "invalid --bind-for: it is for --bind"},
		"bound for no time":                {[]string{"--pool", "a", "--bind", "x", "--bind-for", "0s"}, "invalid --bind-for: 0s is not above 0"},
		"bound for microseconds":           {[]string{"--pool", "a", "--bind", "x", "--bind-for", "1us"}, "invalid --bind-for"},
		"bind-wait alone":                  {[]string{"--pool", "a", "--bind-wait", "1m"}, "invalid --bind-wait: it is for --bind"},
		"bind-wait of 0":                   {[]string{"--pool", "a", "--bind", "x", "--bind-wait", "0s"}, "invalid --bind-wait: 0s is not above 0"},
		"bind-wait below 0":                {[]string{"--pool", "a", "--bind", "x", "--bind-wait", "-1s"}, "invalid --bind-wait: -1s is not above 0"},
		"bind-wait of no unit":             {[]string{"--pool", "a", "--bind", "x", "--bind-wait", "1us"}, "invalid --bind-wait: 1µs is not a whole number of milliseconds"},
		"bind-wait of nothing":             {[]string{"--pool", "a", "--bind", "x", "--bind-wait", "soon"}, `invalid --bind-wait: "soon" is not a time`},
		"a resource or another":            {[]string{"--pool", "a", "--resource", "r", "--bind", "x", "--bind-wait", "1m"}, "invalid --bind-wait: with --resource no other one will do"},
		"a resource of no name":            {[]string{"--pool", "a", "--resource", ""}, "invalid --resource: a key is empty"},
		"a resource that is off":           {[]string{"--pool", "a", "--resource", `"x`, "--quoted"}, "invalid --resource"},
		"quoted alone":                     {[]string{"--pool", "a", "--quoted"}, "invalid --quoted: it is for --resource"},
		"a lock that waits":                {[]string{"--lock", "a", "--bind-wait", "1m"}, "invalid --bind-wait: it is for --pool"},
		"a lock with a resource":           {[]string{"--lock", "a", "--resource", "r"}, "invalid --resource: it is for --pool"},
		"cooldown of 0":                    {[]string{"--pool", "a", "--cooldown", "0s"}, "invalid --cooldown: 0s is not above 0"},
		"cooldown below 0":                 {[]string{"--pool", "a", "--cooldown", "-1s"}, "invalid --cooldown"},
		"cooldown of no unit":              {[]string{"--pool", "a", "--cooldown", "1us"}, "invalid --cooldown: 1µs is not a whole number of milliseconds"},
		"cooldown without end":             {[]string{"--pool", "a", "--cooldown", "2562047h47m16.854775807s"}, "invalid --cooldown: it must end"},
		"a lock with a binding":            {[]string{"--lock", "a", "--bind", "x"}, "invalid --bind: it is for --pool"},
		"a semaphore that cools":           {[]string{"--sem", "a", "--capacity", "1", "--cooldown", "1s"}, "invalid --cooldown: it is for --pool"},
		"a lock with a bind time":          {[]string{"--lock", "a", "--bind-for", "1s"}, "invalid --bind-for: it is for --pool"},
		"a lease that is short":            {[]string{"--pool", "a", "--lease", "19ms"}, "invalid --lease: 19ms is below the shortest lease, 20ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := apptest.Call(t, apptest.Nobody, append(append([]string{"run"}, test.args...), "--", "true")...)
			require.Equal(t, 64, got.Code, got.Err)
			require.Contains(t, got.Err, test.err)
		})
	}
}
