package harness

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
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

// freeAddr returns a loopback address that nothing listens on. Another process
// may take it before the caller does, so callers try again with the next one.
func freeAddr() (string, error) {
	var last error
	for range 50 {
		n, err := rand.Int(rand.Reader, big.NewInt(lastPort-firstPort))
		if err != nil {
			return "", err
		}
		addr := fmt.Sprintf("127.0.0.1:%d", firstPort+n.Int64())
		l, err := net.Listen("tcp", addr)
		if err != nil {
			last = err
			continue
		}
		return addr, l.Close()
	}
	return "", fmt.Errorf("no free port: %w", last)
}
