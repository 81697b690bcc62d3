package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/embedded"
)

// hostOf is host:port of a URL.
func hostOf(t *testing.T, text string) string {
	t.Helper()
	parsed := apptest.Got(url.Parse(text))(t)
	return parsed.Host
}

func TestThePasswordMayStandInAVariable(t *testing.T) {
	t.Parallel()
	given := apptest.Answering(t, func(args []string) string {
		switch {
		case args[0] == "HELLO" && len(args) == 2:
			return "-NOAUTH HELLO must be called with the client already authenticated"
		case args[0] == "HELLO":
			return "-WRONGPASS " + strings.Join(args, "/")
		}
		return ""
	})
	ask := func(url, password string) string {
		cmd := apptest.Command(t, url, "sem", "ls")
		cmd.Env = append(cmd.Env, "BERTH_REDIS_PASSWORD"+"="+password)
		got := apptest.Finish(t, cmd).Ends(t, 69)
		return got.Err
	}
	require.Contains(t, ask(given, ""), "the server wants a password: put it into $BERTH_REDIS_PASSWORD, or into the URL")
	wrong := ask(given, "hush")
	require.Contains(t, wrong, "/AUTH/default/hush")
	require.Contains(t, wrong, "the password is that of the URL or, where it has none, of $BERTH_REDIS_PASSWORD")
	require.Contains(t, ask(strings.Replace(given, "redis://", "redis://:mine@", 1), "hush"), "/AUTH/default/mine", "that of the URL counts first")
}

func TestTheNamespaceMayStandInAVariable(t *testing.T) {
	t.Parallel()
	url := apptest.Server(t).URL()
	ask := func(namespace string, args ...string) apptest.Result {
		cmd := apptest.Command(t, url, append([]string{"sem", "ls"}, args...)...)
		cmd.Env = append(cmd.Env, "BERTH_NAMESPACE"+"="+namespace)
		return apptest.Finish(t, cmd)
	}
	require.Equal(t, apptest.Outcome(0, "No semaphore is in use in namespace shop.\n", ""), ask("shop"))
	require.Equal(t, apptest.Outcome(0, "No semaphore is in use in namespace mine.\n", ""), ask("shop", "--namespace", "mine"))
	require.Equal(t, apptest.Outcome(0, "No semaphore is in use in namespace berth.\n", ""), ask(""))
	require.Contains(t, ask("a*").Ends(t, 64).Err, "invalid BERTH_NAMESPACE: ")
}

func TestTheCommandDoesNotLearnThePassword(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	see := []string{"--lock", "gpu", "--", "sh", "-c", "env | grep ^BERTH_REDIS | sed 's,?.*,,' | sort"}
	for flag, want := range map[string]string{
		"":                 "BERTH_REDIS=URL\nBERTH_REDIS_OTHER=x\n",
		"--pass-redis-env": "BERTH_REDIS=URL\nBERTH_REDIS_OTHER=x\nBERTH_REDIS_PASSWORD=\n",
	} {
		args := append([]string{"run"}, see...)
		if flag != "" {
			args = slices.Insert(args, 1, flag)
		}
		cmd := apptest.Command(t, s.URL(), args...)
		cmd.Env = append(cmd.Env, "BERTH_REDIS_OTHER=x", "BERTH_REDIS_PASSWORD"+"=") // the server has none
		require.Equal(t, apptest.Outcome(0, strings.ReplaceAll(want, "URL", strings.SplitN(s.URL(), "?", 2)[0]), ""), apptest.Finish(t, cmd), flag)
	}
}

