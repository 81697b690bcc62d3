package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestACycleNamesEachProcess(t *testing.T) {
	t.Parallel()
	of := func(label, claim string) inspect.Claim {
		return inspect.Claim{Kind: keyspace.Lock, Name: "a", Hold: &berth.Holder{ID: claim, Node: "n-" + label, Label: label, Held: time.Second}}
	}
	wait := inspect.Claim{Kind: keyspace.Lock, Name: "b", Wait: &berth.Waiter{ID: "w", Node: "n-inner", Label: "inner", Waited: time.Second}}
	link := inspect.Link{Actor: "anna", Wait: wait, Holds: []inspect.Claim{of("outer", "h")}}
	require.Equal(t, `anna has held lock "a" (outer) for 1s, and has waited 1s for lock "b" (inner)`, LinkSays(link))
	link.Holds = append(link.Holds, of("inner", "i"))
	require.Equal(t, `anna has held lock "a" (outer) for 1s, lock "a" (inner) for 1s, and has waited 1s for lock "b" (inner)`, LinkSays(link))
	for claim, who := range map[string]string{"h": "it", "i": "outer"} {
		end := inspect.End{Event: inspect.Event{What: inspect.LeaseEnds, Claim: claim, If: []string{"n-outer"}, In: time.Second}, Kind: keyspace.Lock, Name: "a", Frees: true}
		require.Contains(t, EndSays(inspect.Cycle{Links: []inspect.Link{link}, Ends: []inspect.End{end}}), "By itself: unless "+who+" is heard of, in 1s (")
	}
}
