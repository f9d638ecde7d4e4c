package app

import "net"

// URL is where a listener of this machine is reached from here: of an address
// such as :8080 or 0.0.0.0:8080, on loopback.
func URL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
