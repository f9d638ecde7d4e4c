-- Keys of calls that must not be done twice. The package idempotency, whose table this is, can be used without this program,
-- and then makes it by itself: idempotency/schema.sql holds the same statements, and a test compares the two.

-- +goose Up

-- One row per Idempotency-Key and owner, from the first call until its expiry. See the package comment for the protocol.
CREATE TABLE idempotency_keys (
  id UUID NOT NULL DEFAULT gen_random_uuid(),
  account_id TEXT NOT NULL,
  scope_kind VARCHAR(50) NOT NULL,
  user_id UUID NOT NULL, -- the id of the scope: a user's, an account's, a company's
  idempotency_key VARCHAR(255) NOT NULL,
  request_method VARCHAR(20) NOT NULL,
  request_path VARCHAR(500) NOT NULL, -- with the query; sha256:<hex> of it where it is longer
  request_hash VARCHAR(64) NOT NULL, -- SHA-256 of the canonical body and its media type
  hash_bound BOOLEAN NOT NULL DEFAULT true, -- false: the next request may be another one
  request_digests BYTEA, -- of parts of the body, to say where another one differs
  policy VARCHAR(50) NOT NULL,
  status VARCHAR(20) NOT NULL DEFAULT 'PROCESSING',
  fence BIGINT NOT NULL DEFAULT 1, -- of the call that holds the key; whoever has an older one changes nothing
  epoch BIGINT NOT NULL DEFAULT 1, -- of the request: later calls of the same one keep it
  attempts INT NOT NULL DEFAULT 1,
  lock_timeout INTERVAL NOT NULL DEFAULT '30 seconds',
  locked_at TIMESTAMPTZ,
  response_code INT,
  response_headers JSONB,
  response_body JSONB, -- to query; NULL where JSONB cannot hold it
  response_raw BYTEA, -- what is replayed; NULL where the answer was not kept (a tombstone)
  sealed BOOLEAN NOT NULL DEFAULT false, -- response_raw is encrypted, headers included
  resource_id UUID,
  resource_type VARCHAR(100),
  last_error TEXT, -- a class, never a text of the handler's
  expires_at TIMESTAMPTZ NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  completed_at TIMESTAMPTZ,
  CONSTRAINT idempotency_keys_pk PRIMARY KEY (id),
  CONSTRAINT uq_idempotency_user_key UNIQUE (account_id, scope_kind, user_id, idempotency_key),
  CONSTRAINT idempotency_keys_status CHECK (status IN ('PROCESSING', 'COMPLETED', 'FAILED')),
  CONSTRAINT idempotency_keys_completed CHECK (status <> 'COMPLETED' OR response_code IS NOT NULL AND completed_at IS NOT NULL),
  CONSTRAINT idempotency_keys_lock CHECK ((status = 'PROCESSING') = (locked_at IS NOT NULL)),
  CONSTRAINT idempotency_keys_bound CHECK (hash_bound OR status = 'FAILED')
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = false);
-- What the sweeper deletes: keys that have expired, and calls that were given up long ago.
CREATE INDEX idx_idempotency_expires ON idempotency_keys (expires_at) WHERE status <> 'PROCESSING';
CREATE INDEX idx_idempotency_processing ON idempotency_keys (locked_at) WHERE status = 'PROCESSING';

-- Statements are prepared while the table is still empty, and a plan made then is kept until the first ANALYZE. Reading an empty
-- table from end to end is cheapest, and ruinous a minute later. So let the planner know the table's shape before there is anything in
-- it, and leave it some pages, which vacuum_truncate keeps: with those, an index is cheaper from the first row on.
INSERT INTO idempotency_keys (account_id, scope_kind, user_id, idempotency_key, request_method, request_path, request_hash, policy,
    status, locked_at, response_code, response_raw, completed_at, expires_at)
  SELECT 'a', 'account', '00000000-0000-0000-0000-000000000001', n::text, 'POST', '/', repeat('0', 64), 'strict',
    CASE WHEN n % 50 = 0 THEN 'PROCESSING' WHEN n % 50 = 1 THEN 'FAILED' ELSE 'COMPLETED' END,
    CASE WHEN n % 50 = 0 THEN now() END, CASE WHEN n % 50 > 1 THEN 201 END, CASE WHEN n % 50 > 1 THEN '\x00'::bytea END,
    CASE WHEN n % 50 > 1 THEN now() END, now() + n * interval '1 minute'
  FROM generate_series(1, 2000) n;
ANALYZE idempotency_keys;
DELETE FROM idempotency_keys;
