package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const scoreScript = `--- @include "state/int"
-- The score ranges:
--   letter claim
--   h:<claim>  a hold: its deadline, or
--              score_end without one | none
-- In a pool
--     also:
--   e:<key>    score_rest + its end
-- No member is twice.
local score_end = 17592186044415
local score_rest = 262 * 17592186044416 -- far

-- place is something else:
--   other  is not read
local function place() end
`

func tableTree(document string) fstest.MapFS {
	return fstest.MapFS{
		"docs/keys.md":            {Data: []byte(document)},
		"scripts/state/score.lua": {Data: []byte(scoreScript)},
		"scripts/state/bare.lua":  {Data: []byte("-- bare has no rows.\nlocal function bare() end\n")},
	}
}

func TestATableIsMadeOfAComment(t *testing.T) {
	t.Parallel()
	document := "text\n<!-- table state/score: member | score -->\nold\n<!-- end table -->\nmore\n"
	sections, err := tables(tableTree(document))
	require.NoError(t, err)
	require.Len(t, sections, 1)
	text, err := sections[0].replace(document)
	require.NoError(t, err)
	require.Equal(t, "text\n<!-- table state/score: member | score -->\n"+
		"| member | score |\n|---|---|\n"+
		"| `h:<claim>` | a hold: its deadline, or 2^44 - 1 without one \\| none |\n"+
		"| In a pool also: | |\n"+
		"| `e:<key>` | 262 * 2^44 + its end |\n"+
		"<!-- end table -->\nmore\n", text)
}

func TestATableWithoutASourceIsAnError(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"state/gone", "state/bare"} {
		_, err := tables(tableTree("<!-- table " + file + ": a | b -->\n<!-- end table -->\n"))
		require.ErrorContains(t, err, "docs/keys.md: the table "+file+": no such file, or no comment")
	}
}
