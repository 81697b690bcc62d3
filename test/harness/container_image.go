package harness

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"
)

// ContainerMissing says why Container cannot run a server on this machine; nil if
// it can. Where BERTH_TEST_DOCKER is "required" it is always nil, so that a test
// which asks first fails without Docker, as any other.
func ContainerMissing() error {
	if os.Getenv("BERTH_TEST_DOCKER") == "required" {
		return nil
	}
	_, err := containerImage()
	return err
}

// Container is one server in a container, by testcontainers-go: of the image that
// BERTH_TEST_IMAGE names where Docker has it, else of one that is made from this
// machine's redis-server. It fails the test where Docker does not answer; a test that
// can do without asks ContainerMissing first.
func Container(t testing.TB, args ...string) *Deployment {
	t.Helper()
	return alone("container", private(t, []maker{{"a container", newContained}}, args...))
}

// newContained runs a server in a container, from whatever image there is.
func newContained(args []string) (engine, error) {
	name, err := containerImage()
	if err != nil {
		return nil, err
	}
	provider, err := dockerd()
	if err != nil {
		return nil, err
	}
	return runContainer(provider, name, args)
}

// containerImage names, once per test binary, the image for Container: the one that
// is wanted, or where Docker does not have it, one of this machine's redis-server.
// Nothing is pulled.
var containerImage = sync.OnceValues(func() (string, error) {
	_, unwanted := docker()
	if unwanted == nil {
		return image(), nil
	}
	provider, err := dockerd()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), dockerLimit)
	defer cancel()
	name, err := ownImage(ctx, provider.Client())
	if err != nil {
		return "", errors.Join(unwanted, fmt.Errorf("no image of this machine's redis-server: %w", err))
	}
	return name, nil
})

var serverVersion = regexp.MustCompile(`v=([0-9A-Za-z.-]+)`)

// ownImage makes an image of this machine's redis-server and names it after its
// version, unless Docker has it from an earlier run.
func ownImage(ctx context.Context, docker client.APIClient) (string, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return "", err
	}
	told, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", binary, err)
	}
	version := serverVersion.FindSubmatch(told)
	if version == nil {
		return "", fmt.Errorf("%s --version does not tell a version: %q", binary, told)
	}
	name := "berth-test-redis:" + string(version[1])
	if _, err := docker.ImageInspect(ctx, name); err == nil {
		return name, nil
	}
	return name, importImage(ctx, docker, name, binary)
}

// importImage makes an image of a program and the libraries that it loads.
func importImage(ctx context.Context, docker client.APIClient, name, binary string) error {
	libraries, err := librariesOf(ctx, binary)
	if err != nil {
		return err
	}
	content, writer := io.Pipe()
	go func() { writer.CloseWithError(writeImage(writer, binary, libraries)) }()
	defer func() { _ = content.Close() }() // ends the goroutine, whatever was read
	reply, err := docker.ImageImport(ctx,
		client.ImageImportSource{Source: content, SourceName: "-"}, name,
		client.ImageImportOptions{Changes: []string{
			"WORKDIR /data",
			"ENV PATH=/usr/local/bin",
			`CMD ["redis-server"]`,
		}})
	if err != nil {
		return fmt.Errorf("importing %s: %w", name, err)
	}
	_, err = io.Copy(io.Discard, reply)
	if err := errors.Join(err, reply.Close()); err != nil {
		return fmt.Errorf("importing %s: %w", name, err)
	}
	// What Docker thinks of the content is only in the stream that was discarded.
	_, err = docker.ImageInspect(ctx, name)
	return err
}

// A library is "name => /path (0x1)", the loader "/path (0x1)".
var libraryPath = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// librariesOf lists what the loader puts beside a program, itself included; nothing
// for a program that is linked statically.
func librariesOf(ctx context.Context, binary string) (paths []string, err error) {
	told, err := exec.CommandContext(ctx, "ldd", binary).CombinedOutput()
	if err != nil && !strings.Contains(string(told), "not a dynamic executable") {
		return nil, fmt.Errorf("ldd %s: %w: %s", binary, err, told)
	}
	if strings.Contains(string(told), "not found") {
		return nil, fmt.Errorf("ldd %s: %s", binary, told)
	}
	for _, found := range libraryPath.FindAllSubmatch(told, -1) {
		paths = append(paths, string(found[1]))
	}
	return paths, nil
}

// writeImage writes a root folder: the program, its libraries at the paths where its
// loader looks for them, and /data to work in.
func writeImage(w io.Writer, binary string, libraries []string) error {
	archive := tar.NewWriter(w)
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o777}); err != nil {
		return err
	}
	if err := writeProgram(archive, binary, "usr/local/bin/redis-server"); err != nil {
		return err
	}
	for _, path := range libraries {
		if err := writeProgram(archive, path, strings.TrimPrefix(filepath.Clean(path), "/")); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeProgram writes a file that may be run; of a link, what it leads to.
func writeProgram(archive *tar.Writer, path, name string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}
