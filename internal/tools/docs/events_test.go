package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/observe"
)

func TestEveryKindIsListedNamedAndDocumented(t *testing.T) {
	t.Parallel()
	kinds, err := eventKinds(os.DirFS("../../.."))
	require.NoError(t, err)
	event := reflect.TypeFor[observe.Event]()
	var declared []observe.Kind
	for _, k := range kinds {
		declared = append(declared, observe.Kind(k.kind))
		require.Equal(t, strings.ReplaceAll(hyphens(k.constant), "-", "_"), k.kind)
		require.Equal(t, strings.ToLower(observe.Kind(k.kind).Level().String()), k.level, "level of %s", k.constant)
		for field := range strings.SplitSeq(k.fields, ", ") {
			_, ok := event.FieldByName(field)
			require.True(t, ok, "%s fills %q, which Event does not have", k.constant, field)
		}
	}
	require.Equal(t, observe.Kinds(), declared)
}

func TestThePageOfEvents(t *testing.T) {
	t.Parallel()
	block := "const (\n\t// Lost: a lease ended.\n\t// Fills: Fence. Level: warn.\n\tLost Kind = \"lost\"\n)\n"
	tree := fstest.MapFS{
		"pkg/observe/kind.go": {Data: []byte("package observe\n" + strings.Repeat(block, len(sentBy)))},
		"pkg/observe/event.go": {Data: []byte("package observe\ntype Event struct {\n" +
			"\t// Fence is the number\n\t// of the grant.\n\tFence int64\n}\n")},
	}
	p, err := eventsPage(tree)
	require.NoError(t, err)
	require.Contains(t, p.text, "| `lost` | A lease ended. | Fence | warn | semaphore |\n")
	require.Contains(t, p.text, "| `Fence` | The number of the grant. |\n")

	for problem, kinds := range map[string]string{
		"has another form":               strings.Replace(block, "Lost:", "Found:", 1),
		"another number of const blocks": block,
	} {
		tree["pkg/observe/kind.go"] = &fstest.MapFile{Data: []byte("package observe\n" + kinds)}
		_, err := eventsPage(tree)
		require.ErrorContains(t, err, problem)
	}
}
