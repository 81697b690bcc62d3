package top

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

// jam is a server on which somebody waits for a semaphore, and two for a lock.
func jam(t *testing.T) *embedded.Server {
	t.Helper()
	s, ctx := apptest.Server(t), context.Background()
	gpu := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "host-1/one"}), "gpu", 1, semaphore.Config{})
	apptest.Got(gpu.Acquire(apptest.Owned("order 66"), nil))(t)
	go func() { _, _ = gpu.Acquire(ctx, nil) }() // ends with the node
	locks := apptest.LocksOf(t, s, node.Config{Label: "two\x1b[2J"})
	apptest.Got(locks.Lock(ctx, "nightly", nil))(t)
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
	var got apptest.Result
	require.Eventually(t, func() bool { // who has come less than a second ago may be missed
		got = apptest.Call(t, s.URL(), "top")
		var found inspect.Page[berth.Name]
		return json.Unmarshal([]byte(apptest.Call(t, s.URL(), "top", "--json").Out), &found) == nil && len(found.Items) == 2
	}, apptest.Patience, 10*time.Millisecond)
	got = apptest.Call(t, s.URL(), "top", "--kind", "sem")
	require.NotContains(t, got.Out, "lock")
	require.Contains(t, got.Out, "gpu")
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
	client := apptest.Got(apptest.Server(t).Client(apptest.Patiently, func(o *rueidis.ClientOption) { o.DisableRetry = true }))(t)
	defer client.Close()
	err := client.Do(t.Context(), client.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(text).Build()).Error()
	require.EqualError(t, err, text)
	return err
}

