package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/origin"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

func newConsole(t *testing.T, cfg Config) *Console {
	t.Helper()
	cfg.Redis = berthtest.New(t).Client()
	c, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

func TestAViewIsRenderedOnceForAllWhoMayDoTheSame(t *testing.T) {
	c := newConsole(t, Config{})
	look := func(kind string, act bool) *board {
		b, err := c.boards.look(topic{page: overviewPage, query: url.Values{"kind": {kind}}, act: act})
		require.NoError(t, err)
		return b
	}
	one, two, acting, other := look("sem", false), look("sem", false), look("sem", true), look("lock", false)
	require.Same(t, one, two)
	require.NotSame(t, one, acting)
	require.NotSame(t, one, other)
	for _, b := range []*board{one, two, acting, other} {
		b.Close()
	}
	require.Empty(t, c.boards.open)
}

func TestATextOfATimelineHasRoom(t *testing.T) {
	require.Equal(t, "größe", cut("größe", 5))
	require.Equal(t, "grö…", cut("größe 4", 4))
	now := time.Now()
	for wide, text := range map[time.Duration]string{11: "", 12: "grö…", 20: "größe …", 21: "größe 45"} {
		line := timeline{From: now, To: now.Add(200)}
		require.Equal(t, text, line.bar(watch.Span{Holder: berth.Holder{Label: "größe 45", Granted: now}, To: now.Add(wide)}).Text, wide)
	}
	require.Equal(t, "-", utc(time.Time{}))
	require.Equal(t, "2026-01-02 03:04:05 UTC", utc(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
}

func TestBySomeNamesItIsAskedFor(t *testing.T) {
	access := func(*http.Request) Access { return Access{} }
	for _, tt := range []struct {
		cfg         Config
		known, evil []string
	}{
		{Config{}, []string{"localhost", "10.0.0.5"}, []string{"evil.test:8080"}},
		{Config{Access: access}, []string{"evil.test:8080", "localhost"}, nil},
		{Config{Hosts: []string{"*"}}, []string{"evil.test:8080"}, nil},
		{Config{Hosts: []string{"ops.test"}}, []string{"ops.test:8080", "10.0.0.5:80"}, []string{"localhost", "evil.test"}},
		{Config{Access: access, Hosts: []string{"ops.test"}}, []string{"ops.test"}, []string{"evil.test"}},
	} {
		c := newConsole(t, tt.cfg)
		for _, host := range tt.known {
			require.True(t, origin.Known(host, c.cfg.Hosts), host)
		}
		for _, host := range tt.evil {
			require.False(t, origin.Known(host, c.cfg.Hosts), host)
		}
	}
}

// told is a source that a test writes.
type told struct {
	reading
	refused error
	asked   int // how often its view was wanted
	closed  bool
}

func (s *told) last(known int) (reading, <-chan struct{}) {
	if known != s.seq {
		s.asked++
	}
	return s.reading, nil
}
func (s *told) Anew(int)     {}
func (s *told) Never() error { return s.refused }
func (s *told) Close()       { s.closed = true }

func (s *told) topic() topic {
	p := *overviewPage
	p.open = func(*Console, url.Values) (source, error) { return s, nil }
	return topic{page: &p, query: url.Values{}}
}

func TestWhatCannotBeReadHasNoBoard(t *testing.T) {
	c := newConsole(t, Config{})
	for _, err := range []error{watch.ErrMany, watch.ErrClosed} {
		s := &told{refused: err}
		_, got := c.boards.look(s.topic())
		require.Equal(t, err, got)
		require.True(t, s.closed)
		require.Empty(t, c.boards.open, "the next one asks again")
		require.Equal(t, http.StatusServiceUnavailable, codeOf(got))
	}
	c.watch.Close() // so no feed can be
	out := httptest.NewRecorder()
	c.ServeHTTP(out, httptest.NewRequest(http.MethodGet, "http://localhost/events?page=overview", nil))
	require.Equal(t, http.StatusServiceUnavailable, out.Code)
}

func TestAReadingIsRenderedOnceAndOnlyForWhoLooks(t *testing.T) {
	c := newConsole(t, Config{})
	now := time.Now()
	s := &told{reading: reading{seq: 1, view: overview{}, at: now, clock: now}}
	one, err := c.boards.look(s.topic())
	require.NoError(t, err)
	require.Zero(t, s.asked)
	first, _ := one.last()
	one.last()
	require.Equal(t, 1, s.asked)
	require.Equal(t, 1, first.pieces["names"].since)

	s.reading = reading{seq: 2, view: overview{}, at: now, clock: now, err: errors.New("x")}
	failed, _ := one.last()
	require.Equal(t, first.pieces, failed.pieces, "it keeps what it had")
	s.reading = reading{seq: 5, view: overview{Replica: true}, at: now.Add(time.Second), clock: now}
	other, _ := one.last()
	require.Equal(t, 3, other.pieces["names"].since)
	one.Close()
	require.True(t, s.closed)
}

func TestWithoutAReadingAPageKeepsWhatItHas(t *testing.T) {
	c := newConsole(t, Config{})
	s := &told{reading: reading{seq: 1, err: errors.New("x")}}
	b, err := c.boards.look(s.topic())
	require.NoError(t, err)
	defer b.Close()
	shown, _ := b.last()
	require.NotContains(t, string(shown.since(0, overviewPage)), "event: region")
	require.Contains(t, string(shown.since(0, overviewPage)), "event: beat")
}

func TestWhatCountsAsAChange(t *testing.T) {
	c := newConsole(t, Config{})
	now := time.Now()
	html := func(parts ...any) uint64 { return bones(c.boards.seed, fmt.Sprint(parts...)) }
	since, other := now.Add(-time.Minute), now.Add(-time.Hour)
	plain := html("<p>", age(now, since), "</p>")
	require.Equal(t, plain, html("<p>", age(now.Add(time.Second), since), "</p>"))
	require.NotEqual(t, plain, html("<p>", age(now, other), "</p>"))
	require.NotEqual(t, plain, html("<p>", age(now, since), "</p>x"))
	require.NotEqual(t, plain, html("<p>x", age(now, since), "</p>"))
	require.Equal(t, html(readAt(now, since), "x"), html(readAt(now, other), "x"))
	require.NotEqual(t, html(readAt(now, since), "x"), html(readAt(now, since), "y"))
}

func TestAtMostTwoHundredRowsAreShown(t *testing.T) {
	c := newConsole(t, Config{})
	render := func(p *page, region string, view any) string {
		return string(c.region(topic{page: p, query: url.Values{}}, region, &reading{view: view, clock: time.Now()}))
	}
	var names inspect.Page[berth.Name]
	var claims watch.Claims
	var links []inspect.Link
	var cycles inspect.Cycles
	var n watch.Name
	for i := range rowsMost + 1 {
		names.Items = append(names.Items, berth.Name{Kind: keyspace.Sem, Name: fmt.Sprint(i)}, berth.Name{Kind: keyspace.Lock, Name: fmt.Sprint(i)})
		claims.Items = append(claims.Items, inspect.Claim{Name: fmt.Sprint(i), Wait: &berth.Waiter{ID: fmt.Sprint(i)}})
		links = append(links, inspect.Link{Wait: claims.Items[i]})
		cycles.Cycles = append(cycles.Cycles, inspect.Cycle{Links: links[i:]})
		n.Resources, n.Damaged = append(n.Resources, inspect.Resource{Key: fmt.Sprint(i)}), append(n.Damaged, "x")
		names.Problems = append(names.Problems, errors.New("x"))
	}
	n.Kind = keyspace.Pool
	for what, html := range map[string]string{
		"overview": render(overviewPage, "names", overviewOf(names, keyspace.Lock, "")),
		"claims":   render(searchPage, "claims", claimListOf(claims)),
		"cycles":   render(cyclesPage, "cycles", cyclesOf(cycles)),
		"links":    render(cyclesPage, "cycles", cyclesOf(inspect.Cycles{Cycles: []inspect.Cycle{{Links: links}}})),
		"resource": render(namePage, "resources", nameOf(n, "", nil)),
	} {
		require.Equal(t, rowsMost, strings.Count(html, "<tr role=\"row\" id="), what)
		require.Contains(t, strings.ToLower(html), "there are more", what)
	}
	require.Contains(t, render(overviewPage, "names", overviewOf(names, "", "")), "<caption>Names in use, the worst first")
	waited := overviewOf(inspect.Page[berth.Name]{Items: []berth.Name{{Waiting: 1}}}, "", "")
	require.Contains(t, render(overviewPage, "names", waited), "<caption>Names that somebody waits for, the worst first")
	require.Len(t, problemsOf(names.Problems), rowsMost+1)
	require.Equal(t, 1, nameOf(n, "", nil).MoreDamaged)
	dead := inspect.Page[berth.Name]{Items: []berth.Name{{Waiting: 1, Dead: 1}}, Stuck: 7, Unread: 3}
	html := render(overviewPage, "names", overviewOf(dead, "", ""))
	require.Contains(t, html, "7 stuck</a>; 3 not looked at</p>", "also without a row")
	require.Contains(t, html, "<caption>Names in use")
	require.Contains(t, render(overviewPage, "names", overviewOf(dead, keyspace.Lock, "")), "0 stuck</a>; 3 not")
	drains := watch.Drains{Page: inspect.Page[berth.Drain]{Items: []berth.Drain{
		{DrainTarget: berth.DrainTarget{Label: "<b>*"}, Since: time.Now(), Reason: "<i>"},
	}, At: time.Now().Add(2 * time.Hour)}, Err: inspect.ErrDrainsUnreadable}
	html = render(overviewPage, "names", overviewOf(dead, "", "").with(drains, "prod"))
	require.Contains(t, html, `drain of label &#34;&lt;b&gt;*&#34; since 2h00m: &#34;&lt;i&gt;&#34;. To end it: <code>berth drain --namespace prod --label &#39;&lt;b&gt;*&#39; --stop</code>`)
	require.Contains(t, html, "drains are not readable (needs &#43;hscan)")
	require.False(t, overviewOf(inspect.Page[berth.Name]{Items: names.Items[:2*rowsMost]}, keyspace.Sem, "").More)
}

func TestANameThatCannotBeReadSaysWhyInItsRow(t *testing.T) {
	c := newConsole(t, Config{})
	now := time.Now()
	names := []berth.Name{{Kind: keyspace.Sem, Name: "gpu", At: now, Err: errors.New("MOVED 3999 10.0.0.7:6379")}, {Kind: keyspace.Lock, Name: "night", At: now}}
	render := func(names ...berth.Name) string {
		page := inspect.Page[berth.Name]{Items: names, At: now}
		return string(c.region(topic{page: overviewPage, query: url.Values{}}, "names", &reading{view: overviewOf(page, "", ""), clock: now}))
	}
	both := render(names...)
	require.Contains(t, both, `<td role="cell" data-label="Problem">MOVED 3999 (a server)</td>`)
	require.Contains(t, both, `<td role="cell" data-label="Problem">-</td>`)
	require.NotContains(t, render(names[1:]...), "Problem", "a column that says nothing is left out")
	names = append([]berth.Name{{Kind: keyspace.Lock, Name: "ledger", Err: errors.New("a newer form")}}, names...)
	names[2].At = now.Add(-time.Minute)
	view := overviewOf(inspect.Page[berth.Name]{Items: names, At: now}, "", "")
	beat := (&shown{reading: reading{view: view, clock: now}}).beat(overviewPage)
	require.Equal(t, 2, strings.Count(render(names...), "data-read"), "of one that was never read, no row says when")
	require.Equal(t, []int64{now.UnixMilli(), now.Add(-time.Minute).UnixMilli()}, beat.Reads)
	names = names[1:]
	again := names[1]
	again.At = now.Add(-time.Second)
	require.NotEqual(t, render(names[1]), render(again))
	require.Equal(t, bones(c.boards.seed, render(names[1])), bones(c.boards.seed, render(again)), "when it was read is no change")
}

func TestOnlyWhoMayActHasActionsInRows(t *testing.T) {
	c := newConsole(t, Config{})
	now := time.Now()
	var n watch.Name
	n.Kind, n.Look.Name.Name, n.At = keyspace.Pool, "proxies", now
	n.Holds = []inspect.Hold{{Holder: berth.Holder{ID: "node-0123456789abcdef.claim-0001", Owner: "anna", Lease: time.Minute, Left: time.Minute, Granted: now}, Process: inspect.Overdue}}
	n.Resources = []inspect.Resource{{Key: "a", Claims: []string{n.Holds[0].ID}}, {Key: "b", Rests: time.Minute}}
	render := func(region string, act bool) string {
		return string(c.region(topic{page: namePage, query: url.Values{}, act: act}, region, &reading{view: nameOf(n, "", nil), clock: now}))
	}
	for _, region := range []string{"holders", "resources"} {
		require.NotContains(t, render(region, false), "Action")
		require.NotContains(t, render(region, false), "act?")
	}
	require.Contains(t, render("holders", true), `aria-label="Release claim node-012…aim-0001">Release</a>`)
	require.Contains(t, render("holders", true), `<a class="id" href="claim?id=node-0123456789abcdef.claim-0001&amp;kind=pool&amp;name=proxies">node-012…aim-0001</a>`)
	require.Contains(t, render("holders", true), `<span class="state bad">overdue</span>`)
	require.Contains(t, render("resources", true), `>anna</a>`, "whom it is held by, where its node has no label")
	require.Contains(t, render("resources", true), `verb=rest" aria-label="Rest: a">Rest</a>`)
	require.Contains(t, render("resources", true), `for=0&amp;kind=pool&amp;name=proxies&amp;resource=b&amp;verb=rest" aria-label="End rest: b">End rest</a>`)
}

func TestAProblemIsToldInPlainWordsAndNotWhereTheServerIs(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 6379}, Err: io.EOF}
	for _, tt := range []struct {
		err  error
		says string
	}{
		{nil, ""},
		{fmt.Errorf("x: %w: %w", berth.ErrUnavailable, dial), "the server is unavailable: it does not answer, or refuses for now"},
		{fmt.Errorf("x: %w", dial), "the server does not answer"},
		{&net.DNSError{Name: "redis.internal"}, "the server does not answer"},
		{errors.New("the server 10.0.0.7:6379 is gone"), "the server (a server) is gone"},
		{errors.New("MOVED 3999 [fd00::7]:6379"), "MOVED 3999 (a server)"},
		{errors.New("ask redis-1.internal:6379"), "ask (a server)"},
		{errors.New(`script x on "gpu:80": WRONGTYPE`), `script x on "gpu:80": WRONGTYPE`},
		{berth.Invalid("for", "%q is no time", "10:30"), `invalid for: "10:30" is no time`},
		{fmt.Errorf("notice: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}), "the server does not answer"},
		{fmt.Errorf("notice: %w", &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}), "the server does not answer"},
		{scriptkit.Failure(context.Background(), "notice", dial), "the server is unavailable: it does not answer, or refuses for now"},
		{&scriptkit.Error{Attempts: 2, Err: fmt.Errorf("revision: %w", errors.New("NOPERM no"))}, "NOPERM no"},
		{&scriptkit.Error{Script: "x", Keys: []string{"k"}, Err: errors.New("the server is full")}, "the server is full"},
		{fmt.Errorf("one of three: %w", &scriptkit.Error{Err: fmt.Errorf("x: %w", io.EOF)}), "one of three: EOF"},
		{fmt.Errorf("the claim has ended by itself: %w", berth.ErrNotHeld), "the claim has ended by itself: not held"},
		{errors.New("berth: berth: x"), "x"},
	} {
		require.Equal(t, tt.says, problem(tt.err), "%v", tt.err)
	}
}

func TestADrainThatGoesOnIsNotForgotten(t *testing.T) {
	d := newDeeds()
	drain, err := d.begin(act.Action{Verb: act.Drain, Label: "x"}, "")
	require.NoError(t, err)
	for range 2 * deedsMost {
		id, err := d.begin(act.Action{Verb: act.Pause}, "")
		require.NoError(t, err)
		d.end(id, "", nil, 0)
	}
	require.NotNil(t, d.about(drain, "actions", nil))
	require.Len(t, d.all, deedsMost)

	again := func() error { _, err := d.begin(act.Action{Verb: act.Drain, Label: "x"}, ""); return err }
	for range drainsMost - 1 {
		require.NoError(t, again())
	}
	require.Equal(t, errDrains, again())
	d.end(drain, "", nil, 0)
	require.NoError(t, again(), "one has ended")
}

func TestAForgottenFormIsRefused(t *testing.T) {
	f := &forms{posts: map[int]*post{}}
	for range postsMost + 1 {
		_, first, err := f.post(f.next())
		require.NoError(t, err)
		require.True(t, first)
	}
	_, _, err := f.post(1)
	require.Equal(t, errOld, err)
	_, first, err := f.post(2)
	require.NoError(t, err)
	require.False(t, first)
}

// In virtual time: the server has 2 s to answer.
func TestAServerThatAnswersIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsole(t, Config{})
		require.Equal(t, errBusy, c.late())
	})
}

func TestThePageHasTheCommandThatMends(t *testing.T) {
	e := inspect.Explanation{Mend: []inspect.Mend{
		{Verb: "unpause", Kind: keyspace.Sem, Name: "a b", If: "you may"}, {Verb: "unpause", Kind: keyspace.Sem, Name: "\x00"},
	}}
	for namespace, command := range map[string]string{
		"": "berth sem unpause 'a b'", keyspace.DefaultNamespace: "berth sem unpause 'a b'", "prod": "berth sem unpause --namespace prod 'a b'",
	} {
		c := &Console{cfg: Config{Namespace: namespace}, pages: parsed()}
		all := c.mends(&e)
		require.Equal(t, []view.Mending{{If: "you may", Command: command}}, all)
		html := c.region(topic{page: claimPage}, "state", &reading{view: &name{Mends: all}})
		require.Contains(t, string(html), "To mend it, if you may: <code>"+strings.ReplaceAll(command, "'", "&#39;")+"</code>")
	}
	require.Empty(t, (&Console{}).mends(nil))
}
