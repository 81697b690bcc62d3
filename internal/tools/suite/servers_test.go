//go:build unix

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// The server is one that says its version, from a repository that has some.
func TestAServerIsBuiltOfTheNewestReleaseThatMatches(t *testing.T) {
	setup, err := os.ReadFile("../../../tools/setup.sh")
	require.NoError(t, err)
	lib, err := os.ReadFile("../../../tools/lib.sh")
	require.NoError(t, err)
	in(t, map[string]string{
		"clone/tools/setup.sh": string(setup), "clone/tools/lib.sh": string(lib),
		"origin/Makefile": "redis-server:\n\tmkdir src; cp it src/redis-server; chmod +x src/redis-server\n",
	})
	shell := func(script string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "bash", "-euc", script).CombinedOutput()
		return string(out), err
	}
	out, err := shell("cd origin && git init -q && git config user.name x && git config user.email x@example.com" +
		" && for v in 7.2.10 7.2.9 7.2-rc3 70.2.0 8.2.1 8.10.0 70.3-rc1; do" +
		" echo \"echo Redis server v=$v sha=0\" >it; git add .; git commit -qm $v; git tag $v; done")
	require.NoError(t, err, out)
	origin, err := os.Getwd()
	require.NoError(t, err)
	t.Setenv("BERTH_SETUP_SOURCE", "file://"+origin+"/origin")
	for release, version := range map[string]string{
		"7.2": "7.2.10", "7.2.9": "7.2.9", "7": "7.2.10", "8": "8.10.0", "newest": "70.2.0",
	} {
		t.Setenv("BERTH_SETUP_REDIS", release)
		out, err = shell("PATH=$PWD/clone/.cache/redis-$BERTH_SETUP_REDIS:$PATH bash clone/tools/setup.sh redis")
		require.NoError(t, err, out)
		require.Contains(t, out, "building redis "+version+",")
		require.Contains(t, out, "Redis for the tests: redis-server "+version+"\n")
	}
	out, err = shell("BERTH_SETUP_REDIS=6.2 bash clone/tools/setup.sh redis")
	require.Error(t, err)
	require.Contains(t, out, "there is no redis 6.2")
}
