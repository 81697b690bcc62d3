//go:build unix

package pool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// inPool returns the keys of a pool, sorted.
func inPool(t *testing.T, pool apptest.Pool) []string {
	t.Helper()
	keys := []string{}
	for info, err := range pool.Ops.Resources(context.Background(), pool.Name()) {
		require.NoError(t, err)
		keys = append(keys, info.Resource)
	}
	slices.Sort(keys)
	return keys
}

func TestAPoolIsFilledAndEmptied(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.PoolOf(t, s, "proxies", node.Config{})
	for _, step := range []struct {
		stdin string
		args  []string
		says  string
		has   []string
	}{
		{"", []string{"add", "proxies", "a", "b"}, "proxies: 2 added, 0 kept\n", []string{"a", "b"}},
		{"b\n\nc\r\n", []string{"add", "proxies", "--file", "-"}, "proxies: 1 added, 1 kept\n", []string{"a", "b", "c"}},
		{"\n", []string{"add", "proxies", "--file", "-"}, "proxies: 0 added, 0 kept\n", []string{"a", "b", "c"}},
		{"\n", []string{"remove", "proxies", "--file", "-"}, "proxies: 0 removed\n", []string{"a", "b", "c"}},
		{"", []string{"remove", "proxies", "a", "x", "a"}, "proxies: 1 removed, 1 not in the pool\n", []string{"b", "c"}},
		{"d\x00\n\x00", []string{"replace", "proxies", "--file", "-", "--null"}, "proxies: 2 added, 0 kept, 2 removed\n", []string{"\n", "d"}},
		{`"\x00\xff"` + "\nd\n", []string{"replace", "proxies", "--file", "-", "--quoted"}, "proxies: 1 added, 1 kept, 1 removed\n", []string{"\x00\xff", "d"}},
		{"", []string{"remove", "proxies", "--quoted", `"\x00\xff"`}, "proxies: 1 removed\n", []string{"d"}},
		{"", []string{"replace", "proxies", "--file", "-", "--allow-empty", "--json"}, "{\n  \"namespace\": \"berth\",\n  \"name\": \"proxies\",\n  \"added\": 0,\n  \"kept\": 0,\n  \"removed\": 1\n}\n", []string{}},
	} {
		got := apptest.Fed(t, s.URL(), step.stdin, append([]string{"pool"}, step.args...)...)
		require.Equal(t, apptest.Outcome(0, step.says, ""), got)
		require.Equal(t, step.has, inPool(t, pool))
	}
}

func TestResourcesStayAsLongAsTheirExpirySays(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a")
	require.Zero(t, apptest.Call(t, s.URL(), "pool", "add", "proxies", "b", "--expiry", "1h").Code)
	for resource, least := range map[string]time.Duration{"a": 0, "b": 59 * time.Minute} {
		info := apptest.Got(pool.Ops.Resource(context.Background(), pool.Name(), resource))(t)
		require.GreaterOrEqual(t, info.Expiry, least)
		require.LessOrEqual(t, info.Expiry, 61*least)
	}
}

func TestWhoWaitsForAnEmptyPoolGetsWhatIsAdded(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.PoolOf(t, s, "proxies", node.Config{})
	ctx, cancel := context.WithTimeout(context.Background(), apptest.Patience)
	defer cancel()
	got := make(chan string, 1)
	go func() {
		defer close(got)
		if held, err := pool.Allocate(ctx, nil); err == nil {
			got <- held.Resource()
		}
	}()
	apptest.WaitingFor(t, s, keyspace.Pool, "proxies")
	apptest.Call(t, s.URL(), "pool", "add", "proxies", "a").Ends(t, 0)
	require.Equal(t, "a", <-got)
}

