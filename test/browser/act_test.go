package browser

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
)

// acting is a stage whose console lets Eva act.
func acting(t *testing.T) *stage {
	t.Helper()
	return newStage(t, console.Config{AllowActions: true, Access: func(*http.Request) console.Access {
		return console.Access{User: "eva", Look: true, Act: true}
	}})
}

// asks follows the link of an action, and returns when the page asks whether it is to be done.
func (l *look) asks(link, will string) {
	l.Helper()
	// The page moves beneath a mouse: what is clicked is what is found in the same instant.
	l.until(`(e => { if (e) e.click(); return e; })(` + link + `)`)
	l.until(`document.querySelector("form.act")`)
	if will != "" {
		l.shows("#will", will)
	}
}

// linked is the link of an action by a part of its text or label, within a part of the page that has a text.
func linked(within, has, text string) string {
	return `(p => p && [...p.querySelectorAll("a.act")].find(a => (a.textContent + (a.ariaLabel || "")).includes(` + quoted(text) + `)))` +
		`([...document.querySelectorAll(` + quoted(within) + `)].find(e => e.textContent.includes(` + quoted(has) + `)))`
}

// confirms enters a reason, and has it done. Where what was entered changes what will be done, it is read again.
func (l *look) confirms(reason, will string, fields ...string) {
	l.Helper()
	for i := 0; i < len(fields); i += 2 {
		l.types("[name="+fields[i]+"]", fields[i+1])
	}
	l.types("[name=reason]", reason)
	loads := l.Loads()
	l.clicks("form.act button.do")
	require.NoError(l, l.Loaded(l.step(), loads))
	if is[bool](l, `!!document.querySelector("form.act")`) {
		l.shows("main", "Read it, and confirm")
		l.shows("#will", will)
		l.clicks("form.act button.do")
	}
	l.until(`!document.querySelector("form.act") && document.querySelector(".notice.good, [data-live=deeds]")`)
}

// acted fails unless that was told last.
func (s *stage) actedBy(detail string, err error) {
	s.Helper()
	told := s.told()
	require.NotEmpty(s, told)
	last := told[len(told)-1]
	require.Equal(s, detail, last.Detail)
	require.Equal(s, s.ns, last.Namespace)
	require.Equal(s, err, last.Err)
}

func TestRelease(t *testing.T) {
	s := acting(t)
	held, waits := s.turns("gpu", "alpha", "beta", "gamma")
	l := s.open("name?kind=sem&name=gpu")
	l.asks(linked(holders+" tr", "alpha", "Release"), `Release claim "`+held.ID()+`" of semaphore "gpu" by force`)
	require.NoError(t, l.Eval(l.step(), `document.querySelector("form.act").noValidate = true`, nil))
	l.clicks("form.act button.do")
	l.shows(".notice.bad", "say why")
	l.right(answered(http.StatusBadRequest))
	require.NoError(t, held.Renew(s.Within(patience)), "nothing is done without a reason")
	require.Empty(t, s.told())
	l.confirms("it hangs <b>", "")
	l.shows(holders, "beta")
	l.shows(".notice.good", "the claim is released")
	_ = held.Renew(s.Within(patience)) // what it says, Err says too
	require.ErrorIs(t, held.Err(), berth.ErrReleased)
	require.NoError(t, waits[0].Wait(s).Err())
	s.actedBy(`release by "eva": "it hangs <b>"`, nil)

	// Of a claim that waits.
	l.asks(linked(line+" tr", "gamma", "Release"), "Release claim")
	l.confirms("nobody needs it", "")
	l.shows(line, "Nobody waits")
	waits[1].Fails(s, berth.ErrNotAcquired)
	l.right()

	// One that has ended meanwhile.
	l.goes("claim?kind=sem&name=gpu&id=" + waits[0].Got.ID())
	l.asks(linked("main", "", "Release"), "Release claim")
	require.NoError(t, waits[0].Got.Release(s.Within(patience)))
	l.types("[name=reason]", "too late")
	l.clicks("form.act button.do")
	l.shows(".notice.bad", "the claim has ended by itself")
}

