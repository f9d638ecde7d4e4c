package wiretest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Codes in place of a protocol version in the first message of a client.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

// due is an answer that the server owes.
type due struct {
	statement Statement
	end       bool // of a pipeline, or of a string of statements: ReadyForQuery
	execute   bool // a statement is answered, at its end or at that of the string
}

// session is one connection through the wire.
type session struct {
	proxy  *Proxy
	number int
	client net.Conn
	server net.Conn
	done   chan struct{}
	once   sync.Once
	ended  chan struct{} // the client's end is closed

	statements map[string]string // by name; of the goroutine that reads the client
	portals    map[string]string

	pid atomic.Uint32 // of the server's process, once it has told

	mu  sync.Mutex
	due []due
}

func newSession(p *Proxy, number int, client, server net.Conn) *session {
	return &session{
		proxy: p, number: number, client: client, server: server, done: make(chan struct{}), ended: make(chan struct{}),
		statements: make(map[string]string), portals: make(map[string]string),
	}
}

// cut ends the session on both sides.
func (s *session) cut() {
	s.once.Do(func() {
		close(s.done)
		reset(s.client)
		_ = s.server.Close()
	})
}

// run carries messages until one side ends. An error tells of a fault in the proxy or of TLS that is demanded, not of an
// end.
func (s *session) run() error {
	defer s.cut()
	in := bufio.NewReader(s.client)
	if err := s.begin(in); err != nil {
		return ended(err)
	}
	up, down := make(chan error, 1), make(chan error, 1)
	go func() {
		err := s.fromClient(in)
		s.hangUp()
		up <- err
	}()
	go func() {
		err := s.fromServer()
		s.hangUp()
		down <- err
	}()
	return errors.Join(ended(<-up), ended(<-down))
}

// hangUp ends the session without a reset: what was written still arrives.
func (s *session) hangUp() {
	s.once.Do(func() {
		close(s.done)
		_ = s.client.Close()
		_ = s.server.Close()
	})
}

// ended drops the errors by which a connection ends.
func ended(err error) error {
	var network net.Error
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network) {
		return nil
	}
	return err
}

// begin passes the first message of the client on, which has no type.
func (s *session) begin(in *bufio.Reader) error {
	for {
		s.proxy.flowing(s)
		head, err := in.Peek(8)
		if err != nil {
			return err
		}
		message := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(in, message); err != nil {
			return err
		}
		switch binary.BigEndian.Uint32(message[4:]) {
		case sslRequest, gssRequest:
			if _, err := s.client.Write([]byte{'N'}); err != nil {
				return err
			}
			continue
		case cancelRequest: // has no answer but the end
			if s.proxy.losesCancels() {
				return io.EOF
			}
			if _, err := s.server.Write(message); err != nil {
				return err
			}
			_, err := io.Copy(io.Discard, s.server)
			return errors.Join(err, io.EOF)
		}
		_, err = s.server.Write(message)
		return err
	}
}

// message is one of the protocol's: its type, and all of its bytes.
type message struct {
	kind byte
	raw  []byte
}

func (m message) body() []byte { return m.raw[5:] }

func read(in *bufio.Reader) (message, error) {
	head, err := in.Peek(5)
	if err != nil {
		return message{}, err
	}
	m := message{kind: head[0], raw: make([]byte, 1+binary.BigEndian.Uint32(head[1:]))}
	_, err = io.ReadFull(in, m.raw)
	return m, err
}

// ahead is how many messages are read before those that came first have been passed on, so that it is noticed when the client goes.
const ahead = 1024

// fromClient carries what the client says.
func (s *session) fromClient(in *bufio.Reader) error {
	messages, failed := make(chan message, ahead), error(nil)
	go func() {
		defer close(messages)
		defer close(s.ended)
		for {
			m, err := read(in)
			if err != nil {
				failed = err
				return
			}
			select {
			case messages <- m:
			case <-s.done:
				return
			}
		}
	}()
	if err := s.pass(messages); err != nil {
		return err
	}
	return failed // messages is closed
}

