// Package idempotency makes POST, PUT and PATCH safe to repeat: a net/http middleware for the Idempotency-Key header, with its
// keys in Postgres. Repeating a call with its key gives the first answer again, to the byte, and does the work once, whatever dies
// in between: the client, the connection, this process, or the database.
//
//	store, _ := idempotency.NewStore(pool, idempotency.StoreOptions{})
//	mw, _ := idempotency.New(store, idempotency.Options{Scope: whoseKeys})
//	router.With(mw.Protect(idempotency.Strict())).Post("/v1/orders", createOrder)
//
// A route declares its policy, and its handler knows nothing of it. [Migrate] makes the table, or a migration of yours that
// has [Schema].
//
// # The unit of work
//
// A handler that writes to the same database takes its transaction from the context, with [Tx]. What it writes and its answer
// are committed together, and only then is a byte sent: there is no moment at which a crash could keep one of them. Where
// [Tx] reports that there is none (the call came without a key), the handler begins its own.
//
//   - An answer of 400 or more that is kept leaves nothing else behind: what the handler wrote is rolled back, unless
//     [Policy.KeepWrites] or [KeepWrites] says otherwise. Of an answer that is not kept nothing is left either, whatever its status,
//     but for a refusal (4xx) under KeepWrites: its writes are committed, and the key is free again.
//   - A handler that fails says so with [Fail], as well as by answering 5xx. After a deadlock or a serialization failure it is then run
//     again, under the same key, in a new transaction: it must have no effect outside of the transaction but with [OutboundKey].
//   - Its context does not end when the caller hangs up: the work is finished, and the caller's next try is answered with it. It does
//     end at [Policy.Deadline]; then everything is undone.
//   - The response is buffered, so there is no [http.Flusher] and no [http.Hijacker]. Calls to others belong before or after,
//     not in a transaction; for a route that has to make them there is [Policy.NoTx].
//
// # The two profiles
//
//	                         Strict                            Relaxed
//	no key                   400 idempotency_key_missing       runs unprotected
//	a key lives              48 hours from its first use       24 hours from its first use
//	2xx                      kept                              kept
//	3xx, 4xx                 kept, but for 408, 425 and 429    not kept, and the key is free for another body
//	5xx, panic, deadline     not kept; the same body may try   not kept, and the key is free for another body
//	longest body             none of its own                   102400 bytes, else 413
//	another body, path,      422 idempotency_key_reused        422 idempotency_key_reused
//	query or method
//	while it is executed     409 and Retry-After, or Wait      409 and Retry-After, or Wait
//
// In both, GET, HEAD, OPTIONS and DELETE ignore the header and say so (Idempotency-Status: ignored). Bodies are compared by what
// package canonical says of them; headers are not compared, so a refreshed token or a new trace does not matter. Keys have 1 to 255
// characters of printable ASCII, bare or quoted ("k" and k are one key). Keys of different scopes never meet.
//
// # What a caller sees
//
//	executed first           the handler's answer, Idempotency-Status: executed
//	repeated                 the same status and body, Idempotent-Replayed: true, Cache-Control: no-store
//	other things             application/problem+json with a code, one of the Code constants; those are never stored
//
// Clients repeat after 409 idempotency_key_in_progress, 5xx and broken connections, with the same key and body, and take 422
// idempotency_key_reused for a mistake of their own.
//
// # The protocol
//
//  1. The key is claimed by INSERT … ON CONFLICT DO NOTHING, in a transaction of its own, so that others see it at once.
//  2. Who is too late reads the row: expired, it is claimed anew; another request, 422; completed, the answer; young, 409;
//     failed, or silent for longer than LockTimeout, it is taken over by one guarded UPDATE, which raises the fence.
//  3. The effect's transaction begins by locking the row where id and fence are still ours. Taking over skips locked rows:
//     the lock proves that its owner lives, however slow it is, and ends with its session.
//  4. The handler runs. Its answer is written to the row, guarded by the fence, and all of it committed.
//  5. If the connection is lost during COMMIT, the row tells what became of it.
//
// A call that overstays its lock and that nobody has taken over is still accepted; one that was taken over changes nothing. All
// times are the database's.
//
// # What it asks of the database
//
// The pool must lead to the primary, where the key was claimed; a failover to an asynchronous replica may forget the last calls,
// as it forgets everything else. Commits are made durable (synchronous_commit is never off here). There is no session state,
// no advisory lock and no LISTEN, so PgBouncer in transaction mode is fine. A session that hangs would hold a key: where the
// pool sets no statement_timeout and no idle_in_transaction_session_timeout the transaction does; TCP keepalives and
// client_connection_check_interval are the server's to set. [Store.Sweep] must be called every few minutes. If the database cannot be
// reached, protected calls with a key are answered 503 and not executed.
//
// # Routes without a transaction
//
// With [Policy.NoTx] the lock is renewed while the handler runs, and its context ends if that fails. A crash between the effect and
// its record leaves the key to be taken over: the handler runs again, so what it does elsewhere must carry [OutboundKey], which is the
// same in every attempt. Such a handler may stream; then its answer is not kept, and a repetition hears 409
// idempotency_result_unavailable with a link to the resource, as after an answer longer than [Policy.MaxResponse].
//
// # Where it stands
//
// Authentication, then rate limiting, then this, then the handler. Nothing outside may have read the body. Compression belongs outside: replays are stored plain. For
// browsers, see [CORSAllowHeaders] and [CORSExposeHeaders]. A compressed request is compared as it was sent, since whatever decodes it
// stands behind. [Audit] finds routes that declare nothing.
package idempotency
