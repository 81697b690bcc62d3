package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/berth-go/berth"
)

// A look may come between the grant and what follows from it.
func TestAClaimThatCameAsAnEntryAndIsNoneIsNeverHanded(t *testing.T) {
	for name, entry := range map[string]*Entry{"an entry": {}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			c := &Claim{ID: "a", Name: "door", MayWait: true}
			c.begins(context.Background(), 0, false)
			c.inside.Store(true)
			c.on(&event{kind: evAsk})
			c.on(&event{kind: evGranted, entry: entry, confirmed: true})
			fx := c.on(&event{kind: evLook})
			if !fx.has(doReturn) || errors.Is(fx.result, berth.ErrDraining) == (entry != nil) {
				t.Errorf("do %b, result %v", fx.do, fx.result)
			}
			if got := c.see().phase; (got == held) != (entry != nil) {
				t.Errorf("it is %s", phaseNames[got])
			}
		})
	}
}