func TestPauseAndUnpause(t *testing.T) {
	s := acting(t)
	held, waits := s.turns("gpu", "alpha", "beta")
	l := s.open("name?kind=sem&name=gpu")
	l.asks(linked("main", "", "Pause"), `Pause semaphore "gpu" for`)
	l.confirms("the rack is moved", `Pause semaphore "gpu" for 45m00s`, "for", "45m")
	l.shows("main", "the rack is moved")
	l.shows(".state", "paused")
	pause := s.read.Look(keyspace.Sem, "gpu").Pause
	require.NotNil(t, pause)
	require.Equal(t, "the rack is moved", pause.Reason)
	require.Greater(t, pause.Left, 40*time.Minute)
	require.LessOrEqual(t, pause.Left, 45*time.Minute)
	s.actedBy(`pause for 45m00s by "eva": "the rack is moved"`, nil)
	require.NoError(t, held.Release(s.Within(patience)))
	l.shows(holders, "Nobody holds it")

	l.asks(linked("main", "", "Unpause"), `End the pause of semaphore "gpu"`)
	l.confirms("the rack stands", "")
	l.shows(holders, "beta")
	require.NoError(t, waits[0].Wait(s).Err())
	require.Nil(t, s.read.Look(keyspace.Sem, "gpu").Pause)
	s.actedBy(`unpause by "eva": "the rack stands"`, nil)
	l.right()
}

func TestResize(t *testing.T) {
	s := acting(t)
	_, waits := s.turns("gpu", "alpha", "beta", "gamma")
	l := s.open("name?kind=sem&name=gpu")
	l.asks(linked("main", "", "Resize"), "")
	l.confirms("two more racks", `Set the capacity of semaphore "gpu" to 3`, "capacity", "3")
	l.shows(holders, "gamma")
	l.shows(".tiles", "3/3")
	require.NoError(t, waits[0].Wait(s).Err())
	require.NoError(t, waits[1].Wait(s).Err())
	require.Equal(t, 3, s.read.Look(keyspace.Sem, "gpu").Capacity)
	s.actedBy(`resize to 3 by "eva": "two more racks"`, nil)

	// What cannot be is refused before it is sent, and what was entered stays.
	l.asks(linked("main", "", "Resize"), "")
	require.NoError(t, l.Eval(l.step(), `document.querySelector("form.act").noValidate = true`, nil))
	l.types("[name=capacity]", "0")
	l.types("[name=reason]", "none at all")
	l.clicks("form.act button.do")
	l.shows(".notice.bad", "capacity")
	require.Equal(t, "none at all", is[string](l, `document.querySelector("[name=reason]").value`))
	require.Len(t, s.told(), 1)
}

func TestRest(t *testing.T) {
	s := acting(t)
	p := s.pool("crawler", "proxies")
	_, err := p.Add(s.Within(patience), []string{"10.0.0.1", "10.0.0.2"}, nil)
	require.NoError(t, err)
	hold, err := p.Allocate(berth.WithOwner(s.Within(patience), "news"), nil)
	require.NoError(t, err)
	state := func() allocator.ResourceInfo {
		info, err := s.poolOperator().Resource(s.Within(patience), "proxies", hold.Resource())
		require.NoError(t, err)
		return info
	}
	l := s.open("name?kind=pool&name=proxies")
	row := `[data-live="resources"] tr`
	l.asks(linked(row, hold.Resource(), "Rest"), `Let resource "`+hold.Resource()+`" of pool "proxies" rest`)
	l.confirms("it answers 429", `rest for 2h00m`, "for", "2h")
	l.shows(row, "rests then")
	require.NoError(t, hold.Release(s.Within(patience)))
	l.shows(row, "it answers 429")
	require.Equal(t, "it answers 429", state().Reason)
	s.actedBy(`rest for 2h00m by "eva": "it answers 429"`, nil)

	l.asks(linked(row, hold.Resource(), "End"), `End the rest of resource "`+hold.Resource()+`"`)
	l.confirms("it answers again", "")
	l.hides(row, "it answers 429")
	require.Empty(t, state().Reason)
	l.right()
}

