// Package netaddr tells public IP addresses from all others. It is what keeps a callback out of one's own network:
// the configuration refuses addresses written into it, the dialer those that a name resolves to.
package netaddr

import "net/netip"

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

// Public reports whether an address is one of the public Internet, also where an IPv6 address stands for an IPv4 one.
func Public(a netip.Addr) bool {
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