// TestAFillingThatIsInterruptedSaysHowMuchWasSent is not parallel: the signal goes to
// this process, and to all that listens in it.
func TestAFillingThatIsInterruptedSaysHowMuchWasSent(t *testing.T) {
	var out, errs bytes.Buffer
	a := app.New(&out, &errs)
	a.URL, a.Namespace = apptest.Server(t).URL(), "berth"
	self := apptest.Got(os.FindProcess(os.Getpid()))(t)
	err := fill(context.Background(), a, "proxies", "added", 1000, func(ctx context.Context, _ *allocator.Pool[string], told func(done, total int)) (allocator.Change, error) {
		told(200, 1000)
		told(400, 1000)
		require.NoError(t, self.Signal(syscall.SIGTERM))
		<-ctx.Done()
		return allocator.Change{Added: 390, Kept: 10}, context.Cause(ctx)
	})
	require.Equal(t, 143, app.CodeOf(err))
	require.Equal(t, "berth: ended by signal: terminated; 400 of 1000 were sent before: 390 added, 10 kept, 0 removed; the same command again does the rest",
		app.OneLine(err.Error()))
	require.Empty(t, out.String())
	require.Empty(t, errs.String())
}

func TestASignalRightBeforeTheExitLeavesTheCodeOfAFilling(t *testing.T) {
	t.Parallel()
	way := apptest.WayTo(t, apptest.Server(t))
	way.Block()
	cmd := apptest.Command(t, way.URL+"&dial_timeout=1h", "pool", "add", "proxies", "a")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	require.Eventually(t, way.Used, apptest.Patience, time.Millisecond, "from then on it listens to signals")
	apptest.Interrupt(t, cmd, time.Millisecond)
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Equal(t, "berth: ended by signal: interrupt\n", errs.String())
}

func TestAFillingThatFailsSaysHowMuchWasSent(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	fails := func(failure error) error {
		a := app.New(&bytes.Buffer{}, &bytes.Buffer{})
		a.URL, a.Namespace = s.URL(), "berth"
		return fill(context.Background(), a, "proxies", "added", 10, func(_ context.Context, _ *allocator.Pool[string], told func(done, total int)) (allocator.Change, error) {
			told(5, 10)
			return allocator.Change{Added: 5}, failure
		})
	}
	err := fails(errors.New("broken pipe"))
	require.Equal(t, 69, app.CodeOf(err))
	require.ErrorContains(t, err, "broken pipe; 5 of 10 were sent before: 5 added, 0 kept, 0 removed; ")
	err = fails(&berth.OvertakenError{Name: "proxies", Changed: "replaced"})
	require.Equal(t, 1, app.CodeOf(err))
	require.ErrorContains(t, err, `"proxies": changed by another call meanwhile: replaced; 5 of 10`)
	err = fails(berth.Invalid("resources", "no"))
	require.Equal(t, 64, app.CodeOf(err))
	require.NotContains(t, err.Error(), "sent")
	require.NotContains(t, apptest.Call(t, apptest.Nobody, "pool", "add", "x", "a").Err, "sent", "nothing had begun")
}

func TestOnlyATerminalAndManyHaveABar(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.Nil(t, newProgress(&out, "proxies", many+1).bar, "no terminal")
	p := &progress{total: 4000, bar: newBar(&out, "pro\x1bxies", 4000)}
	p.told(1000, 4000)
	require.Contains(t, out.String(), " 25% ")
	require.Contains(t, out.String(), "(1000/4000")
	require.Contains(t, out.String(), `"pro\x1bxies"`)
	p.end()
	p.end()
	require.NotContains(t, out.String(), "\n", "the line is left empty")
	require.True(t, strings.HasSuffix(out.String(), "\r"), "%q", out.String())
}

func TestADashIsNoKeyUnlessThatIsMeant(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a")
	got := apptest.Fed(t, s.URL(), "b\n", "pool", "add", "proxies", "-").Ends(t, 64)
	require.Contains(t, got.Err, `to read standard input say --file -`)
	require.Zero(t, apptest.Fed(t, s.URL(), "", "pool", "add", "proxies", "--quoted", `"-"`).Code)
	require.Equal(t, []string{"-", "a"}, inPool(t, pool))
}

