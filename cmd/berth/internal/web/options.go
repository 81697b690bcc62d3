package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/console"
)

// options are the flags.
type options struct {
	listen     string
	actions    bool
	userHeader string
	proxies    []string
	names      []string // by which it may be asked for

	trusted []netip.Prefix // the proxies
}

func (o *options) check() error {
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return app.Usage("--listen: %w", err)
	}
	for _, proxy := range o.proxies {
		prefix, err := prefixOf(proxy)
		if err != nil {
			return app.Usage("--trusted-proxy: %q is no address and no range of some", proxy)
		}
		o.trusted = append(o.trusted, prefix)
	}
	if err := app.CheckHosts(o.names); err != nil {
		return err
	}
	switch {
	case (o.userHeader == "") != (len(o.trusted) == 0):
		return app.Usage("--user-header and --trusted-proxy go together: the header is believed only from there")
	case o.actions && !app.Loopback(o.listen) && o.userHeader == "":
		return app.Usage("--allow-actions on %s, which others reach, needs --user-header and --trusted-proxy", o.listen)
	}
	return nil
}

func prefixOf(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), err
}

// access returns the user of a request: with --user-header the user that a trusted proxy names,
// and nobody else may look.
func (o *options) access() func(*http.Request) console.Access {
	if o.userHeader == "" {
		return nil
	}
	return func(r *http.Request) console.Access {
		users := r.Header.Values(o.userHeader)
		if len(users) != 1 || users[0] == "" || !o.trusts(r.RemoteAddr) {
			return console.Access{}
		}
		return console.Access{User: users[0], Look: true, Act: true}
	}
}

func (o *options) trusts(remote string) bool {
	from, err := netip.ParseAddrPort(remote)
	return err == nil && slices.ContainsFunc(o.trusted, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap().WithZone("")) })
}
