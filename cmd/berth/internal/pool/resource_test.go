package pool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestOneResourceIsShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "free", apptest.Wild)
	_, err := pool.Add(ctx, []string{"shared"}, &allocator.AddOptions{MaxSharers: 2, Expiry: 10 * time.Hour})
	require.NoError(t, err)
	require.NoError(t, pool.Rest(ctx, apptest.Wild, time.Hour, "answers\t429", nil))
	var held *allocator.Allocation[string]
	for held == nil || held.Resource() != "shared" {
		held, err = pool.Allocate(apptest.Owned("ann"), nil)
		require.NoError(t, err)
	}
	require.NoError(t, pool.Rest(ctx, "shared", time.Hour, "later", nil))
	require.NoError(t, pool.Bind(ctx, "b", "shared", nil))
	require.NoError(t, pool.Bind(ctx, "a", "shared", &allocator.BindOptions{BindFor: berth.Forever}))
	require.NoError(t, pool.Bind(ctx, "other", "free", nil))

	show := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool", "show", "proxies"}, args...)...)
	}
	got := show("shared", "--bindings")
	require.Zero(t, got.Code, got.Err)
	require.Regexp(t, `^proxies: shared is leased, [\d.]+s left, 1 of 2 sharers, stays for (10h00m|9h59m)\n`+
		`will rest when it comes back: later\n\nHeld by\nFENCE .*\n\d+ .* ann .*`+held.ID()+`\n\nBINDING +RESOURCE +LEFT\na +shared +forever\nb +shared +(1h00m|59m\d\ds)\n$`, got.Out)
	require.Regexp(t, `^proxies: "c\\x1b\[2J\\xff" is resting, (1h00m|59m\d\ds) left\nrests: "answers\\t429"\n$`, show("--quoted", text.Quoted(apptest.Wild)).Out)
	require.Equal(t, apptest.Outcome(1, "", "berth: resource gone is not in pool \"proxies\" in namespace \"berth\"\n"), show("gone"))

	require.NoError(t, pool.Unbind(ctx, "other"))
	got = show("shared", "--json")
	require.NotContains(t, got.Out, "bindings")
	var document showResourceDocument
	require.NoError(t, json.Unmarshal([]byte(show("shared", "--json", "--bindings").Out), &document))
	require.Equal(t, "shared", document.Resource)
	require.Equal(t, "leased", document.State)
	require.Equal(t, 2, document.Sharers)
	require.Len(t, document.Holders, 1)
	require.Len(t, document.Bindings, 2)
	require.Nil(t, document.Bindings[0].LeftMs, "no end")
	require.NoError(t, held.Release(ctx))
	require.Contains(t, show("free", "--json", "--bindings").Out, `"bindings": []`)
}