func TestHowManyMayShareIsSaidOrStays(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.PoolOf(t, s, "keys", node.Config{})
	sharers := func(key string) int {
		info := apptest.Got(pool.Ops.Resource(context.Background(), pool.Name(), key))(t)
		return info.MaxSharers
	}
	add := func(args ...string) apptest.Result {
		return apptest.Fed(t, s.URL(), "", append([]string{"pool", "add", "keys"}, args...)...)
	}
	require.Zero(t, add("a", "--max-sharers", "3").Code)
	require.Zero(t, add("a", "b").Code)
	require.Equal(t, []int{3, 1}, []int{sharers("a"), sharers("b")})
	require.Zero(t, apptest.Fed(t, s.URL(), "", "pool", "replace", "keys", "a", "b", "--max-sharers", "2").Code)
	require.Equal(t, []int{2, 2}, []int{sharers("a"), sharers("b")})
	require.Contains(t, add("c", "--max-sharers", "101").Ends(t, 64).Err, "MaxSharers: 101 is not within 1 to 100")
	shown := apptest.Fed(t, s.URL(), "", "pool", "show", "keys", "--all")
	require.Contains(t, shown.Out, "SHARERS")
	require.Contains(t, shown.Out, "0 of 2")
}

// reading reads the keys of a command line, which has the flags of an input, from
// arguments and standard input.
func reading(t *testing.T, stdin string, line ...string) ([]string, error) {
	t.Helper()
	var in input
	var keys []string
	cmd := &cobra.Command{
		Use: "x", SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			keys, err = in.keys(cmd, args)
			return err
		},
	}
	in.bind(cmd)
	cmd.SetArgs(line)
	cmd.SetIn(strings.NewReader(stdin))
	return keys, cmd.Execute()
}

func TestResourcesAreArgumentsOrLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(file, []byte("one\ntwo"), 0o600))
	for name, test := range map[string]struct {
		stdin string
		line  []string
		want  []string
	}{
		"arguments":             {"", []string{"a", " b ", `"c"`, "d\xff\ne"}, []string{"a", " b ", `"c"`, "d\xff\ne"}},
		"quoted arguments":      {"", []string{"--quoted", "a", `"\x00\n"`, `b"`}, []string{"a", "\x00\n", `b"`}},
		"a file":                {"", []string{"--file", file}, []string{"one", "two"}},
		"lines":                 {"a\n\nb\r\n \t \n c \n\"d\"\n", []string{"--file", "-"}, []string{"a", "b", " c ", `"d"`}},
		"the last has no end":   {"a\nb", []string{"--file=-"}, []string{"a", "b"}},
		"any bytes in lines":    {"|b\n#ALLOCATED\n\xff\xfe\na\x00b\n", []string{"--file=-"}, []string{"|b", "#ALLOCATED", "\xff\xfe", "a\x00b"}},
		"lines that are quoted": {"a\n\"\\n\\x00\\xff\"\n", []string{"--file=-", "--quoted"}, []string{"a", "\n\x00\xff"}},
		"separated by NUL":      {"a\nb\x00\x00 \x00\"c\"\r", []string{"--file=-", "--null"}, []string{"a\nb", " ", "\"c\"\r"}},
		"nothing":               {"\n \n", []string{"--file=-"}, nil},
		"the longest":           {strings.Repeat("x", app.MaxKey), []string{"--file=-"}, []string{strings.Repeat("x", app.MaxKey)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, apptest.Got(reading(t, test.stdin, test.line...))(t))
		})
	}
}

