package network

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync"
)

// peekedConn is a connection of which the first bytes were already read.
type peekedConn struct {
	net.Conn
	in     *bufio.Reader
	scheme string
}

func (c *peekedConn) Read(b []byte) (int, error) { return c.in.Read(b) }

// dialled is a connection of the program's, which names another peer.
type dialled struct {
	*net.TCPConn
	to net.Addr
}

func (c *dialled) RemoteAddr() net.Addr { return c.to }

// tlsConn hides from net/http that a connection is TLS: it is asked for
// HTTP/1.1 only, and the scheme is told by schemeOf.
type tlsConn struct{ net.Conn }

func schemeOf(c net.Conn) string {
	switch c := c.(type) {
	case *peekedConn:
		return c.scheme
	case *tlsConn, *tls.Conn:
		return "https"
	}
	return "http"
}

// chanListener is a net.Listener of connections that somebody else accepted.
type chanListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   *sync.Once
}

func newChanListener(addr net.Addr) chanListener {
	return chanListener{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{}), once: new(sync.Once)}
}

// hand gives a connection to whoever accepts, and closes it if nobody does any more.
func (l chanListener) hand(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		c.Close()
	}
}

func (l chanListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l chanListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l chanListener) Addr() net.Addr { return l.addr }
