package app

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/embedded"
)

func TestARefusalComesWithAdvice(t *testing.T) {
	t.Parallel()
	s, err := embedded.StartListening("127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	redis, err := s.Client()
	require.NoError(t, err)
	defer redis.Close()
	refusal := func(text string) error {
		eval := redis.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(text).Build()
		return redis.Do(context.Background(), eval).Error()
	}
	full := refusal("OOM command not allowed when used memory > 'maxmemory'.")
	require.EqualError(t, Unreachable("here", full), "refused by the server at here: "+full.Error()+
		"; make room on the server, or raise its maxmemory")
	require.ErrorIs(t, Unreachable("here", full), full)
	role := refusal("NOPERM this user has no permissions to run the 'role' command")
	require.EqualError(t, Unreachable("here", role), "refused by the server at here: "+role.Error()+"; docs/operations.md lists what a user needs")
	denied := refusal("NOPERM this user has no permissions to run the 'scan' command")
	require.EqualError(t, Unreachable("here", denied), "refused by the server at here: "+denied.Error()+
		"; docs/operations.md lists what a user needs: to list all names, +scan beside the smallest ACL")
	other := refusal("BUSY no")
	require.EqualError(t, Unreachable("here", other), "refused by the server at here: "+other.Error())
	keys := refusal("NOPERM this user has no permissions to access one of the keys used as arguments")
	require.EqualError(t, Unreachable("here", keys), "refused by the server at here: "+keys.Error()+
		"; the user's key patterns have to cover the namespace: docs/operations.md")
	broken := fmt.Errorf("the state is %w", state.ErrDamaged)
	require.Equal(t, broken, Unreachable("here", broken))
	old := fmt.Errorf("%w: %w", berth.ErrIncompatible, other)
	require.EqualError(t, Unreachable("here", old), "cannot use the server at here: "+old.Error())
	newer := state.Incompatible("gpu", 9)
	require.Equal(t, newer, Unreachable("here", newer), "the server can be used: one name is newer")
	require.Equal(t, exitUnavailable, CodeOf(newer))
}
