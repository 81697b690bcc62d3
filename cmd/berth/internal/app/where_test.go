package app

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestACommandToTypeMeansTheSameServerAndTellsNoPassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][]string{
		"redis://host:7000": {"--redis", "redis://host:7000"}, "redis://:secret@host:7000": nil, "redis://anna:secret@host": nil,
	} {
		a := &App{global: pflag.NewFlagSet("", pflag.ContinueOnError)}
		a.global.StringVar(&a.URL, "redis", "", "")
		require.Empty(t, a.Where())
		require.NoError(t, a.global.Set("redis", url))
		require.Equal(t, want, a.Where(), url)
	}
}
