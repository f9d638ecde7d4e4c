package idempotency_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest"
)

// A whole program: a route that takes payments, and that nobody can make take one twice.
func Example() {
	ctx := context.Background()
	url, done := database() // "postgres://…"
	defer done()
	pool, err := pgxpool.New(ctx, url)
	check(err)
	defer pool.Close()
	check(idempotency.Migrate(ctx, pool))
	_, err = pool.Exec(ctx, `CREATE TABLE payments (id bigint GENERATED ALWAYS AS IDENTITY, amount bigint NOT NULL)`)
	check(err)

	store, err := idempotency.NewStore(pool, idempotency.StoreOptions{})
	check(err)
	mw, err := idempotency.New(store, idempotency.Options{
		Scope: func(r *http.Request) (idempotency.Scope, error) { // whose keys they are: from your authentication
			user, _, ok := r.BasicAuth()
			if !ok {
				return idempotency.Scope{}, idempotency.ErrUnauthenticated
			}
			return idempotency.Scope{Kind: "user", ID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(user))}, nil
		},
	})
	check(err)

	router := chi.NewRouter()
	router.With(mw.Protect(idempotency.Strict())).Post("/payments", func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx(r.Context()) // Strict requires a key, so there is one
		var id int64
		err := tx.QueryRow(r.Context(), `INSERT INTO payments (amount) VALUES (5000) RETURNING id`).Scan(&id)
		if err != nil {
			idempotency.Fail(r.Context(), err)
			http.Error(w, "try again", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", id)
	})
	check(idempotency.Audit(router)) // no route was forgotten

	server := httptest.NewServer(router)
	defer server.Close()
	for range 2 {
		fmt.Println(pay(server.URL, `{"amount": 5000}`))
	}
	fmt.Println(pay(server.URL, `{"amount": 9900}`))

	// Output:
	// 201 "payment 1"
	// 201 "payment 1" (replayed)
	// 422 "idempotency_key_reused"
}

// pay sends a payment as a client does, with the key of what it wants to be done.
func pay(url, body string) string {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/payments", strings.NewReader(body))
	check(err)
	req.SetBasicAuth("alice", "secret")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "cart-4711")
	res, err := http.DefaultClient.Do(req)
	check(err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	check(err)
	if strings.Contains(string(answer), idempotency.CodeKeyReused) {
		answer = []byte(idempotency.CodeKeyReused)
	}
	line := fmt.Sprintf("%d %q", res.StatusCode, answer)
	if res.Header.Get("Idempotent-Replayed") == "true" {
		line += " (replayed)"
	}
	return line
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// database makes an empty database, as tests have it.
func database() (url string, done func()) {
	t := &exampleTB{}
	return storetest.OpenEmpty(t), t.end
}

// exampleTB is a testing.TB for an example, which has none.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper()                           {}
func (*exampleTB) Context() context.Context          { return context.Background() }
func (t *exampleTB) Cleanup(f func())                { t.cleanups = append(t.cleanups, f) }
func (*exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*exampleTB) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *exampleTB) end() {
	for _, f := range t.cleanups {
		f()
	}
}
