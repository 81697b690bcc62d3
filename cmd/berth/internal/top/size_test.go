package top

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

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
	pool.Pool, pool.Pause = &inspect.Pool{}, &berth.Pause{Left: time.Hour, Reason: w}
	broken := contended("y"+w, 1)
	broken.Err = fmt.Errorf("what is stored of %s is damaged", w)
	p.names(pool, broken)
	return p
}

func (p *play) wildName(w string) {
	l := looked(of(keyspace.Pool, contended("x"+w, 1)), []string{"n1." + w}, []string{"n2." + w}, inspect.Resource{Key: "k" + w, Rests: berth.Forever, Reason: w})
	l.Explanation.Why, l.Damaged = w+" "+w, []string{w}
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
	keys := []string{"up", "down", "pgup", "pgdown", "home", "end", "enter", "enter", "esc", "tab", "s", "/", "a", ">", "<", ".", "c", "?", "n", "x", "r", "p", "u", "z", "t", "d", "D", "y", "5", "m", "backspace", "q"}
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
	switch p.top().subject().view {
	case overview:
		var names []inspect.Name
		for _, name := range some("a", "b", "c", "d") {
			names = append(names, contended(name, random.IntN(5)))
		}
		p.names(names...)
	case ofName:
		pool := of(keyspace.Pool, contended("a", 1))
		claims := some("n1.a", "n2.b", "n3.c", "n4.d")
		cut := random.IntN(len(claims) + 1)
		p.reads(looked(pool, claims[:cut], slices.Clone(claims[cut:]), inspect.Resource{Key: "p1"}))
	case circles:
		p.reads(inspect.Circles{At: noon})
	}
}

func TestColourIsNeverTheOnlySign(t *testing.T) {
	show := func(colors bool) []string {
		p := begin(t, 80, 24)
		p.paper.colors = colors
		paused := contended("a", 2)
		paused.Pause = &berth.Pause{Left: time.Minute}
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
	require.Contains(t, without, "\x1b[7m> sem  c")
}
