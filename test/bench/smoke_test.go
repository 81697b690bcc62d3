package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/test/bench/report"
	"github.com/berth-go/berth/test/bench/row"
)

func TestMain(m *testing.M) {
	row.RunChild()
	// rueidis looks at a server's topology once more some time after it was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// What a cycle allocates does not depend on how fast the machine is. The race detector allocates, too: so that is built
// without it.
func TestACycleAllocatesNoMoreThanItsBudget(t *testing.T) {
	program := filepath.Join(t.TempDir(), "bench")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-race=false", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), program, "-only", "client", "-rounds", "1", "-strict").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "met")
}

// TestSmoke runs the whole program on a server of its own, as small as can be. Every
// number must be there and finite; how great it is says nothing on this scale.
func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	var out, log bytes.Buffer
	err := run(t.Context(), []string{
		"-smoke", "-json", file("json"), "-svg", file("svg"), "-markdown", file("markdown"), "-page", file("page"),
	}, &out, &log)
	require.NoError(t, err, log.String())

	text, err := os.ReadFile(file("json"))
	require.NoError(t, err)
	var got struct {
		Rounds int
		Rows   []struct {
			ID      string
			Metrics []struct {
				ID     string
				Values map[string]struct{ Rounds []*float64 }
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, 1, got.Rounds)
	rows := row.All()
	require.Len(t, got.Rows, len(rows))
	for i, r := range rows {
		require.Equal(t, r.ID, got.Rows[i].ID)
		require.Len(t, got.Rows[i].Metrics, len(r.Metrics), r.ID)
		for j, m := range r.Metrics {
			values := got.Rows[i].Metrics[j].Values
			require.Len(t, values, len(r.With(m)), "%s: %s", r.ID, m.ID)
			for _, column := range r.With(m) {
				require.Len(t, values[column].Rounds, 1, "%s: %s of %s", r.ID, m.ID, column)
				require.NotNil(t, values[column].Rounds[0], "%s: %s of %s is no number", r.ID, m.ID, column)
			}
		}
		require.Contains(t, out.String(), r.ID+": "+r.Title)
	}

	picture, err := os.ReadFile(file("svg"))
	require.NoError(t, err)
	decoder, bars := xml.NewDecoder(bytes.NewReader(picture)), 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if element, ok := token.(xml.StartElement); ok && element.Name.Local == "rect" {
			bars++
		}
	}
	require.Positive(t, bars)

	markdown, err := os.ReadFile(file("markdown"))
	require.NoError(t, err)
	require.Contains(t, string(markdown), "### Budgets\n")

	// The page that is committed has these budgets, all of them. The figures are others.
	page, err := os.ReadFile(file("page"))
	require.NoError(t, err)
	committed, err := os.ReadFile(filepath.Join("..", "..", "docs", "generated", "benchmarks.md"))
	require.NoError(t, err)
	require.Contains(t, string(committed), string(page[:bytes.Index(page, []byte("\nlinux"))]))
	_, table, _ := strings.Cut(string(page), "\n| --- ")
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		cells := strings.Split(line, " | ")
		require.Contains(t, string(committed), "\n"+strings.Join(cells[:3], " | ")+" | ", "make bench-docs writes it")
	}
}

func TestFlags(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{rounds: 7, span: time.Second}, o)
	o, err = parse([]string{"-smoke", "-only", "a,b", "-addr", "h:1", "-strict"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{
		rounds: 1, span: 100 * time.Millisecond, only: "a,b", smoke: true, strict: true, addr: "h:1",
	}, o)
	for _, args := range [][]string{{"-rounds", "0"}, {"-for", "0s"}, {"-for", "soon"}, {"more"}} {
		_, err = parse(args, io.Discard)
		require.Error(t, err, args)
	}
	_, err = parse([]string{"-h"}, io.Discard)
	require.ErrorIs(t, err, flag.ErrHelp)
}

func TestRowsAreChosenByTheirBeginnings(t *testing.T) {
	ids := func(rows []row.Row) []string {
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return ids
	}
	all := []row.Row{{ID: "a-1"}, {ID: "a-10"}, {ID: "b-1"}, {ID: "c"}}
	for only, want := range map[string][]string{
		"": {"a-1", "a-10", "b-1", "c"}, "a": {"a-1", "a-10"}, "c, a-10": {"a-10", "c"}, "a-1": {"a-1", "a-10"},
	} {
		chosen, err := choose(all, only)
		require.NoError(t, err, only)
		require.Equal(t, want, ids(chosen), only)
	}
	_, err := choose(all, "d")
	require.Error(t, err)
}

func TestColumnsTakeTurnsAndAFailureIsSaid(t *testing.T) {
	var order []string
	broken := errors.New("broken")
	r := row.Row{
		ID: "r", Columns: []string{"a", "b", "none", "c"}, Skip: map[string]string{"none": "it cannot"},
		Measure: func(_ context.Context, env *row.Env, column string) (map[string]float64, error) {
			order = append(order, column+" "+env.For.String())
			if len(order) == 5 {
				return nil, broken
			}
			return map[string]float64{"m": float64(len(order))}, nil
		},
	}
	env := row.NewEnv(nil, "", row.Scale{For: 10 * time.Second})
	found, err := measure(t.Context(), r, env, 2, io.Discard)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "r, b: ")
	require.Equal(t, []string{"a 1s", "b 1s", "c 1s", "a 10s", "b 10s", "c 10s", "b 10s", "c 10s", "a 10s"}, order)
	require.Equal(t, report.Found{
		{"a": {"m": 4}, "b": nil, "c": {"m": 6}},
		{"b": {"m": 7}, "c": {"m": 8}, "a": {"m": 9}},
	}, found)

	order, r.Cold = nil, true
	_, err = measure(t.Context(), r, env, 1, io.Discard)
	require.NoError(t, err)
	require.Len(t, order, 3)
}
