package harness

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/rueidis"
)

// parse reads host:port or a redis:// URL.
func parse(address string) (*Server, error) {
	url := address
	if !strings.Contains(url, "://") {
		url = "redis://" + url
	}
	options, err := rueidis.ParseURL(url)
	if err != nil {
		// The cause may repeat the URL, and with it a password.
		return nil, errors.New("want host:port or a redis:// URL")
	}
	return &Server{Addr: options.InitAddress[0], url: url, options: options}, nil
}

// Namespace returns a namespace that no other test uses, so that tests can share
// a server: the words of the test's name, and a random number.
func Namespace(t testing.TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%.80s-%s", name, strings.ToLower(rand.Text()[:10]))
}

// Ports are drawn from below the range that kernels take the ports of outgoing
// connections from, so that a server finds its port free after a restart.
const firstPort, lastPort = 20000, 32000

// ports are those of this process: what holds them for it, and what has been drawn.
var ports struct {
	sync.Mutex
	file  *os.File
	drawn map[int64]bool
}

// own draws a port for this process alone, for as long as it lives: a server that is down finds its port free when it
// comes back. Others of this user respect the locks of one file, a byte for each port. It returns false for one that is
// another's.
func own(port int64) (bool, error) {
	ports.Lock()
	defer ports.Unlock()
	if ports.file == nil {
		file, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("berth-test-ports-%d", os.Getuid())), os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return false, err
		}
		ports.file, ports.drawn = file, make(map[int64]bool)
	}
	if ports.drawn[port] {
		return false, nil
	}
	err := syscall.FcntlFlock(ports.file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: port, Len: 1})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	ports.drawn[port] = err == nil
	return err == nil, err
}

// FreeAddr is an address, as host:port, for a server that a test starts.
func FreeAddr(t testing.TB) string {
	t.Helper()
	addr, err := freeAddr()
	if err != nil {
		t.Fatalf("no address for a server: %v", err)
	}
	return addr
}

// freeAddr returns a loopback address that nothing listens on, and that no test draws. Another program may take it
// before the caller does, so callers try again with the next one.
func freeAddr() (string, error) {
	last := errAddressInUse
	for range 50 {
		n, err := rand.Int(rand.Reader, big.NewInt(lastPort-firstPort))
		if err != nil {
			return "", err
		}
		port := firstPort + n.Int64()
		switch ours, err := own(port); {
		case err != nil:
			return "", fmt.Errorf("a port: %w", err)
		case !ours:
			continue
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			last = err
			continue
		}
		return addr, l.Close()
	}
	return "", fmt.Errorf("no free port: %w", last)
}
