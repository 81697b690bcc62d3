package browser

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/browser/chrome"
)

// axe is axe-core, which tools/setup.sh installs.
func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile("../../.cache/axe/node_modules/axe-core/axe.min.js")
	require.NoError(t, err, "'tools/setup.sh axe' installs it")
	return string(script)
}

// violations are what axe finds on a page, by all rules that are not experimental, with the elements.
const violations = `axe.run({resultTypes: ["violations"]}).then(found => found.violations.map(v =>
	v.id + ": " + v.help + "\n" + v.nodes.map(n => "  " + n.html + "\n  " + n.failureSummary).join("\n")))`

// everybody are those who look at a page.
var everybody = []chrome.Looks{
	{Width: 390, Height: 844}, {Width: 390, Height: 844, Dark: true}, {Width: 1280, Height: 800, Dark: true}, {Width: 1280, Height: 800},
}

// accessible fails if axe finds anything. The debugger puts it into the page, whose policy forbids any script but its own.
func (l *look) accessible(axe string) {
	l.Helper()
	require.NoError(l, l.Eval(l.step(), axe, nil))
	for _, looks := range everybody {
		require.NoError(l, l.Look(l.step(), looks))
		require.Empty(l, is[[]string](l, violations), "%+v", looks)
	}
}

// axe finds what it is there for: else it would find nothing anywhere.
func (l *look) finds(what, change string) {
	l.Helper()
	require.NoError(l, l.Eval(l.step(), change, nil))
	require.Contains(l, fmt.Sprint(is[[]string](l, violations)), what)
}
