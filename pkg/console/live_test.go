package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

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

func TestStreamsAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve("", console.Config{MaxStreams: 2, Access: userOf})
		first := s.open("page=overview&user=anna")
		s.open("page=overview&user=bert")
		require.Equal(t, http.StatusServiceUnavailable, s.open("page=overview&user=cleo").code)
		require.Equal(t, http.StatusOK, s.get("").code, "the page is there, if not live")
		first.close()
		w.Advance(time.Second)
		require.Equal(t, http.StatusOK, s.open("page=overview&user=cleo").code)
	})
}

// userOf is an Access for which an address says who asks.
func userOf(r *http.Request) console.Access {
	return console.Access{User: r.URL.Query().Get("user"), Look: true}
}

func TestNobodyHasMoreThanAQuarterOfTheStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve("", console.Config{MaxStreams: 8, Access: userOf})
		for _, who := range []string{"anna", "bert", ""} { // the last one is an address
			first := s.open("page=overview&user=" + who)
			require.Equal(t, http.StatusOK, s.open("page=circles&user="+who).code)
			require.Equal(t, http.StatusServiceUnavailable, s.open("page=overview&user="+who).code, who)
			first.close()
			w.Advance(time.Second)
			require.Equal(t, http.StatusOK, s.open("page=overview&user="+who).code)
		}
	})
}

func TestAPageOfNamesIsReadOnceForAll(t *testing.T) {
	inWorld(t, func(w *world) {
		w.process("first").permit("anna", "gpu", 1)
		var commands atomic.Int64
		s := w.serve("", console.Config{Redis: counted{w.Redis, &commands}})
		require.Contains(t, s.see("names"), "gpu")
		one := commands.Load()
		require.Positive(t, one)
		for range 10 {
			require.Contains(t, s.see("names"), "gpu")
		}
		require.Equal(t, one, commands.Load())
		require.NotContains(t, s.see("names?prefix=x"), "gpu")
		other := commands.Load()
		require.Greater(t, other, one)
		w.Advance(2 * time.Second)
		s.see("names")
		require.Greater(t, commands.Load(), other)
	})
}

func TestCloseEndsAPageOfNames(t *testing.T) {
	inWorld(t, func(w *world) {
		way := w.Process()
		s := w.serve("", console.Config{Redis: way.Redis, CallTimeout: time.Minute})
		s.see("names")
		w.Advance(5 * time.Second)
		way.Cut()
		asked := make(chan answer)
		go func() { asked <- s.get("names") }()
		synctest.Wait()
		require.NoError(t, s.page.Close(ctx))
		require.Equal(t, http.StatusServiceUnavailable, (<-asked).code)
	})
}

func TestCloseEndsTheStreams(t *testing.T) {
	onSite(t, func(w *world, s *site) {
		live := s.open("page=overview")
		w.Advance(time.Second)
		require.NoError(t, s.page.Close(ctx))
		<-live.ended
		require.Equal(t, http.StatusServiceUnavailable, s.get("").code)
		require.Equal(t, http.StatusServiceUnavailable, s.get("healthz").code)
	})
}

// counted counts what is asked of the server.
type counted struct {
	rueidis.Client
	commands *atomic.Int64
}

func (c counted) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.commands.Add(1)
	return c.Client.Do(ctx, cmd)
}

func (c counted) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	c.commands.Add(int64(len(cmds)))
	return c.Client.DoMulti(ctx, cmds...)
}

func TestHoweverManyBrowsersLookTheServerIsReadOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.process("first").permit("anna", "gpu", 1)
		var commands atomic.Int64
		s := w.serve("", console.Config{Redis: counted{w.Redis, &commands}, MaxStreams: 800})
		read := func(browsers int) (n int64) {
			for range browsers {
				s.see("name?kind=sem&name=gpu")
				s.open("page=name&kind=sem&name=gpu")
			}
			before := commands.Load()
			w.Advance(10 * time.Second)
			return commands.Load() - before
		}
		read(1)
		one := read(0)
		require.Positive(t, one)
		require.Equal(t, one, read(199))
	})
}

func TestWhoDoesNotReadIsDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve("", console.Config{MaxStreams: 1})
		slow := must(s.pipes.dial(ctx, "", "")).in(t)
		defer func() { _ = slow.Close() }()
		must(slow.Write([]byte("GET /events?page=overview HTTP/1.1\r\nHost: console.test\r\n\r\n"))).in(t)
		w.Advance(time.Second)
		require.Equal(t, http.StatusServiceUnavailable, s.open("page=overview").code)
		w.Advance(20 * time.Second)
		require.Equal(t, http.StatusOK, s.open("page=overview").code)
	})
}

func TestAStreamIsAskedForAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		live := w.serve("", console.Config{}).open("page=overview")
		w.Advance(14 * time.Minute)
		select {
		case <-live.ended:
			require.Fail(t, "it has ended early")
		default:
		}
		w.Advance(time.Minute)
		<-live.ended
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
