-- Our own calls that move money at gateways. A row is entered, with the exact bytes that are going to be sent and the key that
-- they go with, in the transaction that decides on it, before the first byte leaves. What the money does are facts of events,
-- as ever; this is what we asked for, and what is known of the call.

-- +goose Up

CREATE TABLE transactions (
  account_id text NOT NULL,
  id uuid NOT NULL, -- the gateway keeps it with what it makes, where it can
  external_ref text,
  order_id uuid NOT NULL,
  payment_id uuid NOT NULL, -- as it was called then: it may have been merged since
  party text NOT NULL, -- the payment once more, for the net below: two payments of one order are two refunds
  source_id text NOT NULL,
  gateway text NOT NULL,
  kind text NOT NULL,
  amount bigint NOT NULL,
  currency text NOT NULL,
  source_currency text, -- as in incomes; nothing is converted here
  reason text,
  metadata jsonb,
  status text NOT NULL DEFAULT 'pending',
  -- What the call was made of, and the call: without key and credentials.
  movement jsonb NOT NULL,
  method text NOT NULL,
  path text NOT NULL,
  header jsonb NOT NULL,
  body bytea NOT NULL,
  -- The key is a function of id and epoch. An epoch ends only when it is proven that its call has done nothing.
  epoch int NOT NULL DEFAULT 1,
  key text NOT NULL,
  sent_at timestamptz, -- the first time in this epoch
  attempts int NOT NULL DEFAULT 0, -- in this epoch
  lookups int NOT NULL DEFAULT 0,
  fence bigint NOT NULL DEFAULT 0,
  claimed_until timestamptz,
  -- A promise, as in fetches: a job or the ticker comes at or soon after it. NULL while it waits for its turn behind another one
  -- of the payment, for a webhook, or for a person.
  next_at timestamptz DEFAULT clock_timestamp(),
  gateway_ref text, -- the gateway's id of what it made
  code text, -- why not: a code word of ours or of the gateway's
  detail text,
  settled_at timestamptz,
  created_at timestamptz NOT NULL,
  CONSTRAINT transactions_pk PRIMARY KEY (account_id, id),
  CONSTRAINT transactions_external_ref UNIQUE (account_id, external_ref),
  CONSTRAINT transactions_names CHECK (external_ref <> '' AND party = payment_id::text),
  CONSTRAINT transactions_kind CHECK (kind IN ('capture', 'refund', 'void')),
  CONSTRAINT transactions_amount CHECK (amount > 0 AND currency ~ '^[A-Z]{3}$' AND source_currency IS NULL),
  CONSTRAINT transactions_status CHECK (status IN ('pending', 'sent', 'succeeded', 'failed', 'uncertain')),
  CONSTRAINT transactions_pending CHECK (status <> 'pending' OR sent_at IS NULL AND claimed_until IS NULL),
  CONSTRAINT transactions_sent CHECK (status <> 'sent' OR sent_at IS NOT NULL AND next_at IS NOT NULL),
  CONSTRAINT transactions_claim CHECK (claimed_until IS NULL OR status IN ('sent', 'uncertain') AND next_at IS NOT NULL),
  CONSTRAINT transactions_settled CHECK ((status IN ('succeeded', 'failed')) = (settled_at IS NOT NULL)),
  CONSTRAINT transactions_promise CHECK (settled_at IS NULL OR next_at IS NULL),
  CONSTRAINT transactions_epoch CHECK (epoch >= 1 AND attempts >= 0 AND lookups >= 0)
) WITH (fillfactor = 70);
-- One call at a time for a payment: the next one's turn comes when it is known what became of this.
CREATE UNIQUE INDEX transactions_one_at_a_time ON transactions (account_id, payment_id) WHERE status IN ('sent', 'uncertain');
-- The net below the Idempotency-Key: see incomes.
CREATE UNIQUE INDEX uq_transactions_dedup ON transactions (account_id, coalesce(order_id::text, ''), coalesce(party, ''), kind,
  coalesce(source_currency, currency), currency, amount, date_trunc('minute', created_at AT TIME ZONE 'UTC'), coalesce(external_ref, ''))
  WHERE status NOT IN ('failed');
CREATE INDEX transactions_due ON transactions (account_id, next_at) WHERE next_at IS NOT NULL;
-- What is not settled: little, and looked at whenever more is asked for.
CREATE INDEX transactions_open ON transactions (account_id, payment_id, id) WHERE status IN ('pending', 'sent', 'uncertain');
CREATE INDEX transactions_by_order ON transactions (account_id, order_id, id);
CREATE INDEX transactions_by_status ON transactions (account_id, status, id) WHERE status <> 'succeeded';
-- Payments that were merged into one: what is still open under their names counts for it.
CREATE INDEX payments_merged_into ON payments (account_id, merged_into) WHERE merged_into IS NOT NULL;

-- See 00001: let the planner know the shape of the table before there is anything in it. What it refers to is not touched: the
-- references are made afterwards.
INSERT INTO transactions (account_id, id, external_ref, order_id, payment_id, party, source_id, gateway, kind, amount, currency, status, movement,
    method, path, header, body, key, sent_at, next_at, settled_at, created_at)
  SELECT 'a', gen_random_uuid(), n::text, gen_random_uuid(), p, p::text, 's', 'g', 'refund', n, 'EUR', CASE WHEN n % 50 = 0 THEN 'pending' ELSE 'succeeded' END,
    '{}', 'POST', '/', '{}', '', '', CASE WHEN n % 50 <> 0 THEN now() END, CASE WHEN n % 50 = 0 THEN now() END, CASE WHEN n % 50 <> 0 THEN now() END, now()
  FROM (SELECT n, gen_random_uuid() AS p FROM generate_series(1, 2000) n) x;
ANALYZE transactions;
TRUNCATE transactions;
ALTER TABLE transactions
  ADD CONSTRAINT transactions_order FOREIGN KEY (account_id, order_id) REFERENCES orders,
  ADD CONSTRAINT transactions_payment FOREIGN KEY (account_id, payment_id) REFERENCES payments;
