package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
)

const bandScript = `--- @include "state/int"
-- The scores of <a line>.
-- One a member:
--   letter claim
--   h:<claim>  a hold: its deadline, or
--              band_end without one | none
-- In a pool
--     also:
--   e:<key>    band_rest + its end
-- No member is twice,
-- below band_end.
local band_end = 17592186044415
local band_rest = 262 * 17592186044416 -- far

-- place is something else:
--   other  is not read
local function place() end
`

func TestATableIsMadeOfAComment(t *testing.T) {
	t.Parallel()
	text, err := describe(bandScript, "member | score", constants(map[string]string{"": bandScript}))
	require.NoError(t, err)
	require.Equal(t, "The scores of \\<a line>. One a member: letter claim:\n\n"+
		"| member | score |\n|---|---|\n"+
		"| `h:<claim>` | a hold: its deadline, or 2^44 - 1 without one \\| none |\n"+
		"| In a pool also: | |\n"+
		"| `e:<key>` | 262 * 2^44 + its end |\n"+
		"\nNo member is twice, below 2^44 - 1.\n", text)

	_, err = describe("-- bare has no rows.\nlocal function bare() end\n", "a | b", nil)
	require.ErrorContains(t, err, "no such file, or no comment")
}

func TestThePageOfKeys(t *testing.T) {
	t.Parallel()
	_, err := keysPage(fstest.MapFS{keyTable: {Data: []byte("// Package keyspace.\n")}})
	require.ErrorContains(t, err, "pkg/keyspace/doc.go has no lines")
	require.ErrorContains(t, err, "state/thin: no such file")

	p, err := keysPage(os.DirFS("../../.."))
	require.NoError(t, err)
	space, err := keyspace.New("NS")
	require.NoError(t, err)
	for _, key := range []string{
		space.State(keyspace.Sem, "NAME"), space.Line(keyspace.Sem, "NAME"),
		space.State(keyspace.Lock, "NAME"), space.Line(keyspace.Lock, "NAME"),
		space.State(keyspace.Pool, "NAME"), space.Line(keyspace.Pool, "NAME"),
		space.Key(keyspace.Pool, "NAME", keyspace.ItemsPart), space.Key(keyspace.Pool, "NAME", keyspace.FreePart),
		space.Key(keyspace.Pool, "NAME", keyspace.BindingsPart), space.State(keyspace.Fence, "NAME"),
		space.State(keyspace.Swarm, "nodes"), space.Key(keyspace.Swarm, "nodes", keyspace.ProbesPart), space.Wake("NODE"),
	} {
		key = strings.NewReplacer("NS", "<namespace>", "NAME", "<name>", "NODE", "<node>").Replace(key)
		require.Contains(t, p.text, "\n| `"+key+"` | ")
	}
	require.Contains(t, p.text, "| `phase` | w: waiting")
}
