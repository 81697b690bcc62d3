package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const machineSource = `package engine

type phase uint8

const (
	asking phase = iota // no answer
	held                // it holds
	phases
)

const (
	evAsk   eventKind = iota // it asks
	evEndOf                  // it is over
	eventKinds
)

var course = table{
	evAsk:   {asking: sends},
	evEndOf: {asking: dropsIt, held: dropsIt},
}
`

func TestThePageOfACourse(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"internal/engine/machine.go": {Data: []byte(machineSource)},
		"internal/engine/rules.go": {Data: []byte("package engine\n" +
			"// sends has it sent. It does more.\nfunc sends() {}\n// dropsIt ends it.\nfunc dropsIt() {}\n")},
	}
	p, err := coursePage(tree)
	require.NoError(t, err)
	require.Contains(t, p.text, "\n| event | | asking | held |\n|---|---|---|---|\n"+
		"| ask | it asks | sends | |\n| end-of | it is over | drops-it | drops-it |\n\n"+
		"- **sends** has it sent.\n- **drops-it** ends it.\n")

	delete(tree, "internal/engine/rules.go")
	_, err = coursePage(tree)
	require.ErrorContains(t, err, "the rule sends has no comment")
	tree["internal/engine/machine.go"] = &fstest.MapFile{Data: []byte("package engine\n")}
	_, err = coursePage(tree)
	require.ErrorContains(t, err, "machine.go has no course")
}

// The page shows what the program itself goes by.
func TestThePageOfTheCourse(t *testing.T) {
	t.Parallel()
	p, err := coursePage(os.DirFS("../../.."))
	require.NoError(t, err)
	require.Contains(t, p.text, "| asking | waiting | granted | held | loose | detached | ended |\n")
	require.Greater(t, strings.Count(p.text, "\n- **"), 25)
}
