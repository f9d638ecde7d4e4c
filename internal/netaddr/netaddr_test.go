package netaddr_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/netaddr"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"1.1.1.1": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true, "64:ff9b::101:101": true,
		"127.0.0.1": false, "10.0.0.1": false, "169.254.169.254": false, "::1": false, "0.0.0.0": false, "::": false,
		"::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "fe80::1%eth0": false, "100.64.0.1": false,
	} {
		require.Equal(t, want, netaddr.Public(netip.MustParseAddr(address)), address)
	}
}
