package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNobodyAsksBeforeTheOneBeforeHasAnAnswer(t *testing.T) {
	d := &director{story: newStory(plan{workers: 3, capacity: 2}), next: 1}
	require.True(t, d.answered(), "there is none before the first")
	d.next = 2
	d.story.turns[0].asked = ms(0)
	require.False(t, d.answered())
	d.story.turns[0].granted = ms(1)
	require.True(t, d.answered())
	d.next = 3
	require.False(t, d.answered())
	d.story.turns[1].queued = ms(2)
	require.True(t, d.answered())
}

func TestTheVictimIsInsideWhenItIsKilled(t *testing.T) {
	for _, p := range []plan{semaphorePlan, lockPlan, poolPlan} {
		d := &director{plan: p}
		require.Equal(t, limit, d.orderFor(p.victim).Work)
		require.Less(t, d.orderFor(p.victim+1).Work, 2*time.Second)
	}
}

func TestAllThatHappensIsTold(t *testing.T) {
	d := &director{story: newStory(plan{workers: 1, capacity: 1})}
	require.False(t, d.over())
	d.story.turns[0].exited = ms(1)
	require.True(t, d.over())
	d.pending = []report{{Kind: leaseEnd}}
	require.False(t, d.over())
}
