package measure_test

import (
	"testing"

	"github.com/rs/xid"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/observe/measure"
)

func TestWhatTellsNamesApartIsCollapsed(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]string{
		"":                  "",
		"gpu":               "gpu",
		"order:12345":       "order:*",
		"order:1:item:22":   "order:*:item:*",
		"shard7":            "shard*",
		"eu-west-1/db_02":   "eu-west-*/db_*",
		"2026-11-27T05:20Z": "*-*-*T*:*Z",
		"user:alice":        "user:alice",
		"tür-9":             "tür-*",
		"job:3f2504e0-4f89-11d3-9a0c-0305e82c3301":       "job:*",
		"job:3F2504E0-4F89-11D3-9A0C-0305E82C3301/lines": "job:*/lines",
		"3f2504e0-4f89-11d3-9a0c-0305e82c33011":          "*-*f*-*d*-*a*c-*",
		"commit:deadbee1":                                "commit:*",
		"commit:deadbeef":                                "commit:deadbeef", // perhaps a word
		"commit:dead1":                                   "commit:dead*",
		"run." + xid.New().String():                      "run.*",
		"ulid 01ARZ3NDEKTSV4RRFFQ69G5FAV":                "ulid *",
		"internationalization":                           "internationalization",
		"tenant-7f3a9c2b4d5e6f708192a3b4c5d":             "tenant-*",
		"\xff1\xff":                                      "\xff*\xff",
	} {
		require.Equal(t, class, measure.Collapse(name), name)
	}
}

func FuzzCollapse(f *testing.F) {
	for _, name := range []string{"order:12345", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "run.cq3v0s1h8qk0", "x\xff9"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		class := measure.Collapse(name)
		require.LessOrEqual(t, len(class), len(name))
		require.NotRegexp(t, "[0-9]", class)
		require.Equal(t, class, measure.Collapse(class))
	})
}
