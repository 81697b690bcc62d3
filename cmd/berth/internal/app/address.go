package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
)

const (
	defaultURL = "redis://127.0.0.1:6379"

	// URLVariable is the variable with the URL; those with more of it begin with its name.
	URLVariable       = "BERTH_REDIS"
	passwordVariable  = "BERTH_REDIS_PASSWORD"
	namespaceVariable = "BERTH_NAMESPACE"
)

// parameters are those that a URL may have.
var parameters = []string{
	"addr", "client_cache", "client_name", "db", "dial_timeout", "master_set", "max_retries", "protocol", "skip_verify", "write_timeout",
}

// tlsFiles are the files that a TLS connection may need.
type tlsFiles struct {
	ca   string // --redis-ca
	cert string // --redis-cert
	key  string // --redis-key
}

// source is where the value of a flag comes from that a variable may give too.
func (a *App) source(flag, variable string) string {
	if a.given(flag) || os.Getenv(variable) == "" {
		return "--" + flag
	}
	return variable
}

// option reads the URL. No part of a URL that cannot be read is repeated: any
// may be the password.
func (a *App) option() (rueidis.ClientOption, error) {
	if a.URL == "" && a.given("redis") {
		// As of a variable of a script that is not set: no other server is meant.
		return rueidis.ClientOption{}, berth.Invalid("--redis", "it is empty; leave it out for $%s, or %s", URLVariable, defaultURL)
	}
	source := a.source("redis", URLVariable)
	text := cmp.Or(a.URL, os.Getenv(URLVariable), defaultURL)
	if !strings.ContainsAny(text, "/@?#%") { // a host, or host:port
		text = "redis://" + text
	}
	option, err := rueidis.ParseURL(text)
	if err != nil {
		return option, Usage("%s is neither a URL such as redis://host:6379/0 nor host:port; see 'berth help flags' for the forms", source)
	}
	if err := checkParameters(source, text); err != nil {
		return option, err
	}
	option.Password = cmp.Or(option.Password, os.Getenv(passwordVariable))
	// One connection is enough for one command, and caching needs RESP3.
	option.DisableCache, option.PipelineMultiplex = true, -1
	return option, a.files.into(option.TLSConfig)
}

// WithoutPassword is an environment without the password of the server. A URL that cannot be read goes: any part of it
// may be the password.
func WithoutPassword(environment []string) (rest []string) {
	for _, variable := range environment {
		name, text, _ := strings.Cut(variable, "=")
		switch name {
		case passwordVariable:
			continue
		case URLVariable:
			if !strings.ContainsAny(text, "/@?#%") { // a host, or host:port
				break
			}
			address, err := url.Parse(text)
			if err != nil || address.Host == "" && address.Scheme != "unix" {
				continue
			}
			user := address.User.Username()
			if address.User = nil; user != "" {
				address.User = url.User(user)
			}
			variable = name + "=" + address.String()
		}
		rest = append(rest, variable)
	}
	return rest
}

// checkParameters refuses what a URL may not have: a parameter with a typing error
// would be of no effect.
func checkParameters(source, text string) error {
	parsed, err := url.Parse(text)
	if err != nil {
		return Usage("%s is not a URL", source)
	}
	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return Usage("the parameters of %s cannot be read", source)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(parameters, name) {
			// Part of a password that is not percent-encoded may stand here.
			return Usage("%s has a parameter that is none of %s", source, strings.Join(parameters, ", "))
		}
	}
	return nil
}

