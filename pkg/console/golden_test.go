package console_test

import (
	"cmp"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/golden"
	"github.com/berth-go/berth/pkg/console"
)

// blank are lines that show nothing, versions are those of static files, and rows what names a row while a process lives.
var blank, versions, rows = regexp.MustCompile(`\n\s*\n+`), regexp.MustCompile(`\?v=\w+`), regexp.MustCompile(`<tr role="row" id="[^"]*"`)

// What each page shows in the scene of package golden; the first one has the frame that all have.
func TestWhatPagesShow(t *testing.T) {
	golden.In(t, func(base *testkit.World) {
		w := &world{base}
		s := w.serve("", console.Config{AllowActions: true})
		compare := func(file, page string, whole bool) {
			requireHarmless(t, page)
			if !whole {
				_, page, _ = strings.Cut(page, `<main id="main" tabindex="-1">`)
				page, _, _ = strings.Cut(page, "</main>")
			}
			page = versions.ReplaceAllString(rows.ReplaceAllString(page, `<tr role="row" id="*"`), "?v=*")
			golden.Compare(t, file+".html", blank.ReplaceAllString(page, "\n"))
		}
		s.see("cycles") // so that the others know of them
		for _, address := range []string{
			"", "name?kind=lock&name=backup", "name?kind=sem&name=gpu", "name?kind=sem&name=paused", "name?kind=lock&name=nightly",
			"name?kind=lock&name=digest", "name?kind=lock&name=migration", "name?kind=pool&name=proxies",
			"names", "nodes", "runs", "leaders", "cycles", "name?kind=lock&name=table-a", "search?by=label&q=host-1/*", "actions",
		} {
			page := s.see(address)
			file := strings.NewReplacer("name?kind=", "", "&name=", "-").Replace(cmp.Or(address, "overview"))
			file, _, _ = strings.Cut(file, "?")
			compare(file, page, address == "")
			if file == "nodes" {
				links := linksOf(t, page, "node?")
				require.NotEmpty(t, links)
				compare("node", s.see(links[0]), false)
			}
			if links := linksOf(t, page, "claim?"); file == "sem-gpu" || file == "pool-proxies" {
				require.NotEmpty(t, links)
				compare(file+"-hold", s.see(links[0]), false)
				compare(file+"-wait", s.see(links[len(links)-1]), false)
			}
		}
	})
}
