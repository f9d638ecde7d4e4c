package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/paidonce/paidonce/internal/netaddr"
)

// DialFunc opens a connection, as net.Dialer.DialContext does.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// ErrNotPublic is returned by [PublicDial] for an address, or a name that
// resolves to one, that is not of the public Internet.
var ErrNotPublic = errors.New("the host has an address that is not public")

// PublicDial returns a dialer that reaches public addresses only. The address is
// looked at after the name was resolved and just before it is connected to, so a
// name that resolves to something else the second time gains nothing.
//
// With a dial of the caller's own, which resolves names by itself, the peer's
// address is looked at before a byte is sent. Nil: a plain dialer.
func PublicDial(dial DialFunc) DialFunc {
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

// AnyDial is dial, or a plain dialer.
func AnyDial(dial DialFunc) DialFunc {
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
		return fmt.Errorf("address of the host: %w", err)
	}
	if !netaddr.Public(ap.Addr()) {
		return ErrNotPublic
	}
	return nil
}
