package network_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/netaddr"
	"github.com/paidonce/paidonce/internal/scenario/network"
)

// client is an HTTP client that can reach nothing but the network.
func client(t *testing.T, n *network.Network, a *network.Authority, resolve bool) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(a.PEM()))
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, nw, addr string) (net.Conn, error) {
			if resolve {
				host, port, err := net.SplitHostPort(addr)
				if err != nil {
					return nil, err
				}
				found, err := network.LookupHost(ctx, n.Addr(), host)
				if err != nil {
					return nil, err
				}
				addr = net.JoinHostPort(found[0].String(), port)
			}
			return network.Dial(ctx, n.Addr(), nw, addr)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func open(t *testing.T) (*network.Network, *network.Authority) {
	t.Helper()
	a, err := network.NewAuthority()
	require.NoError(t, err)
	n, err := network.New(network.Options{
		MerchantHost: "merchant.test",
		Authority:    a,
		Merchant: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "merchant")
		}),
	})
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n, a
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	response, err := c.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestNetwork(t *testing.T) {
	t.Parallel()

	t.Run("MerchantIsReachedAndNotCounted", func(t *testing.T) {
		t.Parallel()
		for _, resolve := range []bool{false, true} {
			n, a := open(t)
			code, body := get(t, client(t, n, a, resolve), "http://merchant.test/callback")
			require.Equal(t, 200, code)
			require.Equal(t, "merchant", body)
			require.Empty(t, n.Outbound())
		}
	})

	t.Run("OthersAreAnsweredInTurnAndCounted", func(t *testing.T) {
		t.Parallel()
		n, a := open(t)
		n.Answer("GET", "https://api.example.test/certs/*", []network.Reply{
			{Status: 502, ContentType: "text/html", Body: "<p>"}, {Status: 200, Body: "cert"},
		})
		c := client(t, n, a, true)
		for _, want := range []string{"<p>", "cert", "cert"} {
			_, body := get(t, c, "https://api.example.test/certs/a/b?c=d")
			require.Equal(t, want, body)
		}
		code, body := get(t, c, "https://api.example.test/other")
		require.Equal(t, 404, code)
		require.Empty(t, body)
		require.Equal(t, []string{
			"lookup api.example.test", "connect 203.0.113.", "GET https://api.example.test/certs/a/b?c=d",
			"GET https://api.example.test/certs/a/b?c=d", "GET https://api.example.test/certs/a/b?c=d",
			"GET https://api.example.test/other",
		}, withoutAddress(n.Outbound()))
	})

	t.Run("PlainHTTPToOthers", func(t *testing.T) {
		t.Parallel()
		n, a := open(t)
		n.Answer("GET", "http://api.example.test/x", []network.Reply{{Status: 200, Body: "plain"}})
		_, body := get(t, client(t, n, a, false), "http://api.example.test/x")
		require.Equal(t, "plain", body)
		require.Equal(t, []string{"connect api.example.test:80", "GET http://api.example.test/x"}, n.Outbound())
	})

	t.Run("AConnectionWithoutARequestIsCounted", func(t *testing.T) {
		t.Parallel()
		n, _ := open(t)
		conn, err := network.Dial(t.Context(), n.Addr(), "tcp", "10.0.0.1:22")
		require.NoError(t, err)
		require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
		require.Equal(t, "10.0.0.1:22", conn.RemoteAddr().String())
		_, err = io.ReadAll(conn) // returns when the network has closed it
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Equal(t, []string{"connect 10.0.0.1:22"}, n.Outbound())
	})

	t.Run("ANameLeadsToAPublicAddress", func(t *testing.T) {
		t.Parallel()
		n, _ := open(t)
		conn, err := network.Dial(t.Context(), n.Addr(), "tcp", "api.example.test:443")
		require.NoError(t, err)
		defer conn.Close()
		require.True(t, netaddr.Public(netip.MustParseAddrPort(conn.RemoteAddr().String()).Addr()))
	})

	t.Run("CloseDoesNotWaitForASilentConnection", func(t *testing.T) {
		t.Parallel()
		n, _ := open(t)
		conn, err := network.Dial(t.Context(), n.Addr(), "tcp", "10.0.0.1:22")
		require.NoError(t, err)
		defer conn.Close()
		n.Close()
	})
}

// withoutAddress cuts the last byte of an address that a look-up made up.
func withoutAddress(lines []string) []string {
	for i, line := range lines {
		if len(line) > 18 && line[:18] == "connect 203.0.113." {
			lines[i] = line[:18]
		}
	}
	return lines
}
