package top

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/pkg/keyspace"
)

// The library drops what is to be done when the program ends in the same moment.
func TestAnActionThatIsNeverBegunIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t.Context(), nil, nil, "")
		pause := act.Action{Verb: act.Pause, Kind: keyspace.Sem, Name: "gpu"}
		late := l.do(pause)
		require.Equal(t, []outcome{{action: pause, err: errNotBegun}}, l.end())
		require.Nil(t, late(), "it is not done after that was said")
	})
}

// An action that has begun is waited for, and only that one is done.
func TestAnActionThatHasBegunIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t.Context(), nil, nil, "")
		l.do(act.Action{Verb: act.Pause, Kind: keyspace.Sem, Name: "gpu"})
		require.True(t, l.begin(1))
		var said []outcome
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			said = l.end()
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Fatal("it was not waited for")
		default:
		}
		l.doing.Done()
		<-ended
		require.Empty(t, said)
	})
}
