package act

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
)

// Known is what was read of the claim that an action is about. The zero value is of an action without a claim, and of a claim that
// cannot be read.
type Known struct {
	Claim   inspect.Claim
	Heirs   []berth.Waiter // who is granted something if the hold ends now, in order
	Open    bool           // others may be, instead or too
	Waiting int            // how many wait
}

// Known is what a reading of a name tells of the claim that the action is about: the reading was asked for it. The error is that
// nothing is to be done.
func (a *Action) Known(l *inspect.Look) (k Known, err error) {
	asked := l.Asked[a.Claim]
	k = Known{Claim: inspect.Claim{Kind: a.Kind, Name: a.Name}, Waiting: l.Live()}
	switch {
	case asked.Hold != nil:
		k.Claim.Hold = &asked.Hold.Holder
	case asked.Wait != nil && a.Verb == Want:
		return k, berth.Invalid("claim", "it waits: there is nothing to give back")
	case asked.Wait != nil:
		k.Claim.Wait = &asked.Wait.Waiter
	case slices.ContainsFunc(asked.Reasons, func(r inspect.Reason) bool {
		return slices.Contains([]inspect.Code{inspect.Unknown, inspect.Gone, inspect.Absent}, r.Code)
	}):
		return k, errEnded
	}
	if asked.Freed == nil {
		return k, nil
	}
	k.Open = asked.Freed.Open
	for _, id := range asked.Freed.Grants {
		if i := slices.IndexFunc(l.Waits, func(w inspect.Wait) bool { return w.ID == id }); i >= 0 {
			k.Heirs = append(k.Heirs, l.Waits[i].Waiter)
		}
	}
	return k, nil
}

// errEnded is that of an action whose claim is not there any more.
var errEnded = fmt.Errorf("the claim has ended by itself: %w", berth.ErrNotHeld)

// Does is whether the claim "holds" or "waits", "" where that is not known.
func (k *Known) Does() string {
	switch {
	case k.Claim.Hold != nil:
		return "holds"
	case k.Claim.Wait != nil:
		return "waits"
	}
	return ""
}

// release says what a release does.
func (k *Known) release(claim string) string {
	who, lasted := whose(k.Claim), text.Human(k.Claim.For())
	switch k.Does() {
	case "holds":
		return fmt.Sprintf("Release %s by force: %s has held it for %s. %s The process of the hold is told, and until it has heard, two may be inside.",
			claim, who, lasted, k.next())
	case "waits":
		return fmt.Sprintf("Release %s: %s has waited for %s, and leaves the line.", claim, who, lasted)
	}
	return fmt.Sprintf("Release %s by force. If it holds, the first in line gets what comes free; its process is told, and "+
		"until it has heard, two may be inside. If it waits, it leaves the line.", claim)
}

// next says who gets what comes free.
func (k *Known) next() string {
	switch n := len(k.Heirs); {
	case n > 0:
		who := whose(inspect.Claim{Wait: &k.Heirs[0]})
		says := fmt.Sprintf("%s, who has waited for %s, gets it", strings.ToUpper(who[:1])+who[1:], text.Human(k.Heirs[0].Waited))
		if n > 1 {
			says += fmt.Sprintf(", and %d more get something", n-1)
		}
		return says + "."
	case k.Open:
		return "One of those who wait may get it."
	case k.Waiting == 0:
		return "Nobody waits for it."
	}
	return fmt.Sprintf("None of the %d who wait gets it at once.", k.Waiting)
}

// want says what asking for a hold does.
func (k *Known) want(claim string) string {
	says := "Ask for " + claim + " back"
	if h := k.Claim.Hold; h != nil {
		says += fmt.Sprintf(": %s has held it for %s", whose(k.Claim), text.Human(h.Held))
		if h.Wanted > 0 {
			says += fmt.Sprintf(", and was asked %s ago", text.Human(h.Wanted))
		}
	}
	return says + ". Nothing ends: its process is told, and gives it back when it has finished."
}

// whose says for whom a claim is.
func whose(c inspect.Claim) string {
	label, owner := text.Excerpt(c.Label()), text.Excerpt(c.Owner())
	switch {
	case c.Owner() != "" && c.Label() != "":
		return fmt.Sprintf("owner %s (label %s)", owner, label)
	case c.Owner() != "":
		return "owner " + owner
	case c.Label() != "":
		return "label " + label
	}
	return "node " + text.Excerpt(c.Node())
}
