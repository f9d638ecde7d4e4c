package torture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/idempotency"
)

// serverConfig is what a server under test is told. It runs in this process or in one of its own.
type serverConfig struct {
	Database string
	Desk     string // URL of the desk; empty: none
	MaxConns int32

	Acquire, Statement time.Duration // see idempotency.StoreOptions
	LockTimeout        time.Duration // of all policies
	Leaks              bool          // for a control: handlers write beside their unit of work
}

// The routes of a server, each with its policy.
const (
	ordersPath  = "/orders"  // strict
	relaxedPath = "/relaxed" // relaxed
	waitPath    = "/wait"    // strict; calls in flight are waited for
	chargesPath = "/charges" // strict, without a transaction; it charges at the desk
	sweepPath   = "/sweep"
	statsPath   = "/stats"
)

// Request headers by which a test says what a handler, or the server around it, is to do. They are no part of a request's
// fingerprint.
const (
	doHeader = "Test-Do" // a list of the words below

	doGate   = "gate"             // the handler calls the desk's gate before it writes
	doFail   = "fail"             // it answers 500 after having written
	doRefuse = "refuse"           // it answers 422 after having written
	doDie    = "die-before-claim" // the process kills itself before the middleware sees the request
	doMute   = "die-before-byte"  // when the response is about to begin
	doHalf   = "die-amid-body"    // when half of it has been sent
)

// stats is what a server tells of itself.
type stats struct {
	InFlight int64 // protected requests
	Acquired int32 // connections of the pool that are in use
}

// server is the program under test: the middleware and four routes.
type server struct {
	http.Handler
	pool     *pgxpool.Pool
	store    *idempotency.Store
	desk     string
	leaks    bool
	inFlight atomic.Int64
}

func newServer(ctx context.Context, c serverConfig, log io.Writer) (*server, error) {
	conf, err := pgxpool.ParseConfig(c.Database)
	if err != nil {
		return nil, err
	}
	if c.MaxConns > 0 {
		conf.MaxConns = c.MaxConns
	}
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return nil, err
	}
	s := &server{pool: pool, desk: c.Desk, leaks: c.Leaks}
	if s.store, err = idempotency.NewStore(pool, idempotency.StoreOptions{AcquireTimeout: c.Acquire, StatementTimeout: c.Statement}); err != nil {
		return nil, err
	}
	mw, err := idempotency.New(s.store, idempotency.Options{Scope: scopeOf, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		return nil, err
	}
	wait, alone := idempotency.Strict(), idempotency.Strict()
	wait.Name, wait.InFlight = "wait", idempotency.Wait(time.Minute)
	alone.Name, alone.NoTx = "alone", true
	mux := http.NewServeMux()
	for path, protect := range map[string]struct {
		policy  idempotency.Policy
		handler http.HandlerFunc
	}{
		ordersPath: {idempotency.Strict(), s.order}, relaxedPath: {idempotency.Relaxed(), s.order},
		waitPath: {wait, s.order}, chargesPath: {alone, s.charge},
	} {
		protect.policy.LockTimeout = c.LockTimeout
		mux.Handle("POST "+path, s.counted(mw.Protect(protect.policy)(protect.handler)))
	}
	mux.HandleFunc("POST "+sweepPath, s.sweep)
	mux.HandleFunc("GET "+statsPath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(stats{s.inFlight.Load(), pool.Stat().AcquiredConns()})
	})
	s.Handler = suicidal(mux)
	return s, nil
}

// scopeOf stands for authentication.
func scopeOf(r *http.Request) (idempotency.Scope, error) {
	who := r.Header.Get("Test-Caller")
	if who == "" {
		return idempotency.Scope{}, idempotency.ErrUnauthenticated
	}
	return scope(who), nil
}

func scope(who string) idempotency.Scope {
	return idempotency.Scope{Account: who, Kind: "account", ID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(who))}
}

func does(r *http.Request, word string) bool {
	for _, w := range strings.Split(r.Header.Get(doHeader), ",") {
		if w == word {
			return true
		}
	}
	return false
}

func (s *server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inFlight.Add(1)
		defer s.inFlight.Add(-1)
		h.ServeHTTP(w, r)
	})
}

// order leaves one row in effects through the unit of work, and answers with its id.
func (s *server) order(w http.ResponseWriter, r *http.Request) {
	if err := s.gate(r); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var tx interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}
	unit, ok := idempotency.Tx(r.Context())
	if tx = unit; s.leaks {
		tx = s.pool
	}
	if !ok {
		http.Error(w, "no unit of work", http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(r.Body)
	id := uuid.New()
	if err == nil {
		_, err = tx.Exec(r.Context(), `INSERT INTO effects (id, key, body) VALUES ($1::uuid, $2::text, $3::text)`,
			id.String(), r.Header.Get(idempotency.HeaderKey), string(body))
	}
	switch {
	case err != nil:
		idempotency.Fail(r.Context(), err)
		http.Error(w, "the handler fails", http.StatusInternalServerError)
	case does(r, doFail):
		http.Error(w, "the handler fails", http.StatusInternalServerError)
	case does(r, doRefuse):
		answer(w, http.StatusUnprocessableEntity, id.String(), body)
	default:
		idempotency.SetResource(r.Context(), "order", id)
		answer(w, http.StatusCreated, id.String(), body)
	}
}

// gate waits at the desk's gate, if the request says so.
func (s *server) gate(r *http.Request) error {
	if !does(r, doGate) {
		return nil
	}
	return s.call(r.Context(), "/gate?pid="+strconv.Itoa(os.Getpid()), nil, nil)
}

// charge charges at the desk, under the outbound key.
func (s *server) charge(w http.ResponseWriter, r *http.Request) {
	key, ok := idempotency.OutboundKey(r.Context(), "charge")
	if !ok {
		http.Error(w, "no outbound key", http.StatusInternalServerError)
		return
	}
	if err := s.gate(r); err != nil || does(r, doFail) {
		http.Error(w, "the handler fails", http.StatusInternalServerError)
		return
	}
	var id string
	if err := s.call(r.Context(), "/charge?key="+key, nil, &id); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	body, _ := io.ReadAll(r.Body)
	answer(w, http.StatusCreated, id, body)
}

// filler makes answers longer than what net/http holds back, so that half of one can be sent.
var filler = strings.Repeat("x", 64<<10)

func answer(w http.ResponseWriter, code int, id string, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, `{"id":"`+id+`","to":`+string(body)+`,"filler":"`+filler+`"}`+"\n")
}

func (s *server) sweep(w http.ResponseWriter, r *http.Request) {
	res, err := s.store.Sweep(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(res)
}

// call asks the desk.
func (s *server) call(ctx context.Context, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.desk+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// suicidal kills its process where a request asks for it: with SIGKILL, so that nothing is deferred, flushed or closed.
func suicidal(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if does(r, doDie) {
			die()
		}
		if does(r, doMute) || does(r, doHalf) {
			w = &lastWords{ResponseWriter: w, half: does(r, doHalf)}
		}
		h.ServeHTTP(w, r)
	})
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// lastWords dies while it answers.
type lastWords struct {
	http.ResponseWriter
	half bool
}

func (w *lastWords) WriteHeader(code int) {
	if !w.half {
		die()
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *lastWords) Write(p []byte) (int, error) {
	if !w.half {
		die()
	}
	_, _ = w.ResponseWriter.Write(p[:len(p)/2])
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	die()
	return 0, nil
}
