package console

import (
	"cmp"
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
)

// actWithin bounds an action that is waited for.
const actWithin = 20 * time.Second

var actionsPage = &page{
	name: "actions", regions: []string{"deeds"},
	title: func(url.Values) string { return "Actions" },
	open:  func(c *Console, _ url.Values) (source, error) { return c.deeds, nil },
}

// deedForm is the form that asks for an action and its confirmation.
type deedForm struct {
	act.Action
	Address string // of the form, with what the action is about: any bytes
	Back    string // where the action was asked for
	Token   string
	Number  int    // each is done once
	Will    string // what it will do, "" while something is wrong
	Agreed  string // of it what must be so yet when it is done
	Wrong   string // what is wrong
	Changed bool   // what it will do is not what was read before
	// The values as the user entered them.
	For, Capacity, ForceAfter, Reason string
	Keep, Force                       bool
	ends                              bool // it is about the end of a rest
}

// Title returns the title of the form.
func (f *deedForm) Title() string {
	switch {
	case f.Verb == act.Undrain:
		return "Stop a drain"
	case f.ends:
		return "End a rest"
	case f.Verb == act.Want:
		return "Ask back"
	}
	verb := string(f.Verb)
	return strings.ToUpper(verb[:1]) + verb[1:]
}

// Asks reports whether the form asks for an input.
func (f *deedForm) Asks(what string) bool {
	switch what {
	case "for":
		return f.Verb == act.Pause || f.Verb == act.Drain || f.Verb == act.Rest && !f.ends
	case "capacity":
		return f.Verb == act.Resize
	case "force":
		return f.Verb == act.Drain
	}
	return false
}

// deedOf returns the form of an action: its subject comes from the address, the rest from
// values.
func deedOf(q, values url.Values) *deedForm {
	f := &deedForm{Action: act.Action{
		Verb: act.Verb(q.Get("verb")), Kind: keyspace.Kind(q.Get("kind")), Name: q.Get("name"), Claim: q.Get("claim"),
		Resource: q.Get("resource"), Node: q.Get("node"), Label: q.Get("label"),
	}}
	none := ""
	if f.For = values.Get("for"); q.Get("for") == "0" && f.Verb == act.Rest {
		f.ends, none = true, "0" // which asks for nothing
	}
	f.Address, f.Back = to("act", "verb", f.Verb, "kind", f.Kind, "name", f.Name, "claim", f.Claim, "resource", f.Resource, "node", f.Node,
		"label", f.Label, "for", none), f.back("")
	f.Capacity, f.ForceAfter, f.Reason = values.Get("capacity"), values.Get("force-after"), values.Get("reason")
	f.Keep, f.Force = values.Get("keep") != "", values.Get("force") != ""
	return f
}

// back is the page of what the action is about; done is that of which it says what has come of it, "" for nothing.
func (f *deedForm) back(done string) string {
	switch {
	case f.Node != "":
		return to("node", "id", f.Node, "done", done)
	case f.Label != "":
		return to("search", "by", "label", "q", f.Label, "done", done)
	case f.Name != "":
		return to("name", "kind", f.Kind, "name", f.Name, "done", done)
	}
	return to("./", "done", done)
}

// filled takes what was entered into the action. Its errors are *berth.ConfigError.
func (f *deedForm) filled() (err error) {
	span := func(field, entered string) (time.Duration, error) {
		d, err := time.ParseDuration(strings.ReplaceAll(entered, " ", ""))
		if err != nil {
			return 0, berth.Invalid(field, "%q is no time; write 90s, 10m or 2h30m", entered)
		}
		return d, nil
	}
	switch {
	case f.Verb == act.Drain:
		for field, of := range map[string]struct {
			entered string
			to      *time.Duration
		}{"for": {f.For, &f.Action.For}, "force-after": {f.ForceAfter, &f.Action.ForceAfter}} {
			if *of.to = 0; strings.TrimSpace(of.entered) != "" && err == nil {
				*of.to, err = span(field, of.entered)
			}
		}
		f.Action.Force = f.Force
	case f.Asks("for") && f.Verb == act.Rest && strings.EqualFold(strings.TrimSpace(f.For), "forever"):
		f.Action.For = berth.Forever
	case f.Asks("for"):
		if f.Action.For, err = span("for", f.For); err == nil && f.Action.For <= 0 {
			err = berth.Invalid("for", "it is not above 0")
		}
	case f.Asks("capacity"):
		if f.Action.Capacity, err = strconv.Atoi(strings.TrimSpace(f.Capacity)); err != nil {
			err = berth.Invalid("capacity", "%q is no whole number", f.Capacity)
		}
		f.Action.Keep = f.Keep
	}
	return err
}

// told makes the form say what the action will do. The reason is no part of that.
func (c *Console) told(ctx context.Context, f *deedForm) error {
	if err := f.filled(); err != nil {
		return err
	}
	check := f.Action
	check.Reason = "-"
	if err := check.Check(); err != nil {
		return err
	}
	known, err := c.known(ctx, &f.Action)
	if err != nil {
		return err
	}
	f.Will, f.Agreed = f.Action.Will(known), known.Does()+" "+f.Action.Will(act.Known{})
	return nil
}

