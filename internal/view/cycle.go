package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
)

// CycleSays is how sure a cycle is.
func CycleSays(c inspect.Cycle) string {
	switch {
	case c.Certain:
		return "certain, as far as each owner does one thing after another"
	case c.By == "owner":
		return "possible; an owner may do several things at once, and the clocks of a Cluster's servers differ"
	}
	return "possible; a process may wait in one goroutine and hold in another"
}

// LinkSays says what somebody of a cycle holds and waits for. Where its processes are several, each is named beside
// what it holds or waits for.
func LinkSays(l inspect.Link) string {
	subject, by := Actor(l.Actor, l.Wait.Label()), func(string) string { return "" }
	if slices.ContainsFunc(l.Holds, func(c inspect.Claim) bool { return c.Label() != l.Wait.Label() }) {
		subject, by = text.Word(l.Actor), func(label string) string { return " (" + text.Word(label) + ")" }
	}
	var holds []string
	for _, c := range l.Holds {
		holds = append(holds, fmt.Sprintf("%s%s for %s", c, by(c.Label()), text.Human(c.For())))
	}
	return fmt.Sprintf("%s has held %s, and has waited %s for %s%s",
		subject, strings.Join(holds, ", "), text.Human(l.Wait.For()), l.Wait, by(l.Wait.Label()))
}

// Actor is somebody of a cycle with its label, if that is another.
func Actor(actor, label string) string {
	if label == "" || label == actor {
		return text.Word(actor)
	}
	return text.Word(actor) + " (" + text.Word(label) + ")"
}

// EndSays is the first end that comes by itself and frees a cycle.
func EndSays(c inspect.Cycle) string {
	i := slices.IndexFunc(c.Ends, func(e inspect.End) bool { return e.Frees })
	switch {
	case len(c.Ends) == 0:
		return "Nothing of it ends by itself."
	case i < 0:
		return "What of it ends by itself does not free it."
	}
	e, unless := c.Ends[i], ""
	// Whose end it is, and who must not be heard of before it comes: "it" is whose end that is.
	whose, own, other := text.Word(e.Claim), false, ""
	for _, l := range c.Links {
		for _, claim := range append([]inspect.Claim{l.Wait}, l.Holds...) {
			unheard := slices.Contains(e.If, claim.Node())
			switch {
			case claim.ID() == e.Claim:
				whose, own = text.Word(l.Actor), own || unheard
			case unheard:
				other = cmp.Or(other, text.Word(cmp.Or(claim.Label(), claim.ID())))
			}
		}
	}
	if own {
		other = ""
	}
	if len(e.If) > 0 {
		unless = "unless " + cmp.Or(other, "it") + " is heard of, "
	}
	what := "the lease of %s on %s ends"
	switch e.What {
	case inspect.MaxHoldEnds:
		what = "the maximum hold of %s on %s ends"
	case inspect.ClaimLeaves:
		what = "the claim of %s leaves the line of %s"
	}
	return fmt.Sprintf("By itself: %sin %s (%s) "+what+", which frees it.",
		unless, text.Human(e.In), e.At.UTC().Format("15:04:05 UTC"), whose, act.Nouns[e.Kind]+" "+text.Quoted(e.Name))
}