func TestBindingsAreSetListedAndRemoved(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a", apptest.Wild)
	binding := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool", "binding"}, args...)...)
	}
	require.Equal(t, apptest.Outcome(0, "Nothing is bound in pool proxies in namespace berth.\n", ""), binding("ls", "proxies"))
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "bindings": []}`, binding("ls", "proxies", "--json").Out)
	require.Equal(t, apptest.Outcome(0, "proxies: customer is bound to a, 36h00m left\n", ""), binding("set", "proxies", "customer", "a", "--for", "1d12h"))
	require.Equal(t, apptest.Outcome(0, "proxies: b is bound to a, 1h00m left\n", ""), binding("set", "proxies", "b", "a"))
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "binding": "c\u001b[2J\ufffd", "bindingBase64": "YxtbMkr/", "resource": "c\u001b[2J\ufffd", "base64": "YxtbMkr/", "leftMs": null}`,
		binding("set", "proxies", text.Quoted(apptest.Wild), text.Quoted(apptest.Wild), "--quoted", "--for", "forever", "--json").Out)
	bound, err := pool.Binding(context.Background(), apptest.Wild)
	require.NoError(t, err)
	require.Equal(t, allocator.Binding{Name: apptest.Wild, Resource: apptest.Wild, Left: berth.Forever}, bound)
	require.Equal(t, apptest.Outcome(1, "", "berth: resource x is not in pool \"proxies\" in namespace \"berth\"\n"), binding("set", "proxies", "b", "x"))

	require.Regexp(t, `^BINDING +RESOURCE +LEFT\nb +a +(1h00m|59m\d\ds)\n"c\\x1b\[2J\\xff" +"c\\x1b\[2J\\xff" +forever\n\.\.\. and 1 more\n$`, binding("ls", "proxies", "--limit", "2").Out)

	require.Equal(t, apptest.Outcome(0, "proxies: b is bound to a no more\n", ""), binding("rm", "proxies", "b"))
	require.Equal(t, apptest.Outcome(0, "proxies: b was not bound\n", ""), binding("rm", "proxies", "b"))
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "binding": "b", "resource": "", "leftMs": 0, "removed": false}`, binding("rm", "proxies", "b", "--json").Out)
	var document bindingsDocument
	require.NoError(t, json.Unmarshal([]byte(binding("ls", "proxies", "--json").Out), &document))
	require.Len(t, document.Bindings, 2)
	require.Equal(t, "customer", document.Bindings[1].Binding)
}

func TestWhatIsRefusedBeforeTheServerIsAsked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"show a bad name":               {[]string{"show", "a{"}, "invalid NAME"},
		"next of no name":               {[]string{"next"}, "NAME is missing"},
		"next of less than none":        {[]string{"next", "x", "--limit", "-1"}, "invalid --limit"},
		"add to no name":                {[]string{"add"}, "NAME is missing"},
		"add to a bad name":             {[]string{"add", "a{", "x"}, "invalid NAME"},
		"add nothing":                   {[]string{"add", "x"}, "RESOURCE is missing"},
		"add for no time":               {[]string{"add", "x", "a", "--expiry", "0s"}, "invalid --expiry: 0s is not above 0; leave it out for good"},
		"add for good":                  {[]string{"add", "x", "a", "--expiry", berth.Forever.String()}, "invalid --expiry: it must end"},
		"add for microseconds":          {[]string{"add", "x", "a", "--expiry", "1us"}, "whole number of milliseconds"},
		"replace with nothing":          {[]string{"replace", "x", "--file", "/dev/null"}, `there is none to replace those of "x" with; to empty the pool, say --allow-empty`},
		"remove nothing":                {[]string{"remove", "x"}, "RESOURCE is missing"},
		"rest nothing":                  {[]string{"rest", "x"}, "RESOURCE is missing"},
		"rest for no time":              {[]string{"rest", "x", "a", "--reason", "r"}, "--for D is missing"},
		"rest for no reason":            {[]string{"rest", "x", "a", "--for", "1s"}, "--reason TEXT is missing"},
		"rest for less than 0":          {[]string{"rest", "x", "a", "--for", "-1s"}, "invalid --for: -1s is below 0"},
		"rest for a number":             {[]string{"rest", "x", "a", "--for", "5"}, `invalid --for: "5" is not a time such as`},
		"rest for microseconds":         {[]string{"rest", "x", "a", "--for", "1us", "--reason", "r"}, "invalid --for"},
		"rest for a long reason":        {[]string{"rest", "x", "a", "--for", "1s", "--reason", strings.Repeat("r", 513)}, "invalid --reason"},
		"rest an empty one":             {[]string{"rest", "x", "", "--for", "0"}, "invalid RESOURCE"},
		"release without force":         {[]string{"release", "x", "y"}, "say --force if that is meant"},
		"release no claim":              {[]string{"release", "x", "", "--force"}, "invalid CLAIM"},
		"set nothing":                   {[]string{"set", "p"}, "there is nothing to set"},
		"a policy of no kind":           {[]string{"set", "p", "--policy", "oldest"}, "--policy"},
		"a policy of a resource":        {[]string{"set", "p", "a", "--policy", "random"}, "--policy"},
		"a longest lease of a resource": {[]string{"set", "p", "a", "--max-lease", "1s"}, "--max-lease"},
		"a longest hold of a resource":  {[]string{"set", "p", "a", "--max-hold", "1s"}, "--max-hold"},
		"no sharers":                    {[]string{"set", "p", "--sharers", "0"}, "--sharers"},
		"bound for no time in set":      {[]string{"set", "p", "--bind-for", "0"}, "--bind-for"},
		"a hold of no time":             {[]string{"set", "p", "--max-hold", "0"}, "--max-hold"},
		"set of no name":                {[]string{"set"}, "NAME"},
		"show an empty resource":        {[]string{"show", "x", ""}, "invalid RESOURCE"},
		"show all and one":              {[]string{"show", "x", "a", "--all"}, "invalid --all"},
		"bindings of a pool":            {[]string{"show", "x", "--bindings"}, "invalid --bindings"},
		"show too much":                 {[]string{"show", "x", "a", "b"}, `"b" is one argument too many`},
		"show nothing":                  {[]string{"show"}, "NAME is missing"},
		"bindings of a bad name":        {[]string{"binding", "ls", "x{"}, "invalid POOL"},
		"bind in a bad name":            {[]string{"binding", "set", "x{", "b", "a"}, "invalid POOL"},
		"bind nothing":                  {[]string{"binding", "set", "x", "b"}, "RESOURCE is missing"},
		"bind an empty name":            {[]string{"binding", "set", "x", "", "a"}, "invalid BINDING"},
		"bind an empty resource":        {[]string{"binding", "set", "x", "b", ""}, "invalid RESOURCE"},
		"bind for no time":              {[]string{"binding", "set", "x", "b", "a", "--for", "0"}, "invalid --for: 0s is not above 0"},
		"bind for days of nothing":      {[]string{"binding", "set", "x", "b", "a", "--for", "d"}, `invalid --for: "d" is not a time such as`},
		"unbind an empty name":          {[]string{"binding", "rm", "x", ""}, "invalid BINDING"},
		"check with nothing":            {[]string{"check", "x"}, "--exec CMD is missing"},
		"check a bad name":              {[]string{"check", "x{", "--exec", "true"}, "invalid POOL"},
		"check by nobody":               {[]string{"check", "x", "--exec", "true", "--workers", "0"}, "invalid --workers"},
		"check in no time":              {[]string{"check", "x", "--exec", "true", "--timeout", "0"}, "invalid --timeout"},
		"check, rest below 0":           {[]string{"check", "x", "--exec", "true", "--rest", "-1s"}, "invalid --rest"},
		"check, rest microseconds":      {[]string{"check", "x", "--exec", "true", "--rest", "1us"}, "invalid --rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := apptest.Call(t, apptest.Nobody, append([]string{"pool"}, test.args...)...)
			require.Equal(t, 64, got.Code, got.Err)
			require.Contains(t, got.Err, test.err)
			require.Empty(t, got.Out)
		})
	}
}

// TestFreeResourcesAreListedInTheirOrder takes the first of four and gives it back, so that it
// is the last; another one rests.
func TestFreeResourcesAreListedInTheirOrder(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "z", "rests", apptest.Wild, "a")
	next := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool", "next", "proxies"}, args...)...)
	}
	held, err := pool.Allocate(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, held.Release(ctx))
	require.NoError(t, pool.Rest(ctx, "rests", time.Hour, "worn out", nil))
	require.Equal(t, apptest.Outcome(0, strings.TrimLeft(`
