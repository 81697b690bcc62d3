package harness

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
)

func TestAnImageIsBuiltWhereItIsMissing(t *testing.T) {
	t.Parallel()
	if err := ContainerMissing(); err != nil {
		t.Skip(err)
	}
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skipf("no redis-server to build from: %v", err)
	}
	provider, err := dockerd()
	require.NoError(t, err)
	docker, ctx := provider.Client(), within(t, time.Minute)
	const name = "berth-test-redis:built"
	require.NoError(t, importImage(ctx, docker, name, binary))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), dockerLimit)
		defer cancel()
		_, err := docker.ImageRemove(ctx, name, client.ImageRemoveOptions{Force: true})
		require.NoError(t, err)
	})
	conn := private(t, []maker{{"a container", func(args []string) (engine, error) {
		return runContainer(provider, name, args)
	}}}, "--maxmemory", "3mb").Client(t)
	got, err := conn.Do(ctx, conn.B().ConfigGet().Parameter("maxmemory").Build()).AsStrMap()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"maxmemory": "3145728"}, got)
}

func TestAnImageHasTheProgramAndItsLibraries(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	libraries, err := librariesOf(t.Context(), sh)
	if err != nil {
		t.Skipf("this machine does not tell what a program loads: %v", err)
	}
	var content bytes.Buffer
	require.NoError(t, writeImage(&content, sh, libraries))

	var names []string
	for archive := tar.NewReader(&content); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		names = append(names, "/"+header.Name)
	}
	require.ElementsMatch(t, append(libraries, "/data/", "/usr/local/bin/redis-server"), names)
	_, err = librariesOf(t.Context(), "/no/such/program")
	require.ErrorContains(t, err, "/no/such/program")
}
