package harness

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/redis"
	"github.com/testcontainers/testcontainers-go/wait"
)

// dockerLimit bounds one step that Docker does for us.
const dockerLimit = 2 * time.Minute

// image is the image that containers are made from.
func image() string {
	return cmp.Or(os.Getenv("BERTH_TEST_IMAGE"), "redis:7-alpine")
}

// dockerd says, once per test binary, whether Docker answers.
var dockerd = sync.OnceValues(func() (provider *testcontainers.DockerProvider, err error) {
	// testcontainers panics on some machines without Docker.
	defer func() {
		if r := recover(); r != nil {
			provider, err = nil, fmt.Errorf("docker does not answer: %v", r)
		}
	}()
	// Its reaper is a container of one more image, which would have to be
	// pulled. The price: a test binary that is killed leaves its container.
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), dockerLimit)
	defer cancel()
	provider, err = testcontainers.NewDockerProvider()
	if err != nil {
		return nil, fmt.Errorf("docker does not answer: %w", err)
	}
	if _, err := provider.Client().Ping(ctx, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("docker does not answer: %w", err)
	}
	return provider, nameDockerHost(ctx, provider.Client())
})

// nameDockerHost says that the ports of containers are published on this machine,
// where Docker runs on it. testcontainers takes a machine that is itself made from
// an image for a container beside those of the tests.
func nameDockerHost(ctx context.Context, docker client.APIClient) error {
	const variable = "TESTCONTAINERS_HOST_OVERRIDE"
	if os.Getenv(variable) != "" || !strings.HasPrefix(docker.DaemonHost(), "unix://") {
		return nil
	}
	info, err := docker.Info(ctx, client.InfoOptions{})
	if err != nil {
		return fmt.Errorf("docker: %w", err)
	}
	name, err := os.Hostname()
	if err != nil || name != info.Info.Name {
		return err
	}
	return os.Setenv(variable, "localhost")
}

// docker says, once per test binary, whether Docker answers and has the image.
// That the image is never pulled keeps tests from waiting for a network.
var docker = sync.OnceValues(func() (*testcontainers.DockerProvider, error) {
	provider, err := dockerd()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), dockerLimit)
	defer cancel()
	if _, err := provider.Client().ImageInspect(ctx, image()); err != nil {
		return nil, fmt.Errorf("docker has no image %s: %w", image(), err)
	}
	return provider, nil
})

// contained is a server in a container.
type contained struct {
	docker client.APIClient
	ctr    *redis.RedisContainer
	at     string // host:port
}

// containers remembers that no container could be started: what failed once would
// cost every further test its time.
var containers struct {
	sync.Mutex
	err error // guarded by the mutex
}

func newContainer(args []string) (engine, error) {
	containers.Lock()
	err := containers.err
	containers.Unlock()
	if err != nil {
		return nil, err
	}
	c, err := newContainerOfImage(args)
	if err != nil && len(args) == 0 { // settings may be at fault otherwise
		containers.Lock()
		containers.err = err
		containers.Unlock()
	}
	return c, err
}

func newContainerOfImage(args []string) (engine, error) {
	provider, err := docker()
	if err != nil {
		return nil, err
	}
	return runContainer(provider, image(), args)
}

func runContainer(provider *testcontainers.DockerProvider, image string, args []string) (engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dockerLimit)
	defer cancel()
	host, err := provider.DaemonHost(ctx)
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cmd := append([]string{
		"redis-server", "--save", "", "--appendonly", "no",
		"--protected-mode", "no", // the port is published on loopback, see publish
	}, args...)
	ctr, err := redis.Run(ctx, image,
		testcontainers.WithCmd(cmd...),
		publish(host, port),
		// Any image will do, one without a shell for other checks too.
		testcontainers.WithWaitStrategy(wait.ForLog("Ready to accept connections")),
	)
	c := &contained{docker: provider.Client(), ctr: ctr, at: net.JoinHostPort(host, port)}
	if err == nil {
		err = answers(ctx, c.at)
	}
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// publish fixes the port, because one that Docker draws changes with a restart.
func publish(host, port string) testcontainers.CustomizeRequestOption {
	binding := network.PortBinding{HostPort: port}
	if host == "localhost" {
		binding.HostIP = netip.MustParseAddr("127.0.0.1")
	}
	return testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
		c.PortBindings = network.PortMap{network.MustParsePort("6379/tcp"): {binding}}
	})
}

func (c *contained) addr() string { return c.at }

func (c *contained) pid() int { return 0 }

func (c *contained) kill() error {
	if !c.ctr.IsRunning() {
		return nil
	}
	return c.step(func(ctx context.Context) error {
		state, err := c.ctr.State(ctx)
		if err != nil {
			return err
		}
		if state.Paused {
			if _, err := c.docker.ContainerUnpause(ctx, c.ctr.GetContainerID(), client.ContainerUnpauseOptions{}); err != nil {
				return err
			}
		}
		var atOnce time.Duration
		return c.ctr.Stop(ctx, &atOnce)
	})
}

func (c *contained) start() error {
	return c.step(func(ctx context.Context) error {
		if err := c.ctr.Start(ctx); err != nil {
			return err
		}
		return answers(ctx, c.at)
	})
}

func (c *contained) freeze() error {
	return c.step(func(ctx context.Context) error {
		_, err := c.docker.ContainerPause(ctx, c.ctr.GetContainerID(), client.ContainerPauseOptions{})
		return err
	})
}

func (c *contained) thaw() error {
	return c.step(func(ctx context.Context) error {
		_, err := c.docker.ContainerUnpause(ctx, c.ctr.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

func (c *contained) remove() error {
	if c.ctr == nil {
		return nil
	}
	return testcontainers.TerminateContainer(c.ctr, testcontainers.StopTimeout(0))
}

func (c *contained) step(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), dockerLimit)
	defer cancel()
	return do(ctx)
}

// answers polls until the server replies to a PING. Docker's own proxy accepts
// connections before there is a server behind it, so only a reply counts.
func answers(ctx context.Context, addr string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ping(ctx, addr)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func ping(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		stop()
		_ = conn.Close()
	}()
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return err
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.HasPrefix(reply, "-LOADING") {
		return errors.New(strings.TrimSpace(reply))
	}
	return nil // +PONG, or an error of a server that wants a password
}