RESOURCE         STAYS
"c\x1b[2J\xff"   -
a                -
z                -
`, "\n"), ""), next())
	require.Equal(t, "RESOURCE         STAYS\n\"c\\x1b[2J\\xff\"   -\na                -\n... and more\n", next("--limit", "2").Out)
	require.NotContains(t, next("--limit", "3").Out, "more")
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "next": [
		{"resource": "c\u001b[2J\ufffd", "base64": "YxtbMkr/", "state": "free", "leftMs": 0, "reason": "", "expiryMs": null, "leaving": false, "maxSharers": 1, "holders": []}
	]}`, next("--json", "--limit", "1").Out)

	_, err = pool.Add(ctx, []string{"shared"}, &allocator.AddOptions{MaxSharers: 2, Expiry: 10 * time.Hour})
	require.NoError(t, err)
	_, err = pool.Allocate(ctx, &allocator.AllocateOptions{Resource: "shared"})
	require.NoError(t, err)
	_, err = pool.Remove(ctx, []string{"a", "z", apptest.Wild})
	require.NoError(t, err)
	require.Regexp(t, `^RESOURCE +STAYS +SHARERS\nshared +(10h00m|9h59m) +1 of 2\n$`, next().Out)
	_, err = pool.Allocate(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, apptest.Outcome(0, "Nothing is free in pool proxies in namespace berth.\n", ""), next())
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "next": []}`, next("--json").Out)
}

func TestAPoolThatHandsOutAtRandomHasNoOrder(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
		says string
	}{
		{berth.Invalid("Policy", "under Random there is no order"), app.ExitFailed, `pool "proxies" in namespace "berth" hands out at random: there is no order`},
		{errors.New("the server is gone"), app.CodeOf(errors.New("x")), "the server is gone"},
	} {
		var out strings.Builder
		a := app.New(&out, nil)
		a.Namespace = "berth"
		err := printNext(a, "proxies", func(yield func(allocator.ResourceInfo, error) bool) { yield(allocator.ResourceInfo{}, test.err) }, 0)
		require.EqualError(t, err, test.says)
		require.Equal(t, test.code, app.CodeOf(err))
		require.Empty(t, out.String())
	}
}