func TestResourcesThatCannotBeReadAreRefusedWithTheirLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stdin string
		line  []string
		code  int
		says  string
	}{
		"nothing is given":     {"a\n", []string{}, 64, "RESOURCE is missing; or --file F to read lines from a file, --file - from standard input"},
		"both are given":       {"", []string{"a", "--file", "-"}, 64, `invalid --file: with "a" there are two places to read from`},
		"no file":              {"", []string{"--file", "/nowhere/at/all"}, 66, "open /nowhere/at/all: no such file or directory"},
		"a directory":          {"", []string{"--file", "/"}, 66, "is a directory"},
		"a file of no name":    {"", []string{"--file", ""}, 64, "invalid --file: it is empty; - is standard input"},
		"NUL in arguments":     {"", []string{"--null", "a"}, 64, "invalid --null: it is for --file; an argument cannot have a NUL, but may be --quoted"},
		"NUL and quotes":       {"", []string{"--file=-", "--null", "--quoted"}, 64, "invalid --null: its keys are taken as they are"},
		"an empty argument":    {"", []string{"a", ""}, 64, "invalid RESOURCE: a key is empty"},
		"an empty quoted one":  {"a\n\"\"\n", []string{"--file=-", "--quoted"}, 64, "standard input, line 2: a key is empty"},
		"no quotes at its end": {"a\n\n\"b\n", []string{"--file=-", "--quoted"}, 64, `standard input, line 3: "\"b" is not in double quotes with escapes as in Go`},
		"a long line":          {"a\n" + strings.Repeat("x", app.MaxKey+1), []string{"--file=-"}, 64, "standard input, line 2: a key has 1025 bytes, at most 1024 are allowed"},
		"an endless line":      {"a\n" + strings.Repeat("x", 2<<20), []string{"--file=-"}, 64, "standard input, line 2: it is longer than a key may be, 1024 bytes"},
		"a long entry":         {"a\x00" + strings.Repeat("x", app.MaxKey+1), []string{"--file=-", "--null"}, 64, "standard input, entry 2: a key has 1025 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := reading(t, test.stdin, test.line...)
			require.ErrorContains(t, err, test.says)
			require.Equal(t, test.code, app.CodeOf(err))
		})
	}
}

// TestWhatIsPrintedIsReadAgain holds for every byte, alone and beside others.
func TestWhatIsPrintedIsReadAgain(t *testing.T) {
	t.Parallel()
	keys := []string{"-", `"`, `""`, `"a"`, " a", "a ", "größe", "\u202eevil", "a\tb", "\x1b[2J", strings.Repeat("\xff", app.MaxKey)}
	for b := range 256 {
		keys = append(keys, string([]byte{byte(b)}), string([]byte{'a', byte(b)}), string([]byte{byte(b), 'a'}), string([]byte{'x', byte(b), 0xc3}))
	}
	var printed bytes.Buffer
	for _, k := range keys {
		text := view.Key(k)
		require.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }), "%q", text)
		printed.WriteString(text + "\n")
	}
	require.Equal(t, keys, apptest.Got(reading(t, printed.String(), "--file=-", "--quoted"))(t))
}

// checked runs pool check as a process of its own: it sees to signals.
func checked(t *testing.T, url string, args ...string) apptest.Result {
	t.Helper()
	return apptest.Spawn(t, url, append([]string{"pool", "check", "proxies"}, args...)...)
}

func TestAPoolIsCheckedByACommand(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "leased", "good", "bad", "mute", "also good", "nul\x00")
	require.Equal(t, "leased", apptest.Got(pool.Allocate(ctx, nil))(t).Resource())
	got := checked(t, s.URL(), "--workers", "2", "--rest", "1d", "--exec",
		`echo "$BERTH_NAME/$BERTH_RESOURCE"; case $BERTH_RESOURCE in *good) ;; bad) echo first >&2; echo "answers	429 " >&2; echo >&2; exit 3;; *) kill -9 $$;; esac`)
	require.Equal(t, 1, got.Code, got.Err)
	require.Equal(t, "berth: of pool \"proxies\" in namespace \"berth\" 3 resources have failed\n", got.Err)
	lines := strings.Split(got.Out, "\n")
	require.Equal(t, "proxies: 5 checked, 2 healthy, 3 failed, 1 skipped", lines[0])
	require.Regexp(t, `^RESOURCE +REASON$`, lines[2])
	require.Regexp(t, `(?m)^bad +"exit status 3: answers\\t429"$`, got.Out)
	require.Regexp(t, `(?m)^mute +exit status 137$`, got.Out)
	require.Regexp(t, `(?m)^"nul\\x00" +it has a NUL byte, which BERTH_RESOURCE cannot have$`, got.Out)
	require.Len(t, lines, 7)

	info := apptest.Got(pool.Ops.Resource(ctx, "proxies", "bad"))(t)
	require.Equal(t, allocator.Resting, info.State)
	require.Equal(t, "exit status 3: answers\t429", info.Reason)
	require.Greater(t, info.Left, 23*time.Hour)
	require.Equal(t, apptest.Outcome(0, "proxies: 2 checked, 2 healthy, 0 failed, 4 skipped\n", ""), checked(t, s.URL(), "--exec", "true"))
}

