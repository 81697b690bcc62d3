package top

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

// jam is a server on which somebody waits for a semaphore, and two for a lock.
func jam(t *testing.T) *embedded.Server {
	t.Helper()
	s, ctx := apptest.Server(t), context.Background()
	gpu := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "host-1/one"}), "gpu", 1, nil)
	_, err := gpu.Acquire(apptest.Owned("order 66"), nil)
	require.NoError(t, err)
	go func() { _, _ = gpu.Acquire(ctx, nil) }() // ends with the node
	locks := apptest.LocksOf(t, s, node.Config{Label: "two\x1b[2J"})
	_, err = locks.Lock(ctx, "nightly", nil)
	require.NoError(t, err)
	for range 2 {
		go func() { _, _ = locks.Lock(ctx, "nightly", nil) }() // likewise
	}
	require.Eventually(t, func() bool {
		return apptest.Waiting(t, s, keyspace.Lock, "nightly") == 2 && apptest.Waiting(t, s, keyspace.Sem, "gpu") == 1
	}, apptest.Patience, 10*time.Millisecond)
	return s
}

func TestWithoutATerminalOnePageIsPrinted(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	require.Equal(t, apptest.Outcome(0, "Nobody waits for anything in namespace berth.\n", ""), apptest.Call(t, s.URL(), "top"))

	s = jam(t)
	rows := `lock +nightly +1/1 +2 +[\d.]+m?s +"two\\x1b\[2J" +[\d.]+m?s +held +\d+s\nsem +gpu +1/1 +1 +[\d.]+m?s +host-1/one +[\d.]+m?s +full +\d+s\n`
	var got apptest.Result
	require.Eventually(t, func() bool { // who has come less than a second ago may be missed
		got = apptest.Call(t, s.URL(), "top")
		var found topDocument
		return json.Unmarshal([]byte(apptest.Call(t, s.URL(), "top", "--json").Out), &found) == nil && len(found.Names) == 2
	}, apptest.Patience, 10*time.Millisecond)
	got = apptest.Call(t, s.URL(), "top")
	require.Zero(t, got.Code, got.Err)
	require.Empty(t, got.Err)
	require.Regexp(t, `^KIND +NAME +HELD +WAITING +OLDEST +HELD BY +FOR +STATE +AGE\n`+rows+`$`, got.Out)
	got = apptest.Call(t, s.URL(), "top", "--kind", "sem")
	require.NotContains(t, got.Out, "lock")
	require.Contains(t, got.Out, "gpu")

	got = apptest.Call(t, s.URL(), "top", "--kind", "sem", "--json")
	require.Zero(t, got.Code, got.Err)
	var document topDocument
	require.NoError(t, json.Unmarshal([]byte(got.Out), &document))
	require.Len(t, document.Names, 1)
	n := document.Names[0]
	require.Equal(t, []any{"gpu", "full", 1, 1, 1, "host-1/one", "order 66"}, []any{n.Name, n.State, n.Capacity, n.Held, n.Waiting, n.Label, n.Owner})
	require.Positive(t, n.HeldMs)
	require.Nil(t, n.Pause)
}

func TestWrongUsageOfTop(t *testing.T) {
	t.Parallel()
	require.Equal(t, apptest.Outcome(64, "", "berth: invalid --kind: \"bus\" is none of sem, lock, pool\nSee 'berth top --help'.\n"), apptest.Call(t, apptest.Nobody, "top", "--kind", "bus"))
	require.Equal(t, 64, apptest.Call(t, apptest.Nobody, "top", "more").Code)
	require.Equal(t, 69, apptest.Call(t, apptest.Nobody, "top").Code)
}

// refusedDial is what a call meets where nobody listens.
var refusedDial = &scriptkit.Error{Attempts: 16, Repeatable: true, Unavailable: true, Err: fmt.Errorf("notice: %w", &net.OpError{
	Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7391}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
})}

func TestAnErrorIsToldInPlainWords(t *testing.T) {
	silent := &scriptkit.Error{Script: "sem_pause", Keys: []string{"k"}, Attempts: 2, MaybeRan: true, Unavailable: true, Err: errors.New("no answer in time")}
	came := errors.New("berth: 2 claims came")
	const away = "the server does not answer"
	for name, tt := range map[string]struct {
		err  error
		says string
	}{
		"nobody listens":      {refusedDial, away},
		"of a name":           {fmt.Errorf("pool \"x\": %w", refusedDial), away},
		"silence":             {silent, away},
		"a broken connection": {&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, away},
		"several":             {errors.Join(came, refusedDial, silent), "2 claims came; " + away},
		"of two":              {fmt.Errorf("berth: the name: %w, %w", came, errors.New("and left")), "the name: berth: 2 claims came, and left"},
		"loading": {
			&scriptkit.Error{Attempts: 3, Repeatable: true, Unavailable: true, Err: fmt.Errorf("notice: %w", answered(t, "LOADING it is loading"))},
			"the server refuses for now: LOADING it is loading",
		},
		"no right":    {&scriptkit.Error{Script: "sem_pause", Attempts: 1, Err: answered(t, "NOPERM no")}, "script sem_pause: NOPERM no"},
		"a stranger":  {&scriptkit.Error{Attempts: 1, Unavailable: true, Err: &tls.CertificateVerificationError{Err: errors.New("expired")}}, "tls: failed to verify certificate: expired"},
		"no network":  {errors.New("berth: changed\nmeanwhile"), "changed meanwhile"},
		"out of time": {context.DeadlineExceeded, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.says, words(tt.err)) })
	}

	p := begin(t, 80, 24)
	p.names(contended("a", 1))
	p.send(reading{subject: p.top().subject(), seq: 2, err: refusedDial, at: noon, now: noon.Add(9 * time.Second)})
	p.shows("! this is 9s old, and cannot be read anew: the server does not answer")
	p.showsNot("127.0.0.1", "notice", "attempts")
	pause := act.Action{Verb: act.Pause, Kind: keyspace.Sem, Name: "a"}
	p.send(outcome{action: pause, err: refusedDial})
	p.shows("pause a: not done: the server does not answer")
	p.send(outcome{action: pause, err: silent})
	p.shows("pause a: it may have been done: the server does not answer")
}

// answered is an error that a server has answered.
func answered(t *testing.T, text string) error {
	t.Helper()
	url := apptest.Answering(t, func(args []string) string {
		if args[0] == "PING" {
			return "-" + text
		}
		return "+OK"
	})
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{strings.TrimPrefix(url, "redis://")}, AlwaysRESP2: true, DisableCache: true, ForceSingleClient: true, DisableRetry: true,
	})
	require.NoError(t, err)
	defer client.Close()
	err = client.Do(t.Context(), client.B().Ping().Build()).Error()
	require.ErrorContains(t, err, text)
	return err
}
