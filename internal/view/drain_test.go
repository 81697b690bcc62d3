package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/pkg/inspect"
)

func TestADrainCountsWhatItsProcessesHadBeforeTheyHeard(t *testing.T) {
	since := time.UnixMilli(1_700_000_000_000)
	label, node := berth.DrainTarget{Label: "worker/*"}, berth.DrainTarget{Node: "n1"}
	all := DrainsAt([]berth.Drain{{DrainTarget: label, Since: since}, {DrainTarget: node, Since: since}}, since.Add(time.Hour))
	hold := func(label, node string, at time.Duration) inspect.Claim {
		return inspect.Claim{Hold: &berth.Holder{Label: label, Node: node, Granted: since.Add(at)}}
	}
	for _, c := range []inspect.Claim{
		hold("worker/1", "n1", -time.Hour), hold("worker/1", "n2", notice.Heard), hold("worker/1", "n1", notice.Heard+1), hold("web", "n3", 0),
		{Wait: &berth.Waiter{Label: "worker/2", Node: "n4", Since: since}},
	} {
		for i := range all {
			all[i].Count(c)
		}
	}
	require.Equal(t, []int{2, 1, 1, 0}, []int{all[0].Holds, all[0].Waits, all[1].Holds, all[1].Waits})
}

func TestADrainIsToldAndEndedByACommand(t *testing.T) {
	since := time.UnixMilli(1_700_000_000_000)
	d := berth.Drain{DrainTarget: berth.DrainTarget{Label: "a b\u202e*"}, Since: since, Left: time.Minute, Reason: "new\nrelease"}
	require.Equal(t, `drain of label "a b\u202e*" since 2h00m, for 1m00s more: "new\nrelease"`, DrainSays(&d, since.Add(2*time.Hour)))
	require.Equal(t, "berth drain --namespace prod --label 'worker/*' --stop", Undrain(berth.DrainTarget{Label: "worker/*"}, In("prod")...))
	require.Equal(t, "berth drain --node n1 --stop", Undrain(berth.DrainTarget{Node: "n1"}))
	require.Empty(t, Undrain(berth.DrainTarget{Label: "a\x00"}))
}
