package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestADeadProcessIsSeen(t *testing.T) {
	inWorld(t, func(w *world) {
		s, p, q, anew := w.serve("", console.Config{}), w.process("holder"), w.process("waiter"), w.process("anew")
		p.permit("anna", "gpu", 1)
		q.awaitPermit("bert", "gpu", 1)
		for _, p := range []*process{p, q, anew} { // which is overdue by the wait lease
			testkit.Must(semaphore.New(p.Node, p.ID(), 1, semaphore.Config{}).Acquire(ctx, &semaphore.AcquireOptions{Lease: time.Hour})).In(t)
		}
		require.NotContains(t, s.see("node?id="+anew.ID()), "should have been heard of", "it is not confirmed yet")
		w.Advance(2 * time.Second) // their heartbeats
		p.Die()
		require.NotContains(t, s.see(""), "overdue")
		w.Advance(5 * time.Second)
		require.Contains(t, s.see("name?kind=sem&name=gpu"), `<span class="state bad">overdue</span>`)
		require.Contains(t, s.see(""), `<span class="state bad">overdue</span>`)
		require.Contains(t, s.see("node?id="+p.ID()), "2 claims should have been heard of by now")
		require.NotContains(t, s.see("node?id="+q.ID()), "should have been heard of")
		w.Advance(5 * time.Second)
		page := s.see("name?kind=sem&name=gpu")
		require.NotContains(t, page, "overdue")
		require.Contains(t, page, "Nobody waits.", "the next one has it")
	})
}

func TestAClaimBehindAHundredHasAPage(t *testing.T) {
	inWorld(t, func(w *world) {
		s, p := w.serve("", console.Config{AllowActions: true}), w.process("worker")
		p.permit("anna", "gpu", 1)
		for i := range 101 {
			p.awaitPermit(fmt.Sprint(i), "gpu", 1)
		}
		w.Advance(time.Second)
		page := s.see("search?by=owner&q=100")
		page = s.see(linksOf(t, page, "claim?")[0])
		require.Contains(t, page, "100 ahead")
		require.Len(t, linksOf(t, page, "act?"), 1)
		page = s.see("claim?kind=sem&name=gpu&id=none.such")
		require.Empty(t, linksOf(t, page, "act?"))
		require.Contains(t, s.see("name?kind=sem&name=gpu"), "1 more not read")
	})
}

func TestACycleIsEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve("", console.Config{AllowActions: true})
		p, q := w.process("alpha"), w.process("beta")
		lock := func(p *process, owner, name string) func(context.Context) (*qlock.Lock, error) {
			return func(context.Context) (*qlock.Lock, error) { return p.locks.Lock(of(owner), name, nil) }
		}
		testkit.Must(lock(p, "order-1", "a")(ctx)).In(t)
		w.Advance(time.Second)
		held := testkit.Must(lock(q, "order-2", "b")(ctx)).In(t)
		first := testkit.Queue(ctx, w.World, lock(p, "order-1", "b"))
		testkit.Queue(ctx, w.World, func(ctx context.Context) (*qlock.Lock, error) {
			return q.locks.Lock(of("order-2"), "a", &qlock.LockOptions{MaxWait: time.Minute})
		})
		w.Advance(3 * time.Second)
		live := s.open("page=overview")
		w.Advance(3 * time.Second)
		html, _ := live.region("names")
		require.Contains(t, html, `<a href="./?state=stuck">2 stuck</a></p>`)
		require.Equal(t, 2, strings.Count(html, `<span class="state bad">stuck: cycle</span>`))
		require.Equal(t, 1, live.known())
		require.Contains(t, s.see("names"), "Cycles<span data-cycles> (1)</span>")
		require.Contains(t, s.see("search"), "Cycles<span data-cycles> (1)</span>")
		require.NotContains(t, s.get("nowhere").body, "(1)", "who may not look is told nothing")
		list := s.see("?state=stuck&kind=lock")
		require.Contains(t, list, "the worst first")
		require.Len(t, linksOf(t, list, "name?"), 2)
		require.Contains(t, s.see("?state=stuck&kind=sem"), "No semaphore is stuck.")
		require.Contains(t, s.see("?state=free"), "No name is free.")
		require.Equal(t, http.StatusBadRequest, s.get("?state=x").code)

		release := linksOf(t, s.see("cycles"), "act?")
		require.Len(t, release, 1, "the youngest hold")
		page := s.see("name?kind=lock&name=a")
		require.Contains(t, page, "In a cycle")
		require.Contains(t, page, "order-2 (beta) has held lock &#34;b&#34; for ")
		require.Contains(t, linksOf(t, page, "act?"), release[0])
		require.Contains(t, s.see(linksOf(t, page, "claim?")[0]), "In a cycle")
		testkit.Queue(ctx, w.World, func(ctx context.Context) (*qlock.Lock, error) {
			return q.locks.Lock(of("order-3"), "b", &qlock.LockOptions{MaxWait: 5 * time.Second})
		})
		w.Advance(2 * time.Second)
		all := linksOf(t, s.see("name?kind=lock&name=b"), "claim?")
		require.NotContains(t, s.see(all[len(all)-1]), "n a cycle", "it is behind it")
		s.ask(release[0]).do()
		<-held.Done()
		first.Granted(w.Now())
	})
}

func TestWhatIsSearchedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		s, p := w.serve("", console.Config{}), w.process("worker/1")
		w.process("worker/2").permit("\xff'", "other", 1)
		p.permit("anna", "gpu", 1)
		p.awaitPermit("bert", "gpu", 1)
		w.Advance(time.Second)
		for address, claims := range map[string]int{
			"search?by=owner&q=anna": 1, "search?by=owner&q=%ff'": 1, "search?by=owner&q=nobody": 0,
			"search?by=label&q=worker/1": 2, "search?by=label&q=worker/*": 3, "node?id=" + p.ID(): 2,
		} {
			page := s.see(address)
			requireHarmless(t, page)
			require.Len(t, linksOf(t, page, "claim?"), claims, address)
		}
		a := s.get("search?by=name&q=g%26")
		require.Equal(t, http.StatusSeeOther, a.code)
		require.Equal(t, "names?prefix=g%26", a.head.Get("Location"))
		require.Equal(t, "node?id=x", s.get("search?by=node&q=x").head.Get("Location"))
		for _, begins := range []string{"work", "work*"} {
			require.Equal(t, "search?by=label&q=work%2A", s.get("search?by=labels&q="+begins).head.Get("Location"))
		}
		require.Contains(t, s.see("search"), "Search")
		require.Equal(t, http.StatusBadRequest, s.get("search?by=colour&q=x").code)
	})
}

func TestNamesInUseHavePages(t *testing.T) {
	inWorld(t, func(w *world) {
		s, p := w.serve("", console.Config{}), w.process("worker")
		const many = 250
		for i := range many {
			p.permit("", fmt.Sprintf("gpu/%d", i), 1)
		}
		p.permit("", "other", 1)
		seen := map[string]bool{}
		for next := []string{"names?prefix=gpu"}; len(next) > 0; {
			page := s.see(next[0])
			for _, link := range linksOf(t, page, "name?") {
				seen[link] = true
			}
			if next = linksOf(t, page, "names?cursor="); len(next) > 0 {
				require.Contains(t, page, "there are more")
			}
		}
		require.Len(t, seen, many)
	})
}

func TestAFullNameHasPartsThatAreNotTooLong(t *testing.T) {
	inWorld(t, func(w *world) {
		s, p := w.serve("", console.Config{}), w.process("worker")
		for range 26 {
			p.permit("", "gpu", 26)
		}
		for range 60 {
			p.awaitPermit("", "gpu", 26)
		}
		claims := map[string]bool{}
		for n := 1; ; n++ {
			page := s.see(fmt.Sprintf("name?kind=sem&name=gpu&line=%d", n))
			for _, link := range linksOf(t, page, "claim?") {
				claims[link] = true
			}
			if len(linksOf(t, page, fmt.Sprintf("name?kind=sem&line=%d&name=gpu#h-line", n+1))) == 0 {
				require.Equal(t, 3, n)
				require.Contains(t, page, "51 to 60<")
				break
			}
		}
		require.Len(t, claims, 25+60, "one who holds is in the next part of those")
		for asked, shown := range map[string]string{"9": "26 to 26<", "-1": "1 to 25 <a rel=", "x": "1 to 25 <a rel="} {
			page := s.see("name?kind=sem&name=gpu&holders=" + asked)
			require.Contains(t, page, shown)
		}
	})
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		way := w.Process()
		s := w.serve("", console.Config{Redis: way.Redis, CallTimeout: time.Second})
		w.process("worker").permit("anna", "gpu", 1)
		require.Equal(t, "ok\n", s.get("healthz").body)
		live := s.open("page=name&kind=sem&name=gpu")
		require.NotContains(t, s.see("name?kind=sem&name=gpu"), ` class="old"`)
		w.Advance(3 * time.Second)
		way.Cut()
		w.Advance(time.Minute)
		require.NotEqual(t, "-", live.err, "the page says so")
		html, _ := live.region("holders")
		require.Contains(t, html, "anna", "and keeps what it had")
		require.Contains(t, s.see("name?kind=sem&name=gpu"), "Not read: ")
		require.Contains(t, s.see("name?kind=sem&name=gpu"), ` class="old"`)
		for _, address := range []string{"name?kind=sem&name=none", "names?prefix=none"} {
			a := s.get(address)
			require.Equal(t, http.StatusServiceUnavailable, a.code, address)
			require.Contains(t, a.body, "the server does not answer. This page asks again each 5 s")
			require.Equal(t, "5", a.head.Get("Refresh"))
		}
		a := s.get("claim?kind=sem&name=gpu&id=x")
		require.Equal(t, http.StatusServiceUnavailable, a.code)
		require.Equal(t, "5", a.head.Get("Refresh"))
		a = s.get("healthz")
		require.Equal(t, http.StatusServiceUnavailable, a.code)
		require.Equal(t, "the server does not answer\n", a.body)
		way.Mend()
		w.Advance(time.Minute)
		require.Equal(t, "-", live.err)
		require.Equal(t, "ok\n", s.get("healthz").body)
	})
}