func TestACheckInJSON(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", apptest.Wild)
	got := checked(t, s.URL(), "--exec", "head -c 6000 /dev/zero | tr '\\0' x >&2; exit 1", "--rest", "0", "--json")
	require.Equal(t, 1, got.Code, got.Err)
	document := apptest.Read[healthDocument](t, got.Out)
	require.Equal(t, []failure{{apptest.Wild, document.Failed[0].Reason}}, document.Failed)
	require.Equal(t, "exit status 1: "+strings.Repeat("x", 497), document.Failed[0].Reason)
	info := apptest.Got(pool.Ops.Resource(context.Background(), "proxies", apptest.Wild))(t)
	require.Equal(t, allocator.Free, info.State, "--rest 0 is no rest")
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "checked": 1, "healthy": 1, "unhealthy": 0, "skipped": 0, "restMs": 60000, "failed": []}`,
		checked(t, s.URL(), "--exec", "true", "--json").Out)
}

func TestACheckOfNoPoolFails(t *testing.T) {
	t.Parallel()
	got := checked(t, apptest.Server(t).URL(), "--exec", "true").Ends(t, 1)
	require.Contains(t, got.Err, `pool "proxies" in namespace "berth" has no resources`)
	require.Empty(t, got.Out)
}

// gone waits until a process has ended whose number a file tells.
func gone(t *testing.T, file string) {
	t.Helper()
	text := apptest.Got(os.ReadFile(file))(t)
	pid := apptest.Got(strconv.Atoi(strings.TrimSpace(string(text))))(t)
	require.Eventually(t, func() bool { return ended(pid) }, apptest.Patience, 10*time.Millisecond)
}

// ready waits until a file has got the name by which it is whole.
func ready(t *testing.T, file string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(file + ".ready")
		return err == nil
	}, apptest.Patience, 10*time.Millisecond)
}

// ended reports whether a process runs no more; one that nobody has waited for does not.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestACheckThatTakesTooLongIsKilled(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a")
	got := checked(t, s.URL(), "--timeout", "1s", "--exec", "exec sleep 600").Ends(t, 1)
	require.Contains(t, got.Out, "not ended within 1s\n")
}

// TestWhatACheckHasStartedIsKilledWithIt has a command that has started another one, which holds its stderr open. Its
// time is over when it has said so.
func TestWhatACheckHasStartedIsKilledWithIt(t *testing.T) {
	t.Parallel()
	child := filepath.Join(t.TempDir(), "child")
	ctx, over := context.WithCancel(t.Context())
	faults := make(chan error, 1)
	go func() {
		c := checking{command: "sleep 600 & echo waiting >&2; echo $! >" + child + "; mv " + child + " " + child + ".ready; wait", timeout: time.Second}
		fault, err := checkOne(ctx, "/bin/sh", c, "proxies", "a")
		faults <- cmp.Or(err, fault)
	}()
	ready(t, child)
	over()
	require.EqualError(t, <-faults, "not ended within 1s: waiting")
	gone(t, child+".ready")
}

// TestACheckLeavesNothingBehind has a command that ends before what it has started.
func TestACheckLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a")
	child := filepath.Join(t.TempDir(), "child")
	checked(t, s.URL(), "--exec", "sleep 600 & echo $! >"+child).Ends(t, 0)
	gone(t, child)
}

func TestASignalEndsACheck(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a", "b")
	child := filepath.Join(t.TempDir(), "child")
	cmd := apptest.Command(t, s.URL(), "pool", "check", "proxies", "--exec", "echo $$ >"+child+"; mv "+child+" "+child+".ready; exec sleep 600")
	require.NoError(t, cmd.Start())
	ready(t, child)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, 128+int(syscall.SIGTERM), cmd.ProcessState.ExitCode())
	gone(t, child+".ready")
	require.Equal(t, 2, apptest.NameOf(t, s, keyspace.Pool, "proxies").Pool.Free, "neither is to blame")
}
