package app_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestColorsAreForATerminalThatHasThem(t *testing.T) {
	_, terminal := apptest.OpenTerminal(t)
	for _, test := range []struct {
		out     io.Writer
		term    string
		noColor bool
		colors  bool
	}{
		{terminal, "xterm", false, true},
		{terminal, "xterm", true, false},
		{terminal, "dumb", false, false},
		{terminal, "", false, false},
		{&strings.Builder{}, "xterm", false, false},
	} {
		t.Setenv("TERM", test.term)
		a := app.New(test.out, io.Discard)
		a.NoColor = test.noColor
		require.Equal(t, test.colors, a.Colors(), "%+v", test)
	}
}
