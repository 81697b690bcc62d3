package app_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestWhatTheServerRefusesComesWithAdvice(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	redis, err := s.Client()
	require.NoError(t, err)
	defer redis.Close()
	set := redis.B().Set().Key("berth:lock:{gpu}:state").Value("somebody else's").Build()
	require.NoError(t, redis.Do(context.Background(), set).Error())
	for _, args := range [][]string{{"run", "--lock", "gpu", "--try", "true"}, {"lock", "show", "gpu"}} {
		got := apptest.Spawn(t, s.URL(), args...)
		require.Equal(t, 69, got.Code)
		require.Regexp(t, `^berth: refused by the server at \S+: .* holds a string instead of a .*; another program writes below `+
			`the namespace: rename its key, or give Berth a --namespace of its own\n$`, got.Err)
	}
}
