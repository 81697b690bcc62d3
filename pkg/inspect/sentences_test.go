package inspect_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// state is what the calls of some processes have made, of which one name or claim is explained.
type state struct {
	// make makes it, and returns the claim that is to be explained, "" for the name.
	make func(w *world) (claim string)
	// codes are those of the reasons, says is the whole text. The claim's id is ID in it.
	codes []inspect.Code
	says  string
}

// codes are in the order in which they are told.
func codes(all ...inspect.Code) []inspect.Code { return all }

func TestEachSentenceIsOfARealState(t *testing.T) {
	t.Parallel()
	told := map[inspect.Code]bool{}
	for kind, states := range map[keyspace.Kind]map[string]state{
		keyspace.Lock: lockStates, keyspace.Sem: semStates, keyspace.Pool: poolStates,
	} {
		name := map[keyspace.Kind]string{keyspace.Lock: "nightly", keyspace.Sem: "gpu", keyspace.Pool: "proxies"}[kind]
		for what, s := range states {
			for _, code := range s.codes {
				told[code] = true
			}
			t.Run(string(kind)+" "+what, func(t *testing.T) {
				inWorld(t, func(w *world) {
					claim := s.make(w)
					e, again, err := w.look.Again(context.Background(), kind, name, claim)
					require.NoError(w.T, err)
					says := e.String()
					if claim != "" {
						says = strings.ReplaceAll(says, claim, "ID")
					}
					var codes []inspect.Code
					for _, r := range e.Reasons {
						codes = append(codes, r.Code)
					}
					require.Equal(w.T, s.says, says, "%v", codes)
					require.Equal(w.T, s.codes, codes)
					require.Equal(w.T, e, again, "an explanation is of one reading alone")
				})
			})
		}
	}
	for _, code := range elsewhere {
		require.False(t, told[code], "%s has a state here", code)
		told[code] = true
	}
	for _, code := range inspect.Codes {
		require.True(t, told[code], "no state shows %s", code)
	}
	require.Len(t, maps.Clone(told), len(inspect.Codes))
}

// elsewhere are the codes that a server in this process cannot show; see test/integration.
var elsewhere = codes(inspect.ServerFull, inspect.ServerRefuses, inspect.OfReplica)