func TestAnEnvironmentWithoutThePassword(t *testing.T) {
	for url, want := range map[string][]string{
		"redis://me:secret@a:6379/0?addr=b:1":   {"redis://me@a:6379/0?addr=b:1"},
		"redis://:secret@a":                     {"redis://a"},
		"rediss://a:6379":                       {"rediss://a:6379"},
		"a:6379":                                {"a:6379"},
		"a":                                     {"a"},
		"":                                      {""},
		"redis://me:sec/ret@a":                  nil, // a port that is none
		"redis://me:100%@a":                     nil,
		"me:secret@a":                           nil,
		"unix://me:secret@/run/redis.sock?db=1": {"unix://me@/run/redis.sock?db=1"},
	} {
		var rest []string
		for _, variable := range app.WithoutPassword([]string{"A=b", "BERTH_REDIS=" + url, "BERTH_REDIS_PASSWORD" + "=x", "BERTH_NAMESPACE=shop"}) {
			if text, is := strings.CutPrefix(variable, "BERTH_REDIS="); is {
				rest = append(rest, text)
			} else {
				require.Contains(t, []string{"A=b", "BERTH_NAMESPACE=shop"}, variable)
			}
		}
		require.Equal(t, want, rest, url)
	}
}

// encrypted is a way to the server with TLS, and files of its authority, and of a
// certificate and its key that it takes.
func encrypted(t *testing.T, s *embedded.Server) (url string, files struct{ ca, cert, key string }) {
	t.Helper()
	pattern := httptest.NewTLSServer(nil)
	t.Cleanup(pattern.Close)
	certificate := pattern.TLS.Certificates[0]
	key := apptest.Got(x509.MarshalPKCS8PrivateKey(certificate.PrivateKey))(t)
	file := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	files.cert = file("cert.pem", "CERTIFICATE", certificate.Certificate[0])
	files.ca, files.key = files.cert, file("key.pem", "PRIVATE KEY", key)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12,
	})
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer func() { _ = near.Close() }()
				far, err := net.Dial("tcp", hostOf(t, s.URL()))
				if err != nil {
					return
				}
				served.Go(func() { _, _ = io.Copy(near, far) })
				_, _ = io.Copy(far, near)
				_ = far.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		served.Wait()
	})
	return "rediss://" + listener.Addr().String() + "?dial_timeout=1m", files
}

func TestTheFilesOfTLSAreGivenByFlags(t *testing.T) {
	t.Parallel()
	url, files := encrypted(t, apptest.Server(t))
	all := []string{"sem", "ls", "--redis-ca", files.ca, "--redis-cert", files.cert, "--redis-key", files.key}
	require.Equal(t, apptest.Outcome(0, "No semaphore is in use in namespace berth.\n", ""), apptest.Call(t, url, all...))
	untrusted := apptest.Call(t, url, "sem", "ls").Ends(t, 69)
	require.Contains(t, untrusted.Err, "; trust its authority with --redis-ca FILE\n")
	uncertified := apptest.Call(t, url, all[:4]...).Ends(t, 69)
	require.Contains(t, uncertified.Err, "; the server wants a certificate: --redis-cert FILE --redis-key FILE\n")
}

func TestWhatCannotBeReachedComesWithWhatToTry(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never says a word
	require.NoError(t, err)
	t.Cleanup(func() { _ = mute.Close() })
	secure, _ := encrypted(t, apptest.Server(t))
	for name, test := range map[string]struct{ url, hint string }{
		"a mute server":          {"redis://" + mute.Addr().String() + "?dial_timeout=200ms", "nothing answers there, or no Redis: look at host and port, and at firewalls; a port with TLS needs rediss://"},
		"TLS to a mute server":   {"rediss://" + mute.Addr().String() + "?dial_timeout=200ms", "the port may be one without TLS: try redis:// instead of rediss://"},
		"TLS to a plain port":    {"rediss://" + hostOf(t, apptest.Server(t).URL()) + "?dial_timeout=2s", "the port may be one without TLS: try redis:// instead of rediss://"},
		"a plain way to TLS":     {strings.Replace(secure, "rediss", "redis", 1), "a port with TLS, which needs rediss://"},
		"a port that nobody has": {apptest.Nobody, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := apptest.Call(t, test.url, "sem", "ls").Ends(t, 69)
			require.Contains(t, got.Err, "berth: cannot reach the server at ")
			require.Contains(t, got.Err, test.hint)
			require.Empty(t, got.Out)
		})
	}
}