// known reads what an action is about.
func (c *Console) known(ctx context.Context, what *act.Action) (act.Known, error) {
	if what.Claim == "" {
		return act.Known{}, nil
	}
	feed := c.watch.Name(what.Kind, what.Name, what.Claim)
	defer feed.Close()
	within, cancel := context.WithTimeout(ctx, firstWithin)
	defer cancel()
	name, err := feed.Next(within)
	if err != nil && within.Err() != nil {
		err = c.late()
	}
	if err != nil {
		return act.Known{}, err
	}
	return what.Known(&name.Look)
}

// ask answers with the page that asks to confirm an action.
func (c *Console) ask(w http.ResponseWriter, r *http.Request, a Access) error {
	if err := c.mayAct(a); err != nil {
		return err
	}
	q := r.URL.Query()
	f := deedOf(q, q)
	if f.Asks("for") && f.Verb != act.Drain && f.For == "" {
		f.For = "10m"
	}
	err := c.told(r.Context(), f)
	if err != nil && !f.Asks("capacity") && !f.Asks("for") {
		return err
	}
	if err != nil && f.Capacity != "" {
		f.Wrong = problem(err)
	}
	c.form(w, r, a, http.StatusOK, f)
	return nil
}

// mayAct returns why a user may not act.
func (c *Console) mayAct(a Access) error {
	switch {
	case !c.cfg.AllowActions:
		return refusal("this page is read-only")
	case !a.Act:
		return refusal("you may look, but not act")
	}
	return nil
}

func (c *Console) form(w http.ResponseWriter, r *http.Request, a Access, code int, f *deedForm) {
	f.Number = c.forms.next()
	f.Token = c.token(session(w, r), a.User, f)
	page := c.frame(a, "act", f.Title())
	page.View = f
	c.render(w, code, "act", page)
}

// do does what a form asks for.
func (c *Console) do(w http.ResponseWriter, r *http.Request, a Access) error {
	err := cmp.Or(c.mayAct(a), sameSite(r))
	var values url.Values
	if err == nil {
		values, err = form(w, r)
	}
	if err != nil {
		return err
	}
	f := deedOf(r.URL.Query(), values)
	f.Number, _ = strconv.Atoi(values.Get("form")) // of another number there is another token
	if !hmac.Equal([]byte(values.Get("token")), []byte(c.token(sessionOf(r), a.User, f))) {
		return errOld
	}
	if c.forms.sent(f.Number) {
		return c.once(w, r, a, f)
	}
	f.Action.Reason = strings.TrimSpace(strings.ToValidUTF8(f.Reason, "�"))
	if err = c.told(r.Context(), f); err == nil && f.Action.Reason == "" {
		err = berth.Invalid("reason", "say why: it becomes a part of the event")
	}
	if err = cmp.Or(err, f.Check()); err != nil {
		f.Wrong = problem(err)
		if !errors.Is(err, berth.ErrInvalidConfig) {
			f.Wrong = "It was not done. " + f.Wrong
		}
		c.form(w, r, a, codeOf(err), f)
		return nil
	}
	if values.Get("agreed") != f.Agreed {
		f.Changed = true
		c.form(w, r, a, http.StatusOK, f)
		return nil
	}
	return c.once(w, r, a, f)
}

// done does it, and says where its outcome is seen. A drain goes on behind it. Close waits for its caller.
func (c *Console) done(r *http.Request, a Access, f *deedForm, p *post) {
	defer close(p.ended)
	p.wrong, p.code = "It was not done.", http.StatusConflict // unless it says otherwise
	id, err := c.deeds.begin(f.Action, a.User)
	if err != nil {
		p.wrong += " " + problem(err)
		return
	}
	if f.Verb == act.Drain {
		if err := c.enter(); err != nil {
			c.deeds.end(id, "", err, c.watch.Begun())
		} else {
			go func() {
				defer c.running.Done()
				_ = c.work(c.ctx, id, f.Action, a.User)
			}()
		}
		p.leads, p.wrong = to("actions", "done", id), ""
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actWithin)
	defer cancel()
	if err := c.work(ctx, id, f.Action, a.User); err != nil {
		p.wrong += " " + problem(err)
		if codeOf(err) == http.StatusServiceUnavailable || ctx.Err() != nil { // the answer may have been lost
			p.wrong, p.code = "Nobody knows whether it was done. "+problem(err), http.StatusServiceUnavailable
		}
		if f.Verb == act.Undrain {
			p.wrong = "It was not done for every kind. Do it again. " + problem(err)
		}
		return
	}
	p.leads, p.wrong = f.back(id), ""
}

func (c *Console) work(ctx context.Context, id string, what act.Action, by string) error {
	outcome := ""
	err := guard.Run("an action", c.tell, func() (err error) {
		outcome, err = c.actor.Do(ctx, what, by)
		return err
	})
	if err != nil && what.Verb == act.Drain && ctx.Err() != nil {
		err = fmt.Errorf("the console has ended; the drain is still in force: %w", err)
	}
	c.deeds.end(id, text.Escaped(outcome), err, c.watch.Begun())
	return err
}
