package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/scriptkit"
)

func TestTheTableOfRefusals(t *testing.T) {
	t.Parallel()
	text := refusalsPage([]scriptkit.Refusal{
		{Begins: "LOADING", Means: "it loads", Course: scriptkit.Passes, Seen: []string{"Redis", "Valkey"}},
		{Begins: "DENIED", Means: "it is protected", Course: scriptkit.PassesOnceServed},
		{Begins: "unknown command", Means: "it is old", Is: berth.ErrIncompatible, Seen: []string{"Redis"}},
	}).text
	for _, want := range []string{
		"| `LOADING` | it loads | repeats the call | `ErrUnavailable` | Redis, Valkey |\n",
		"| `DENIED` | it is protected | repeats the call, if the client was served before; else ends it |",
		"| no server: by the sources |\n",
		"| `unknown command` | it is old | ends the call | `ErrIncompatible` | Redis |\n",
	} {
		require.Contains(t, text, want)
	}
}
