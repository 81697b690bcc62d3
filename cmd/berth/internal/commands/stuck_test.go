package commands_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/cmd/berth/internal/commands"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// nights are the commands of the table in docs/operations.md, and what each says of a server on which things are stuck:
// the exit code, and what its output has.
var nights = map[string]struct {
	code int
	says string
}{
	"berth ls --sort share":                                    {0, `(?s)^KIND .*\nsem +gpu +\S+ +2/2 `},
	"berth show gpu":                                           {0, `(?s)held 2.*host-7/worker/1`},
	"berth ps --waiting --limit 10":                            {0, `(?s)^KIND .*\nsem +gpu .*waits .*\nlock +nightly `},
	"berth ps --label 'host-7/*'":                              {0, `(?s)sem +gpu .*holds .*lock +nightly .*waits`},
	"berth ps --meta job=42":                                   {0, `(?s)^KIND[^\n]*\nsem +gpu [^\n]*\n$`},
	"berth ps --waiting --label host-7/worker/1":               {0, `(?s)^KIND[^\n]*\nlock +nightly [^\n]*\n$`},
	"berth explain nightly":                                    {0, `host-9/cron/1 has held it`},
	"berth explain proxies":                                    {0, `the one resource rests .*answers 429`},
	"berth node ls":                                            {0, `^NODE `},
	"berth explain NAME":                                       {0, `without end`},
	"berth cycles":                                             {0, `^No cycle was found`},
	"berth pause gpu --for 2h --reason migration":              {0, `^semaphore gpu: paused for 2h00m: migration`},
	"berth unpause gpu":                                        {0, `^semaphore gpu: no longer paused`},
	"berth pause --all --for 2h --reason migration --force":    {0, `^paused for 2h00m: migration; in use: \d+ name`},
	"berth unpause --all":                                      {0, `^no longer paused; pauses that were ended: 4 names`},
	"berth drain --label 'host-7/*' --force-after 10m --force": {0, `1 hold asked for, 1 wait cancelled, 0 holds ended by force, 0 left`},
	"berth drain --label 'host-7/*' --stop":                    {0, `drains no more`},
	"berth sem resize gpu 8":                                   {0, `^gpu: capacity 8, was 2`},
}

// The commands of the table are run in its order, each as it stands there.
func TestTheQuestionsOfTheNight(t *testing.T) {
	t.Parallel()
	text := apptest.Got(os.ReadFile("../../../../docs/operations.md"))(t)
	_, table, found := strings.Cut(string(text), "| question | command |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `(berth [^`]+)` \\|$")
	rows := row.FindAllStringSubmatch(table, -1)
	require.Len(t, rows, len(nights))

	s, way := apptest.Server(t), link.New(nil)
	ctx := context.Background()
	host7 := apptest.LocksOf(t, s, node.Config{Label: "host-7/worker/1"}, way.Wrap)
	gpu := semaphore.New(host7.Node, "gpu", 2, semaphore.Config{})
	permit, err := gpu.Acquire(ctx, &semaphore.AcquireOptions{Weight: 2, Meta: map[string]string{"job": "42"}})
	require.NoError(t, err)
	go func() { // what is drained gives back
		select {
		case <-permit.Wanted():
			_ = permit.Release(ctx)
		case <-permit.Done():
		}
	}()
	other := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "host-8/worker/1"}), "gpu", 2, semaphore.Config{})
	waits, leave := context.WithCancel(ctx)
	t.Cleanup(leave)
	go func() { _, _ = other.Acquire(waits, nil) }()
	apptest.WaitingFor(t, s, keyspace.Sem, "gpu")
	cron := apptest.LocksOf(t, s, node.Config{Label: "host-9/cron/1"})
	apptest.Got(cron.Lock(ctx, "nightly", nil))(t)
	apptest.Got(cron.Lock(ctx, "forever", &qlock.LockOptions{Lease: berth.Forever}))(t)
	go func() { _, _ = host7.Lock(waits, "nightly", nil) }()
	apptest.WaitingFor(t, s, keyspace.Lock, "nightly")
	pool := apptest.Filled(t, s, "proxies", "a")
	require.NoError(t, pool.Rest(ctx, "a", time.Hour, "answers 429", nil))
	go func() { _, _ = pool.Allocate(waits, &allocator.AllocateOptions{}) }()
	apptest.WaitingFor(t, s, keyspace.Pool, "proxies")

	asked := func() bool {
		return apptest.HoldersOf(t, s, keyspace.Sem, "gpu")[0].Wanted > 0 && apptest.Waiting(t, s, keyspace.Lock, "nightly") == 0
	}
	for _, row := range rows {
		want, ok := nights[row[1]]
		require.True(t, ok, row[1])
		args := strings.Fields(strings.NewReplacer("berth ", "", "'", "", "NAME", "forever").Replace(row[1]))
		run := func() apptest.Result { return apptest.Call(t, s.URL(), args...) }
		if args[0] == "drain" && !slices.Contains(args, "--stop") {
			run = func() apptest.Result { return apptest.Drain(t, s, way, asked, args...) }
		}
		got := run()
		require.Equal(t, want.code, got.Code, "%s: %s", row[1], got.Err)
		require.Regexp(t, want.says, got.Out, row[1])
	}
}

func TestTheDemoShowsItsPage(t *testing.T) {
	t.Parallel()
	cmd := apptest.Command(t, "", "demo", "--web")
	out := apptest.Got(cmd.StdoutPipe())(t)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	said := bufio.NewReader(out)
	line := apptest.Got(said.ReadString('\n'))(t)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(line)
	require.NotEmpty(t, address, line)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for page := ""; !strings.Contains(page, "name=workshop"); {
		resp := apptest.Got(client.Get(address + "names"))(t)
		body := apptest.Got(io.ReadAll(resp.Body))(t)
		require.NoError(t, resp.Body.Close())
		if resp.StatusCode != http.StatusServiceUnavailable { // a busy machine has not read it in time
			require.Equal(t, http.StatusOK, resp.StatusCode)
			page = string(body)
		}
	}
	apptest.Interrupt(t, cmd, time.Millisecond)
	apptest.Got(io.Copy(io.Discard, said))(t)
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Equal(t, "berth: ended by signal: interrupt\n", errs.String())
}

func TestMain(m *testing.M) { apptest.Main(m, commands.Execute) }
