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
	redis, err := s.Client(apptest.Patiently)
	require.NoError(t, err)
	defer redis.Close()
	set := redis.B().Set().Key("berth:lock:{gpu}:state").Value("somebody else's").Build()
	require.NoError(t, redis.Do(context.Background(), set).Error())
	const advice = "; another program writes below the namespace: rename its key, or give Berth a --namespace of its own\n"
	got := apptest.Spawn(t, s.URL(), "run", "--lock", "gpu", "--try", "true")
	require.Equal(t, 69, got.Code)
	require.Regexp(t, `^berth: refused by the server at \S+: .* holds a string instead of a .*`+advice+"$", got.Err)
	require.Equal(t, apptest.Outcome(65, "", `berth: the state of "gpu" is damaged: the key "berth:lock:{gpu}:state" holds a string that is not Berth's`+advice),
		apptest.Spawn(t, s.URL(), "lock", "show", "gpu"))
}