// program is berth with this command alone: its tests know what others may not.
func program(args []string, in io.Reader, out, errs io.Writer) int {
	return app.Execute(args, in, out, errs, func(a *app.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
}

func TestMain(m *testing.M) { apptest.Main(m, program) }

// wild are texts of strangers.
var wild = []string{
	"", " ", "\x1b[2J\x1b]0;owned\a", "a\nb\r\tc", "\u202egnp.exe", "日本語の名前日本語の名前日本語の名前", "👩‍👩‍👧‍👦🇩🇪🏴‍☠️", "e\u0301\u0301\u0301\u0301", "\u0301x",
	strings.Repeat("x", 512), strings.Repeat("日", 170), "\xff\xfe", "a\u200bb\u2028c", "שלום עולם", "ｗｉｄｅ", "한국어", "กำ", "\u1100\u1161\u11a8",
}

// wildPlay is a model in which everything is a stranger's.
func wildPlay(t *testing.T, w string, width, height int) *play {
	t.Helper()
	p := begin(t, width, height)
	p.namespace = w
	pool := of(keyspace.Pool, contended("x"+w, 1<<40))
	pool.Longest = &berth.Holder{ID: w, Label: w, Owner: w, Node: w, Granted: noon}
	pool.Pool, pool.Pause = &berth.PoolInfo{}, &berth.Pause{Left: time.Hour, Reason: w}
	broken := contended("y"+w, 1)
	broken.Err = fmt.Errorf("what is stored of %s is damaged", w)
	p.names(pool, broken)
	return p
}

func (p *play) wildName(w string) {
	l := looked(of(keyspace.Pool, contended("x"+w, 1)), []string{"n1." + w}, []string{"n2." + w}, inspect.Resource{Key: "k" + w, Rests: berth.Forever, Reason: w})
	l.Explanation.Why, l.Damaged = w+" "+w, []string{w}
	l.Explanation.Mend = []inspect.Mend{{Verb: "rest", Kind: keyspace.Pool, Name: w, Resource: w, If: "it is so"}}
	cycle := knot("x"+w, w)
	l.Cycle = &cycle
	for i := range l.Holds {
		h := &l.Holds[i].Holder
		h.Label, h.Owner, h.Meta = w, w, map[string]string{w: w}
	}
	for i := range l.Waits {
		l.Waits[i].Label, l.Waits[i].Owner = w, w
		l.Waits[i].Explanation.Why = w + " " + w
	}
	p.reads(l)
}

// Each screen fills each window exactly, whatever strangers have written; no text of theirs reaches the terminal as a command.
func TestEveryScreenFitsEveryWindow(t *testing.T) {
	sizes := [][2]int{{0, 0}, {1, 1}, {39, 10}, {40, 10}, {56, 12}, {80, 24}, {119, 31}, {150, 50}, {300, 12}}
	for _, w := range wild {
		for _, size := range sizes {
			for _, keys := range []string{"", "a", "/ 'x'", "?", "p", "p '5m' enter", "p '5m' enter enter", "enter", "enter enter", "enter x", "enter G", "enter j n", "enter G t", "enter r enter", "c"} {
				p := wildPlay(t, w, size[0], size[1])
				for _, key := range strings.SplitAfter(keys, "enter") {
					p.keys(key)
					if s, ok := p.top().(*nameScreen); ok && s.look.At.IsZero() {
						p.wildName(w)
					}
				}
				for i := range 2 {
					for _, r := range p.screen() {
						if r != '\n' && text.Unreadable(r) {
							require.Failf(t, "it shows what cannot be read", "%q at %v after %q: %q", w, size, keys, r)
						}
					}
					if i == 0 {
						p.status, p.now = "pause "+text.Plain(w)+": done", noon.Add(time.Hour)
					}
				}
			}
		}
	}
}

// Whatever is pressed, read and resized in whatever order, all that is shown fits.
func TestNoOrderOfKeysBreaksAnything(t *testing.T) {
	keys := []string{"up", "down", "pgup", "pgdown", "home", "end", "enter", "enter", "esc", "tab", "s", "!", "/", "a", ">", "<", ".", "c", "?", "n", "x", "r", "p", "u", "z", "t", "d", "D", "y", "5", "m", "backspace", "q"}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := begin(t, 80, 24)
		for range 200 {
			switch random.IntN(6) {
			case 0:
				p.send(tea.WindowSizeMsg{Width: random.IntN(210), Height: random.IntN(60)})
			case 1:
				p.send(tick(p.now.Add(time.Second)))
			case 2:
				p.reading(random)
			default:
				p.keys(keys[random.IntN(len(keys))])
			}
			p.screen()
		}
	}
}

// reading delivers what might have been read.
func (p *play) reading(random *rand.Rand) {
	some := func(of ...string) []string {
		random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		return of[:random.IntN(len(of)+1)]
	}
	switch p.top().subject().topic {
	case overview:
		var names []berth.Name
		for _, name := range some("a", "b", "c", "d") {
			levels := []berth.Level{"", berth.LevelStuck, berth.LevelMeant, berth.LevelBusy}
			names = append(names, bad(name, random.IntN(5), levels[random.IntN(len(levels))], inspect.InCycle))
		}
		p.names(names...)
	case ofName:
		pool := of(keyspace.Pool, contended("a", 1))
		claims := some("n1.a", "n2.b", "n3.c", "n4.d")
		cut := random.IntN(len(claims) + 1)
		p.reads(looked(pool, claims[:cut], slices.Clone(claims[cut:]), inspect.Resource{Key: "p1"}))
	case cycles:
		p.reads(inspect.Cycles{At: noon})
	}
}

func TestColourIsNeverTheOnlySign(t *testing.T) {
	show := func(colors bool) []string {
		p := begin(t, 80, 24)
		p.paper.colors = colors
		paused := contended("a", 2)
		paused.Pause, paused.Trouble.Level = &berth.Pause{Left: time.Minute}, berth.LevelMeant
		broken := contended("b", 1)
		broken.Err = fmt.Errorf("damaged")
		p.names(contended("c", 3), paused, broken)
		p.say(true, "pause a: not done")
		return p.lines()
	}
	colored, without := strings.Join(show(true), "\n"), strings.Join(show(false), "\n")
	require.Contains(t, colored, "\x1b[33m")
	require.NotRegexp(t, `\x1b\[3\d`, without)
	require.Equal(t, ansi.Strip(colored), ansi.Strip(without))
	require.Contains(t, without, "\x1b[7m> sem  a")
	require.Contains(t, colored, "\x1b[7m\x1b[33m> sem  a", "also the selected one")
}
