package processor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// DialFunc opens a connection, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// ErrPrivateAddress is returned for a callback whose host is, or resolves to, an address that is not public.
var ErrPrivateAddress = errors.New("the callback's host has an address that is not public; set allow_private if that is meant")

// publicDial returns a dialer that reaches public addresses only. The address is looked at after the name was resolved
// and just before it is connected to, so a name that resolves to something else the second time gains nothing.
//
// With a dial of the caller's own, which resolves names by itself, the peer's address is looked at before a byte is sent.
func publicDial(dial DialFunc) DialFunc {
	if dial == nil {
		d := &net.Dialer{
			Timeout: dialTimeout, KeepAlive: keepAlive,
			ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error { return checkPublic(address) },
		}
		return d.DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := checkPublic(c.RemoteAddr().String()); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
}

// anyDial is dial, or a plain dialer.
func anyDial(dial DialFunc) DialFunc {
	if dial != nil {
		return dial
	}
	return (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
}

const (
	dialTimeout = 5 * time.Second
	keepAlive   = 30 * time.Second
)

func checkPublic(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address of the callback's host: %w", err)
	}
	if !isPublic(ap.Addr()) {
		return ErrPrivateAddress
	}
	return nil
}

// notPublic are the ranges of IANA's special-purpose registries that netip has no word for.
// https://www.iana.org/assignments/iana-ipv4-special-registry
// https://www.iana.org/assignments/iana-ipv6-special-registry
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // shared by carriers; some clouds' metadata
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, broadcast
	netip.MustParsePrefix("::/96"),           // IPv4-compatible
	netip.MustParsePrefix("64:ff9b:1::/48"),  // local translation
	netip.MustParsePrefix("100::/64"),        // discard
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("3fff::/20"),       // documentation
	netip.MustParsePrefix("5f00::/16"),       // segment routing
	netip.MustParsePrefix("fec0::/10"),       // site-local
}

var (
	nat64 = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address in the last four bytes
	to4   = netip.MustParsePrefix("2002::/16")    // an IPv4 address in bytes 2 to 5
)

func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	switch b := a.As16(); {
	case nat64.Contains(a):
		a = netip.AddrFrom4([4]byte(b[12:16]))
	case to4.Contains(a):
		a = netip.AddrFrom4([4]byte(b[2:6]))
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false // global unicast leaves out loopback, link-local, multicast and the unspecified address
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