// into puts what is in the files into the configuration of TLS, nil for none.
func (f *tlsFiles) into(config *tls.Config) error {
	if *f == (tlsFiles{}) {
		return nil
	}
	given := []struct{ flag, file string }{{"--redis-ca", f.ca}, {"--redis-cert", f.cert}, {"--redis-key", f.key}}
	for _, g := range given {
		if g.file != "" && config == nil {
			return berth.Invalid(g.flag, "it is for TLS, and the URL is not: rediss://... or valkeys://... is")
		}
	}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return Exit(ExitNoInput, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return berth.Invalid("--redis-ca", "%q has no certificate in PEM", f.ca)
		}
	}
	switch {
	case f.cert == "" && f.key == "":
		return nil
	case f.cert == "":
		return berth.Invalid("--redis-key", "it needs --redis-cert")
	case f.key == "":
		return berth.Invalid("--redis-cert", "it needs --redis-key")
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return Exit(ExitNoInput, err)
	}
	if err != nil {
		return berth.Invalid("--redis-cert", "%q and %q are no certificate and its key: %s", f.cert, f.key, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}

// Unreachable is the error for a server that does not answer, that refuses, or that has what this
// release does not know.
func Unreachable(address string, err error) error {
	if format := (*state.FormatError)(nil); errors.As(err, &format) && format.Key != "" {
		return fmt.Errorf("%w; %s", err, foreign)
	} else if errors.Is(err, state.ErrDamaged) {
		return err // it was reached
	}
	what := "cannot reach the server at "
	var answer *rueidis.RedisError
	var dial *net.OpError
	switch {
	case errors.Is(err, berth.ErrIncompatible) && errors.As(err, &answer):
		what = "cannot use the server at " // it is too old
	case errors.Is(err, berth.ErrIncompatible):
		return err // one thing that a newer release has stored: the server was reached
	case errors.As(err, &answer):
		what = "refused by the server at "
		err = advised(err, answer.Error())
	case errors.As(err, &dial):
		err = dial.Err // the address need not be said twice
	}
	return Exit(exitUnavailable, &serverError{what + address, err})
}

// foreign is the advice about a key that is not Berth's.
const foreign = "another program writes below the namespace: rename its key, or give Berth a --namespace of its own"

// advised adds advice to a server's error.
func advised(err error, answer string) error {
	switch {
	case strings.Contains(answer, "WRONGTYPE "): // the embedded server puts words before it
		return fmt.Errorf("%w; %s", err, foreign)
	case strings.HasPrefix(answer, "NOPERM ") && strings.Contains(answer, "keys"):
		return fmt.Errorf("%w; the user's key patterns have to cover the namespace: docs/operations.md", err)
	case strings.HasPrefix(answer, "NOPERM ") && strings.Contains(answer, "'scan'"):
		return fmt.Errorf("%w; docs/operations.md lists what a user needs: to list all names, +scan beside the smallest ACL", err)
	case strings.HasPrefix(answer, "NOPERM "):
		return fmt.Errorf("%w; docs/operations.md lists what a user needs", err)
	case strings.HasPrefix(answer, "OOM "):
		return fmt.Errorf("%w; make room on the server, or raise its maxmemory", err)
	case strings.HasPrefix(answer, "NOAUTH "):
		return fmt.Errorf("the server wants a password: put it into $%s, or into the URL, with a user if there is one (%w)", passwordVariable, err)
	case strings.HasPrefix(answer, "WRONGPASS "):
		return fmt.Errorf("%w; the password is that of the URL or, where it has none, of $%s; without a user it is that of the user default", err, passwordVariable)
	}
	return err
}

// undialed adds to the error of a connection that was not made what to try.
func undialed(option rueidis.ClientOption, err error) error {
	if dial := (*net.OpError)(nil); errors.As(err, &dial) {
		err = dial.Err // the address need not be said twice
	}
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var network net.Error
	silent := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	encrypted := option.TLSConfig != nil
	hint := ""
	switch {
	case errors.As(err, &record), encrypted && (silent || closed):
		hint = "the port may be one without TLS: try redis:// instead of rediss://"
	case errors.As(err, &authority):
		hint = "trust its authority with --redis-ca FILE"
	case encrypted && strings.Contains(err.Error(), "certificate required"):
		hint = "the server wants a certificate: --redis-cert FILE --redis-key FILE"
	case silent:
		hint = "nothing answers there, or no Redis: look at host and port, and at firewalls; a port with TLS needs rediss://"
	case closed:
		hint = "no Redis, or a port with TLS, which needs rediss://"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, hint)
}

// serverError says which server it is about.
type serverError struct {
	text  string
	cause error
}

func (e *serverError) Error() string { return e.text + ": " + e.cause.Error() }
func (e *serverError) Unwrap() error { return e.cause }
