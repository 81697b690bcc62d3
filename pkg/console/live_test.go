package console_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/console"
)

func TestAHandOffAppears(t *testing.T) {
	onSite(t, func(w *world, s *site) {
		first, second := w.process("first"), w.process("second")
		held := first.permit("anna", "gpu", 1)
		waits := second.awaitPermit("bert", "gpu", 1)
		w.Advance(time.Second)

		page := s.see("name?kind=sem&name=gpu")
		require.Contains(t, page, "1 of 1")
		live := s.open("page=name&kind=sem&name=gpu")
		w.Advance(time.Second)
		html, _ := live.region("holders")
		require.Contains(t, html, "anna")
		require.NotContains(t, html, "bert")

		require.NoError(t, held.Release(ctx))
		waits.Granted(w.Now())
		w.Advance(time.Second)
		html, _ = live.region("holders")
		require.Contains(t, html, "bert")
		require.NotContains(t, html, "anna")
		html, times := live.region("line")
		require.Contains(t, html, "Nobody waits.")
		w.Advance(10 * time.Second)
		_, later := live.region("line")
		require.Equal(t, times, later, "what has not changed is not sent again")
		require.GreaterOrEqual(t, live.beats, 10)
	})
}

func TestStreamsAreBoundedAndNobodyHasMoreThanAQuarter(t *testing.T) {
	inWorld(t, func(w *world) {
		s, last := w.serve("", console.Config{MaxStreams: 8, Access: userOf}), (*stream)(nil)
		for _, who := range []string{"anna", "bert", "cleo", ""} { // the last one is an address
			first := s.open("page=overview&user=" + who)
			require.Equal(t, http.StatusOK, s.open("page=cycles&user="+who).code)
			require.Equal(t, http.StatusServiceUnavailable, s.open("page=overview&user="+who).code, who)
			first.close()
			w.Advance(time.Second)
			last = s.open("page=overview&user=" + who)
			require.Equal(t, http.StatusOK, last.code)
		}
		require.Equal(t, http.StatusServiceUnavailable, s.open("page=overview&user=dora").code)
		require.Equal(t, http.StatusOK, s.get("?user=dora").code, "the page is there, if not live")
		last.close()
		w.Advance(time.Second)
		require.Equal(t, http.StatusOK, s.open("page=overview&user=dora").code)
	})
}

// userOf is an Access for which an address says who asks.
func userOf(r *http.Request) console.Access {
	return console.Access{User: r.URL.Query().Get("user"), Look: true}
}

func TestAPageOfNamesIsReadOnceForAll(t *testing.T) {
	inWorld(t, func(w *world) {
		w.process("first").permit("anna", "gpu", 1)
		way := w.Process()
		s := w.serve("", console.Config{Redis: way.Redis})
		require.Contains(t, s.see("names"), "gpu")
		one := sent(way)
		require.Positive(t, one)
		for range 10 {
			require.Contains(t, s.see("names"), "gpu")
		}
		require.Equal(t, one, sent(way))
		require.NotContains(t, s.see("names?prefix=x"), "gpu")
		other := sent(way)
		require.Greater(t, other, one)
		w.Advance(2 * time.Second)
		s.see("names")
		require.Greater(t, sent(way), other)
	})
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	inWorld(t, func(w *world) {
		way := w.Process()
		s := w.serve("", console.Config{Redis: way.Redis, CallTimeout: time.Minute})
		live := s.open("page=overview")
		s.see("names")
		w.Advance(5 * time.Second)
		way.Cut()
		asked := make(chan answer)
		go func() { asked <- s.get("names") }()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- s.page.Close(ctx) }()
		synctest.Wait()
		select {
		case <-live.ended:
		default:
			require.Fail(t, "the stream goes on")
		}
		require.NoError(t, <-closed)
		for _, a := range []answer{<-asked, s.get(""), s.get("healthz")} {
			require.Equal(t, http.StatusServiceUnavailable, a.code)
		}
	})
}

// sent is how many commands a process has sent.
func sent(p *testkit.Process) (n int) {
	for _, times := range p.Counts() {
		n += times
	}
	return n
}

func TestWhoDoesNotReadIsDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve("", console.Config{MaxStreams: 1})
		slow := testkit.Must(s.pipes.dial(ctx, "", "")).In(t)
		defer func() { _ = slow.Close() }()
		testkit.Must(slow.Write([]byte("GET /events?page=overview HTTP/1.1\r\nHost: console.test\r\n\r\n"))).In(t)
		w.Advance(time.Second)
		require.Equal(t, http.StatusServiceUnavailable, s.open("page=overview").code)
		w.Advance(20 * time.Second)
		require.Equal(t, http.StatusOK, s.open("page=overview").code)
	})
}

func TestAStreamIsAskedForAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		live, opened := w.serve("", console.Config{}).open("page=overview"), w.Now()
		<-live.ended
		require.Equal(t, 15*time.Minute, w.Now()-opened)
	})
}

func TestNoStreamWithoutDeadlines(t *testing.T) {
	inWorld(t, func(w *world) {
		s, out := w.serve("", console.Config{}), httptest.NewRecorder()
		s.page.ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/events?page=overview", nil))
		require.Equal(t, http.StatusBadGateway, out.Code)
		require.Contains(t, out.Body.String(), "nothing is live")
	})
}