// pass passes on what the client has said.
func (s *session) pass(messages <-chan message) error {
	out := bufio.NewWriter(s.server)
	for m := range messages {
		s.proxy.flowing(s)
		owed, err := s.understand(m)
		if err != nil {
			return err
		}
		if owed.execute {
			s.proxy.note(owed.statement)
			if i := s.proxy.find(Before, owed.statement); i != nil {
				if err := out.Flush(); err != nil {
					return err
				}
				if i.decide(owed.statement) == Cut {
					s.cut()
					return net.ErrClosed
				}
				s.proxy.flowing(s)
			}
		}
		if owed.execute || owed.end {
			s.mu.Lock()
			s.due = append(s.due, owed)
			s.mu.Unlock()
		}
		if _, err := out.Write(m.raw); err != nil {
			return err
		}
		if len(messages) == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// understand returns which answer the server will owe for a message, and keeps the names of statements.
func (s *session) understand(m message) (due, error) {
	switch m.kind {
	case 'Q':
		var q pgproto3.Query
		err := q.Decode(m.body())
		return due{statement: s.statement(q.String), execute: true, end: true}, err
	case 'P':
		var p pgproto3.Parse
		err := p.Decode(m.body())
		s.statements[p.Name] = p.Query
		return due{}, err
	case 'B':
		var b pgproto3.Bind
		err := b.Decode(m.body())
		s.portals[b.DestinationPortal] = s.statements[b.PreparedStatement]
		return due{}, err
	case 'E':
		var e pgproto3.Execute
		err := e.Decode(m.body())
		return due{statement: s.statement(s.portals[e.Portal]), execute: true}, err
	case 'S', 'F': // Sync, FunctionCall
		return due{end: true}, nil
	}
	return due{}, nil
}

func (s *session) statement(sql string) Statement {
	return Statement{Conn: s.number, PID: s.pid.Load(), SQL: sql, Ended: s.ended}
}

// fromServer carries what the server says. What answers a statement is kept until the statement is done, since only then
// it is known whether somebody waits for that.
func (s *session) fromServer() error {
	in, out := bufio.NewReader(s.server), bufio.NewWriter(s.client)
	var (
		kept  []byte
		traps []func() Verdict // of statements in kept that are done
	)
	for {
		m, err := read(in)
		if err != nil {
			if len(traps) == 0 { // a server that ends says why
				_, _ = out.Write(kept)
				_ = out.Flush()
			}
			return err
		}
		if m.kind == 'K' { // BackendKeyData
			s.pid.Store(binary.BigEndian.Uint32(m.body()))
		}
		kept = append(kept, m.raw...)
		if i, statement := s.answered(m); i != nil {
			traps = append(traps, func() Verdict { return i.decide(statement) })
		}
		if m.kind == 'Z' {
			if slices.ContainsFunc(traps, func(decide func() Verdict) bool { return decide() == Cut }) {
				s.cut()
				return nil
			}
			traps = nil
		}
		if len(traps) > 0 || s.keeps(m) {
			continue
		}
		s.proxy.flowing(s)
		if _, err := out.Write(kept); err != nil {
			return err
		}
		kept = kept[:0]
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// answered takes note of what a message of the server answers. If that ends a statement that somebody waits for it
// returns who.
func (s *session) answered(m message) (*interceptor, Statement) {
	s.mu.Lock()
	var of *Statement
	switch m.kind {
	case 'C', 'I', 's': // CommandComplete, EmptyQueryResponse, PortalSuspended
		if len(s.due) > 0 && s.due[0].execute && !s.due[0].end {
			of = &s.due[0].statement
			s.due = s.due[1:]
		}
	case 'Z': // after an error the server skips all that is left of the pipeline
		for len(s.due) > 0 {
			first := s.due[0]
			s.due = s.due[1:]
			if first.end {
				if first.execute {
					of = &first.statement
				}
				break
			}
		}
	}
	s.mu.Unlock()
	if of == nil {
		return nil, Statement{}
	}
	return s.proxy.find(After, *of), *of
}

// keeps reports whether more has to come before a message can be passed on.
func (s *session) keeps(m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) == 0 || !s.due[0].execute {
		return false
	}
	switch m.kind {
	case 'A', 'G', 'W': // a notification, and what asks the client for the data of a COPY
		return false
	case 'C', 'I', 's', 'E': // a string of statements is not over with the first of them
		return s.due[0].end
	}
	return true
}