func TestDrain(t *testing.T) {
	s := acting(t)
	alpha := s.node("alpha")
	held := s.acquire(alpha, "gpu", 1, "run-1").Wait(s)
	waits := s.queue(alpha, "gpu", 1, "run-2", 1)
	l := s.open("node?id=" + alpha.ID())
	l.asks(linked("main", "", "Drain"), `Drain node "`+alpha.ID()+`"`)
	l.confirms("the machine is replaced", "")
	s.Await("the process has heard of it", alpha.Draining)
	waits.Fails(s, berth.ErrDraining)
	s.Signalled("its hold is wanted back", held.Wanted())
	l.goes("actions")
	l.shows("[data-live=deeds]", "the machine is replaced")
	require.NoError(t, held.Release(s.Within(patience)))
	l.shows("[data-live=deeds]", "1 waits cancelled")
	l.shows("[data-live=deeds]", "0 left")
	s.actedBy(`drain node "`+alpha.ID()+`" by "eva": "the machine is replaced"`, nil)

	l.goes("node?id=" + alpha.ID())
	l.asks(linked("main", "", "Stop"), `End the drain of node`)
	l.confirms("it is not replaced", "")
	s.Await("the process works again", func() bool { return !alpha.Draining() })
	require.NoError(t, s.acquire(alpha, "gpu", 1, "run-3").Wait(s).Err())
	l.right()
}

// A drain of a label is of all its nodes.
func TestDrainOfALabel(t *testing.T) {
	s := acting(t)
	var locks []*qlock.Locks
	for range 2 {
		locks = append(locks, qlock.New(s.node("old release"), qlock.Config{}))
	}
	held, err := locks[0].Lock(s.Within(patience), "night", nil)
	require.NoError(t, err)
	wait := testkit.Begin(s.Within(patience), func(ctx context.Context) (*qlock.Lock, error) { return locks[1].Lock(ctx, "night", nil) })
	s.Await("it waits", func() bool { return s.read.Look(keyspace.Lock, "night").Waiting == 1 })
	l := s.open("search?by=label&q=old+release")
	l.asks(linked("main", "", "Drain"), `Drain label "old release"`)
	l.confirms("the new one is there", "")
	wait.Fails(s, berth.ErrDraining)
	s.Signalled("its hold is wanted back", held.Wanted())
	require.NoError(t, held.Release(s.Within(patience)))
	l.goes("actions")
	l.shows("[data-live=deeds]", "0 left")
}

// An action with the keyboard alone, and without scripts.
func TestActingWithoutAMouseAndWithoutScripts(t *testing.T) {
	s := acting(t)
	_, waits := s.turns("gpu", "alpha", "beta")
	l := s.tab()
	require.NoError(t, l.Scripts(l.step(), false))
	l.goes("name?kind=sem&name=gpu")
	require.NoError(t, l.Eval(l.step(), linked(holders+" tr", "alpha", "Release")+`.focus()`, nil))
	l.presses(kb.Enter)
	l.until(`document.querySelector("form.act")`)
	require.NoError(t, l.Eval(l.step(), `document.querySelector("#main").focus()`, nil))
	l.presses(kb.Tab)
	require.Equal(t, "reason", is[string](l, `document.activeElement.name`))
	l.presses("it hangs" + kb.Tab)
	require.Equal(t, "BUTTON", is[string](l, `document.activeElement.tagName`))
	l.presses(kb.Enter)
	l.until(`document.querySelector(".notice.good")`)
	require.NoError(t, waits[0].Wait(s).Err())
}

// poolOperator reads what only pools have.
func (s *stage) poolOperator() *allocator.Operator {
	s.Helper()
	return allocator.NewOperator(s.node(""))
}
