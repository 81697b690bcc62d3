package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAHostAloneIsAnAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"localhost": "localhost:6379", "redis.example.com:6380": "redis.example.com:6380", "[::1]:6380": "[::1]:6380",
	} {
		option, err := (&App{URL: text}).option()
		require.NoError(t, err)
		require.Equal(t, []string{want}, option.InitAddress)
		require.Nil(t, option.TLSConfig)
	}
}
