package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var source = fstest.MapFS{
	"pkg/sem/sem.go": {Data: []byte(`package sem

import "example.com/internal/engine"

const Max, Min = 2, 1

type (
	Client struct{ Config Config }
	Config struct{ Lease int }
	Permit struct{ *engine.Hold[int] }
	Handle interface{ Release() }
	Token = engine.Token
)

func New() *Client { return nil }

func (c *Client) Stats() {}

func (p *Permit) Weight() int { return 0 }
`)},
	"internal/engine/engine.go": {Data: []byte(`package engine

type Hold[T any] struct{ base }

type base struct{}

func (*base) Renew() {}

type Token struct{ ID string }
`)},
	"pkg/sem/sem_test.go":  {Data: []byte("package sem\n\nfunc TestIt(t *testing.T) {}\n\nfunc helper() {}\n")},
	"test/x/deep_test.go":  {Data: []byte("package x_test\n\nfunc TestDeep(t *testing.T) {}\n")},
	"cmd/berth/main.go":    {Data: []byte("package main\n\nfunc Main() {}\n")},
	"bin/generated/bad.go": {Data: []byte("no Go")},
}

func TestNames(t *testing.T) {
	t.Parallel()
	names, err := readNames(source)
	require.NoError(t, err)
	for name, problem := range map[string]string{
		"sem.New":            "",
		"sem.Min":            "",
		"sem.Config.Lease":   "",
		"sem.Client.Stats":   "",
		"sem.Permit.Weight":  "",
		"sem.Permit.Hold":    "",
		"sem.Permit.Renew":   "", // by way of two embedded types
		"sem.Handle.Release": "",
		"sem.Token.ID":       "", // by way of an alias
		"Client":             "",
		"Client.Stats":       "",
		"TestIt":             "",
		"TestDeep":           "",
		"sem.TestIt":         "",
		"context.Cause":      "",

		"sem.Old":           "there is no sem.Old",
		"sem.Config.TTL":    "there is no sem.Config.TTL",
		"sem.New.Lease":     "there is no sem.New.Lease",
		"sem.Permit.Renews": "there is no sem.Permit.Renews",
		"Lock":              "there is no Lock in any package",
		"Client.Old":        "there is no Client.Old in any package",
		"Main":              "there is no Main in any package",
		"lock.New":          "there is no package lock for lock.New",
		"TestGone":          "there is no test TestGone",
	} {
		err := names.lookUp(name)
		if problem == "" {
			require.NoError(t, err, name)
		} else {
			require.EqualError(t, err, problem, name)
		}
	}
}

func TestTheThirdColumnIsRead(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"| a | b | `sem.New(ctx, x)`, `TestIt/sub case` |":     {"sem.New", "TestIt"},
		"| `A` | `B` | `*sem.Permit`; `sem.Pool[int].Get()` |": {"sem.Permit", "sem.Pool.Get"},
		"| a \\| b | c | `sem.X` |":                            {"sem.X"},
		"| a | b | `berth run --sem NAME`, `make test`, `x` |": nil,
		"| a | `sem.New` |":                                    nil,
		"`sem.New`":                                            nil,
	} {
		require.Equal(t, want, thirdColumn(line), line)
	}
}

func TestParityTellsTheLine(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"p.md": {Data: []byte("# P\n\n| a | b | c |\n|---|---|---|\n| x | y | `sem.Gone` |\n")}}
	for name, file := range source {
		tree[name] = file
	}
	require.EqualError(t, checkParity(tree, "p.md"), "p.md:5: there is no sem.Gone")
	require.NoError(t, checkParity(tree, "missing.md"))
}
