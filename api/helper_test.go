package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

var now = time.Unix(1_790_000_000, 0)

const (
	keyA     = "pk_TESTONLY_account_a"
	keyB     = "pk_TESTONLY_account_b"
	readOnly = "pk_TESTONLY_reads"
	operator = "pk_TESTONLY_operates"

	operatorB = "pk_TESTONLY_operates_b"
	writeOnly = "pk_TESTONLY_writes"
	auditor   = "pk_TESTONLY_reads_and_operates"
)

func keys() []api.Key {
	return []api.Key{
		{Account: "a", SHA256: sha256.Sum256([]byte(keyA)), Read: true, Write: true},
		{Account: "b", SHA256: sha256.Sum256([]byte(keyB)), Read: true, Write: true},
		{Account: "a", SHA256: sha256.Sum256([]byte(readOnly)), Read: true},
		{Account: "a", SHA256: sha256.Sum256([]byte(operator)), Operate: true},
		{Account: "b", SHA256: sha256.Sum256([]byte(operatorB)), Operate: true},
		{Account: "a", SHA256: sha256.Sum256([]byte(writeOnly)), Write: true},
		{Account: "a", SHA256: sha256.Sum256([]byte(auditor)), Read: true, Operate: true},
	}
}

// shop is a store in memory: it registers a reference once per account, as the store does.
type shop struct {
	api.Store // nil: of it, an order is all that there is

	mu     sync.Mutex
	fail   error // of the next command
	lost   error // of the next read
	events []store.Event
	orders map[string]*store.Order // by account and reference
}

func (*shop) InTx(_ context.Context, f func(store.Tx) error) error { return f(nil) }

func (*shop) Clock(context.Context, store.Tx) (time.Time, error) { return now, nil }

func (s *shop) Command(_ context.Context, _ store.Tx, e store.Event, _ store.Condition) (store.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail; err != nil {
		s.fail = nil
		return store.Result{}, err
	}
	s.events = append(s.events, e)
	reg := e.Command.Register
	o, ok := s.orders[e.Account+"/"+e.Reference]
	if !ok {
		o = &store.Order{ID: uuid.New(), Ref: e.Reference, State: order.StatePending, Told: order.ToldNothing, Version: 1}
		s.orders[e.Account+"/"+e.Reference] = o
	}
	if o.Registered {
		return store.Result{Outcome: store.Duplicate, Order: o.ID, Differs: *o.Total != reg.Minor || *o.Currency != reg.Currency}, nil
	}
	if o.Total != nil && *o.Total != reg.Minor {
		o.Flags = append(o.Flags, "total_differs")
	}
	o.Registered, o.Total, o.Currency = true, &reg.Minor, &reg.Currency
	if ok {
		o.Version++
	}
	o.Details, o.ExpiresAt = e.Command.Details, e.Command.ExpiresAt
	return store.Result{Outcome: store.Applied, Order: o.ID, After: o.Version, NewOrder: !ok}, nil
}

func (s *shop) OrderTx(ctx context.Context, _ store.Tx, account string, id uuid.UUID) (store.Order, error) {
	return s.GetOrder(ctx, account, id)
}

func (s *shop) GetOrder(_ context.Context, account string, id uuid.UUID) (store.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lost; err != nil {
		s.lost = nil
		return store.Order{}, err
	}
	for k, o := range s.orders {
		if o.ID == id && strings.HasPrefix(k, account+"/") {
			return *o, nil
		}
	}
	return store.Order{}, fmt.Errorf("read: %w", store.ErrNotFound)
}

type bench struct {
	*api.API
	t    testing.TB
	shop *shop
	log  *logBuffer
	reg  *prometheus.Registry
}

func setup(t testing.TB, opts api.Options) *bench {
	t.Helper()
	b := &bench{t: t, shop: &shop{orders: map[string]*store.Order{}}, log: &logBuffer{}, reg: prometheus.NewRegistry()}
	opts.Now = func() time.Time { return now }
	opts.Logger = slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	opts.Registerer = b.reg
	a, err := api.New(b.shop, keys, opts)
	require.NoError(t, err)
	b.API = a
	return b
}

// logBuffer is a log that several write to while one reads.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (b *bench) do(method, path, key, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	checkAnswer(b.t, r, w)
	return w
}

func (b *bench) post(key, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return b.do(http.MethodPost, "/v1/orders", key, body, change...)
}

func data(t testing.TB, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var doc struct{ Data map[string]any }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc), w.Body.String())
	return doc.Data
}

func problemOf(t testing.TB, w *httptest.ResponseRecorder) api.Problem {
	t.Helper()
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	var p api.Problem
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), w.Body.String())
	require.Equal(t, w.Code, p.Status)
	require.NotEmpty(t, p.Code)
	require.NotEmpty(t, p.Title)
	return p
}

const ordinary = `{"data":{"amount":5000,"currency":"EUR","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"ord_1","note":"<x>"}}}`
