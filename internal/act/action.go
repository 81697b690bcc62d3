package act

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Verb is what is done.
type Verb string

// The verbs.
const (
	Release Verb = "release" // of a claim: it ends, whether it holds or waits
	Want    Verb = "want"    // of a hold: it is asked for back, and goes on
	Pause   Verb = "pause"   // of a name, for a time
	Unpause Verb = "unpause" // of a name
	Resize  Verb = "resize"  // of a semaphore
	Rest    Verb = "rest"    // of a resource of a pool, for a time; for 0 its rest ends
	Drain   Verb = "drain"   // of a node, or of a label
	Undrain Verb = "undrain" // likewise
)

// Action is one thing to do. Its verb says which fields count.
type Action struct {
	Verb     Verb
	Kind     keyspace.Kind // not of a drain
	Name     string        // likewise
	Claim    string        // Release, Want
	Resource string        // Rest
	Capacity int           // Resize
	Keep     bool          // Resize: for good
	For      time.Duration // Pause; Drain, 0 for no end; Rest, also of what rests longer: berth.Forever for no end
	Node     string        // Drain, Undrain; or Label
	Label    string        // likewise
	Force    bool          // Drain: the rest is ended by force after ForceAfter
	Reason   string        // why, up to 512 bytes

	ForceAfter time.Duration // Drain: with Force
}

// MaxPause is how long a pause may last.
const MaxPause = 8784 * time.Hour

// Check says what is wrong with an action before it is told or done: a berth.ConfigError for the field.
func (a *Action) Check() error {
	drain := a.Verb == Drain || a.Verb == Undrain
	if !drain && Nouns[a.Kind] == "" {
		return berth.Invalid("kind", "%q is none of sem, lock and pool", string(a.Kind))
	}
	if !drain {
		if err := keyspace.CheckName(a.Name); err != nil {
			return err
		}
	}
	switch {
	case drain && (a.Node == "") == (a.Label == ""):
		return berth.Invalid("node", "a drain is of a node or of a label: give one of them")
	case a.Verb == Drain:
		if invalid, is := errors.AsType[*berth.ConfigError](line.CheckDrain(a.drain())); is {
			return berth.Invalid(drainFields[invalid.Field], "%s", invalid.Problem)
		}
		return nil
	case (a.Verb == Release || a.Verb == Want) && a.Claim == "":
		return berth.Invalid("claim", "it is empty")
	case a.Verb == Pause && (a.For <= 0 || a.For > MaxPause):
		return berth.Invalid("for", "a pause lasts above 0, at most %s", text.Human(MaxPause))
	case a.Verb == Resize && a.Kind != keyspace.Sem:
		return berth.Invalid("kind", "only a semaphore has a capacity that can be set")
	case a.Verb == Resize && a.Capacity < 1:
		return berth.Invalid("capacity", "%d is below 1", a.Capacity)
	case a.Verb == Rest && a.Kind != keyspace.Pool:
		return berth.Invalid("kind", "only a pool has resources")
	case a.Verb == Rest && a.Resource == "":
		return berth.Invalid("resource", "it is empty")
	case a.Verb == Rest && a.For < 0:
		return berth.Invalid("for", "%s is below 0; 0 ends a rest", a.For)
	case a.Verb == Rest && a.For > 0 && a.Reason == "":
		return berth.Invalid("reason", "a rest needs one: whoever looks at the pool sees it")
	case !slices.Contains([]Verb{Release, Want, Pause, Unpause, Resize, Rest, Drain, Undrain}, a.Verb):
		return berth.Invalid("verb", "%q is none that there is", string(a.Verb))
	}
	return settings.Text("reason", a.Reason)
}

// drainFields are the fields of a form, by those of berth.DrainOptions.
var drainFields = map[string]string{"For": "for", "Force": "force", "ForceAfter": "force-after", "Reason": "reason"}

// drain are the options of a drain.
func (a *Action) drain() *berth.DrainOptions {
	return &berth.DrainOptions{For: a.For, Reason: a.Reason, Force: a.Force, ForceAfter: a.ForceAfter}
}

// Nouns are what one of a kind is called.
var Nouns = map[keyspace.Kind]string{keyspace.Sem: "semaphore", keyspace.Lock: "lock", keyspace.Pool: "pool"}

// Will says to a person what the action will do to what is known. What strangers have written stands in quotation marks.
func (a *Action) Will(known Known) string {
	of := fmt.Sprintf("%s %s", Nouns[a.Kind], text.Quoted(a.Name))
	claim := fmt.Sprintf("claim %s of %s", text.Quoted(a.Claim), of)
	switch a.Verb {
	case Release:
		return known.release(claim)
	case Want:
		return known.want(claim)
	case Pause:
		return fmt.Sprintf("Pause %s for %s. Nothing is granted; who holds goes on, who waits keeps its place.", of, text.Human(a.For))
	case Unpause:
		return fmt.Sprintf("End the pause of %s. The first in line gets what is free at once.", of)
	case Resize:
		return fmt.Sprintf("Set the capacity of %s to %d%s. Less than is held takes nothing away: nothing is granted until enough is given back.",
			of, a.Capacity, map[bool]string{true: ", for good", false: ", until it is idle and forgotten"}[a.Keep])
	case Rest:
		if a.For == 0 {
			return fmt.Sprintf("End the rest of resource %s of %s.", text.Quoted(a.Resource), of)
		}
		span := "until somebody ends it"
		if a.For != berth.Forever {
			span = "for " + text.Human(a.For)
		}
		return fmt.Sprintf("Let resource %s of %s rest %s: nobody gets it. If it is leased, the rest begins with its release.",
			text.Quoted(a.Resource), of, span)
	case Undrain:
		return fmt.Sprintf("End the drain of %s: they work again within 5 s.", a.who())
	}
	ends := "This goes on until nothing is left."
	if a.Force {
		ends = fmt.Sprintf("What is left after %s is ended by force.", text.Human(a.ForceAfter))
	}
	if a.For > 0 {
		ends += fmt.Sprintf(" The drain ends by itself in %s.", text.Human(a.For))
	} else {
		ends += " The drain lasts until somebody ends it."
	}
	return fmt.Sprintf("Drain %s: new claims are refused within 5 s, what they wait for is cancelled, what they hold is asked back. %s",
		a.who(), ends)
}

// who is whom a drain is of.
func (a *Action) who() string {
	switch begins, many := strings.CutSuffix(a.Label, "*"); {
	case a.Node != "":
		return "node " + text.Quoted(a.Node)
	case a.Label == "*":
		return "all processes of the namespace"
	case many:
		return "all processes whose label begins with " + text.Quoted(begins)
	}
	return "label " + text.Quoted(a.Label)
}
