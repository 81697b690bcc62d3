//go:build unix

package app_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestExitCodesOfTheOthers(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for name, test := range map[string]struct {
		args []string
		url  string
		code int
		err  string
	}{
		"help":                         {args: []string{"--help"}, url: apptest.Nobody},
		"nothing":                      {args: nil, url: apptest.Nobody},
		"version":                      {args: []string{"--version"}, url: apptest.Nobody},
		"sem":                          {args: []string{"sem"}, url: apptest.Nobody},
		"completion":                   {args: []string{"completion", "bash"}, url: apptest.Nobody},
		"unknown":                      {args: []string{"latch"}, code: 64, err: `unknown command "latch" for "berth"`},
		"unknown below sem":            {args: []string{"sem", "rm"}, code: 64, err: `unknown command "rm" for "berth sem"`},
		"mistyped":                     {args: []string{"lok", "ls"}, code: 64, err: "unknown command \"lok\" for \"berth\". Did you mean this? lock\nSee 'berth --help'.\n"},
		"mistyped below sem":           {args: []string{"sem", "lss"}, code: 64, err: "unknown command \"lss\" for \"berth sem\". Did you mean this? ls\nSee 'berth sem --help'.\n"},
		"mistyped, with a flag":        {args: []string{"lock", "relaese", "x", "--force"}, code: 64, err: "unknown command \"relaese\" for \"berth lock\". Did you mean this? release\n"},
		"unknown, for help":            {args: []string{"pool", "drain", "--help"}, code: 64, err: "unknown command \"drain\" for \"berth pool\"\nSee 'berth pool --help'.\n"},
		"help of an unknown one":       {args: []string{"lock", "-h", "rm"}, code: 64, err: `unknown command "rm" for "berth lock"`},
		"mistyped, for help":           {args: []string{"lok", "--help"}, code: 64, err: "unknown command \"lok\" for \"berth\". Did you mean this? lock\nSee 'berth --help'.\n"},
		"unknown shell, for help":      {args: []string{"completion", "ksh", "--help"}, code: 64, err: `unknown command "ksh" for "berth completion"`},
		"help with an argument":        {args: []string{"sem", "show", "x", "--help"}, url: apptest.Nobody},
		"help of drain":                {args: []string{"help", "drain"}, url: apptest.Nobody},
		"mistyped flag":                {args: []string{"sem", "ls", "--nmespace", "x"}, code: 64, err: "unknown flag --nmespace. Did you mean this? --namespace\n"},
		"version of an argument":       {args: []string{"version", "x"}, url: apptest.Nobody, code: 64, err: `"x" is one argument too many`},
		"ls with an argument":          {args: []string{"sem", "ls", "x"}, code: 64, err: `"x" is one argument too many`},
		"show without a name":          {args: []string{"sem", "show"}, code: 64, err: "NAME is missing"},
		"show a bad name":              {args: []string{"sem", "show", "a{"}, code: 64, err: "invalid NAME"},
		"show an unknown one":          {args: []string{"sem", "show", "x"}, code: 1, err: `no semaphore "x" in namespace "berth"`},
		"resize to 0":                  {args: []string{"sem", "resize", "x", "0"}, code: 64, err: "invalid CAPACITY"},
		"resize to text":               {args: []string{"sem", "resize", "x", "many"}, code: 64, err: "invalid CAPACITY"},
		"resize to far too much":       {args: []string{"sem", "resize", "x", "99999999999999"}, code: 64, err: "invalid CAPACITY"},
		"ls":                           {args: []string{"sem", "ls"}},
		"check":                        {args: []string{"check"}},
		"ls, unreachable":              {args: []string{"sem", "ls"}, url: apptest.Nobody, code: 69, err: "cannot reach the server at 127.0.0.1:1: "},
		"show, unreachable":            {args: []string{"sem", "show", "x"}, url: apptest.Nobody, code: 69, err: "connection refused"},
		"check --json":                 {args: []string{"check", "--json"}, url: apptest.Nobody, code: 69, err: "cannot reach"},
		"lock":                         {args: []string{"lock"}, url: apptest.Nobody},
		"pool":                         {args: []string{"pool"}, url: apptest.Nobody},
		"unknown below pool":           {args: []string{"pool", "rm"}, code: 64, err: `unknown command "rm" for "berth pool"`},
		"pool ls":                      {args: []string{"pool", "ls"}},
		"show an unknown pool":         {args: []string{"pool", "show", "x"}, code: 1, err: `pool "x" in namespace "berth" has no resources, and nobody waits for one`},
		"next of an unknown pool":      {args: []string{"pool", "next", "x"}, code: 1, err: `pool "x" in namespace "berth" has no resources`},
		"add to a pool, unreachable":   {args: []string{"pool", "add", "x", "a"}, url: apptest.Nobody, code: 69, err: "connection refused"},
		"add a missing file to a pool": {args: []string{"pool", "add", "x", "--file", "/nowhere"}, url: apptest.Nobody, code: 66, err: "no such file"},
		"too many sharers":             {args: []string{"pool", "set", "p", "--sharers", "101"}, code: 64, err: "--sharers"},
		"a pool's lease that is short": {args: []string{"pool", "set", "p", "--max-lease", "1ms"}, code: 64, err: "--max-lease"},
		"a cooldown of no unit":        {args: []string{"pool", "set", "p", "--cooldown", "1us"}, code: 64, err: "--cooldown"},
		"a pause for 0":                {args: []string{"sem", "pause", "gpu", "--for", "0"}, code: 64, err: "--for"},
		"a pause for too long":         {args: []string{"sem", "pause", "gpu", "--for", "9000h"}, code: 64, err: "--for"},
		"all, paused for too long":     {args: []string{"pause", "--all", "--for", "9000h", "--force"}, code: 64, err: "invalid --for: 9000h0m0s is not above 0 and at most 8784h0m0s\n"},
		"swarm":                        {args: []string{"swarm"}, url: apptest.Nobody},
		"show a free lock":             {args: []string{"lock", "show", "x"}, code: 1, err: `lock "x" in namespace "berth" is free`},
		"release without force":        {args: []string{"lock", "release", "x"}, url: apptest.Nobody, code: 64, err: "say --force if that is meant"},
		"release a free lock":          {args: []string{"lock", "release", "x", "--force"}, code: 1, err: `nobody holds lock "x"`},
		"release a bad name":           {args: []string{"lock", "release", "x{", "--force"}, url: apptest.Nobody, code: 64, err: "invalid NAME"},
		"extend without force":         {args: []string{"lock", "extend", "x", "--by", "1s"}, url: apptest.Nobody, code: 64, err: "say --force if that is meant"},
		"extend by nothing":            {args: []string{"lock", "extend", "x", "--force"}, url: apptest.Nobody, code: 64, err: "--by D is missing: by how much"},
		"extend by 0":                  {args: []string{"lock", "extend", "x", "--force", "--by", "0s"}, url: apptest.Nobody, code: 64, err: "invalid --by: 0s is not above 0"},
		"extend for good":              {args: []string{"lock", "extend", "x", "--force", "--by", berth.Forever.String()}, url: apptest.Nobody, code: 64, err: "invalid --by: it must end"},
		"extend by too much":           {args: []string{"lock", "extend", "x", "--force", "--by", "10000000h"}, url: apptest.Nobody, code: 64, err: `invalid --by: "10000000h" is too long; the longest time is about 292 years`},
		"extend by no time":            {args: []string{"lock", "extend", "x", "--force", "--by", "10000000"}, url: apptest.Nobody, code: 64, err: `invalid --by: "10000000" is not a time such as`},
		"extend backwards":             {args: []string{"lock", "extend", "x", "--force", "--by", "-1s"}, url: apptest.Nobody, code: 64, err: "invalid --by"},
		"extend by microseconds":       {args: []string{"lock", "extend", "x", "--force", "--by", "1us"}, url: apptest.Nobody, code: 64, err: "whole number of milliseconds"},
		"extend a free lock":           {args: []string{"lock", "extend", "x", "--force", "--by", "1s"}, code: 1, err: `nobody holds lock "x"`},
		"permit without force":         {args: []string{"sem", "release", "x", "y"}, url: apptest.Nobody, code: 64, err: "say --force if that is meant"},
		"permit without a name":        {args: []string{"sem", "release", "--force"}, url: apptest.Nobody, code: 64, err: "NAME is missing; or --owner OWNER, --node NODE or --all"},
		"permit of no claim":           {args: []string{"sem", "release", "x", "", "--force"}, url: apptest.Nobody, code: 64, err: "invalid CLAIM"},
		"a server of no name":          {args: []string{"check", "--redis="}, code: 64, err: "invalid --redis: it is empty"},
		"the flag counts first":        {args: []string{"check", "--redis", s.URL()}, url: apptest.Nobody},
		"demo has nothing to say":      {args: []string{"demo", "--json"}, code: 64, err: "--json is not for 'berth demo'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := test.url
			if url == "" {
				url = s.URL()
			}
			got := apptest.Call(t, url, test.args...)
			require.Equal(t, test.code, got.Code, got.Err)
			require.Contains(t, got.Err, test.err)
			if test.code != 0 && test.code != 64 {
				require.Equal(t, 1, strings.Count(got.Err, "\n"), "one line: %s", got.Err)
			}
			if test.code != 0 {
				require.Empty(t, got.Out)
			}
		})
	}
}

func TestThePasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	_, err := apptest.SemOf(t, s, "gpu", 1).Acquire(context.Background(), nil)
	require.NoError(t, err)
	addr := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "redis://"), "?client_cache=0")
	urls := []string{
		apptest.Nobody,
		"redis://user:s3cret@" + addr, // the server knows no AUTH
		"redis://:s3c%ret@127.0.0.1:1",
		"redis://user:s3/s3cret@127.0.0.1:1",
		"redis://user:s3cret@127.0.0.1:1/one/two",
		"redis://user:s3cret@127.0.0.1:port",
		"http://user:s3cret@127.0.0.1",
		"user:s3cret@127.0.0.1",
		"user:s3cret",
		"redis://user:s3?s3cret@127.0.0.1:1",
	}
	for _, url := range urls {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{
				{"check"},
				{"sem", "ls"},
				{"sem", "show", "gpu"},
				{"sem", "resize", "gpu", "2"},
				{"lock", "ls"},
				{"pool", "ls"},
				{"pool", "add", "proxies", "a"},
				{"swarm", "flush"},
				{"check", "--help"},
				{"run", "--sem", "gpu", "--capacity", "1", "--try", "true"},
				{"__complete", "sem", "show", ""},
			} {
				var out, errs bytes.Buffer
				apptest.Program(append([]string{"--redis", url}, args...), nil, &out, &errs)
				if args[0] != "__complete" { // it repeats what is being typed
					apptest.Program(append([]string{"-redis=" + url}, args...), nil, &out, &errs)
				}
				require.NotContains(t, out.String()+errs.String(), "s3c")
			}
			for _, args := range [][]string{{"check"}, {"--help"}} {
				got := apptest.Spawn(t, url, args...)
				require.NotContains(t, got.Out+got.Err, "s3c")
			}
		})
	}
}
