-- The merchant's own commands: until when an order should be paid, flags that a person has dealt with, events that a
-- person has dealt with, and money that came outside of gateways.

-- +goose Up

-- expired_at is when it was noticed that expires_at has passed; NULL: still to be noticed.
ALTER TABLE orders
  ADD COLUMN expires_at timestamptz,
  ADD COLUMN expired_at timestamptz,
  ADD COLUMN dismissed text[] NOT NULL DEFAULT '{}';
CREATE INDEX orders_expiring ON orders (expires_at) WHERE expires_at IS NOT NULL AND expired_at IS NULL;

-- Not a matter of the event's meaning: a person needs not look at it any more.
ALTER TABLE processed_events ADD COLUMN dismissed_at timestamptz;

-- Money that the merchant received otherwise: in cash, by a bank transfer. What it does to an order are the facts of
-- events of the account's source api; this is what the merchant said about it.
CREATE TABLE incomes (
  account_id text NOT NULL,
  id uuid NOT NULL, -- also of its payment, in the realm offline
  external_ref text,
  order_id uuid, -- as it was received for; a link moves the payment, not this
  party text, -- who paid, in the merchant's own words
  kind text NOT NULL,
  amount bigint NOT NULL,
  currency text NOT NULL,
  -- What was handed over, where that is another currency.
  source_amount bigint,
  source_currency text,
  received_on date,
  metadata jsonb,
  status text NOT NULL DEFAULT 'received',
  voided_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT incomes_pk PRIMARY KEY (account_id, id),
  CONSTRAINT incomes_external_ref UNIQUE (account_id, external_ref),
  CONSTRAINT incomes_order FOREIGN KEY (account_id, order_id) REFERENCES orders,
  CONSTRAINT incomes_named CHECK (external_ref IS NOT NULL OR order_id IS NOT NULL OR party IS NOT NULL),
  CONSTRAINT incomes_names CHECK (external_ref <> '' AND party <> ''), -- the net takes NULL and empty for one
  CONSTRAINT incomes_kind CHECK (kind IN ('bank_transfer', 'cash', 'cheque', 'card', 'other')),
  CONSTRAINT incomes_amount CHECK (amount > 0 AND currency ~ '^[A-Z]{3}$'),
  CONSTRAINT incomes_source CHECK ((source_amount IS NULL) = (source_currency IS NULL) AND source_amount > 0
    AND source_currency ~ '^[A-Z]{3}$' AND source_currency <> currency),
  CONSTRAINT incomes_status CHECK (status IN ('received', 'voided')),
  CONSTRAINT incomes_voided CHECK ((status = 'voided') = (voided_at IS NOT NULL))
);
-- The net below the Idempotency-Key: money that our API enters twice within a minute is entered once. The merchant's
-- reference tells two payments of one amount apart. Rows that webhooks bring never stand in this table. Every table of
-- money that our API enters has such an index, of the same expressions: docs/ARCHITECTURE.md.
CREATE UNIQUE INDEX uq_transaction_dedup ON incomes (account_id, coalesce(order_id::text, ''), coalesce(party, ''), kind,
  coalesce(source_currency, currency), currency, amount, date_trunc('minute', created_at AT TIME ZONE 'UTC'), coalesce(external_ref, ''))
  WHERE status NOT IN ('voided');
-- Lists, newest first: ids are by age.
CREATE INDEX incomes_by_order ON incomes (account_id, order_id, id) WHERE order_id IS NOT NULL;
CREATE INDEX incomes_void ON incomes (account_id, id) WHERE status = 'voided';

-- The shape of a table that has grown, for plans that are made while it is empty: see 00001.
INSERT INTO incomes (account_id, id, external_ref, kind, amount, currency)
  SELECT 'a', gen_random_uuid(), n::text, 'cash', n, 'EUR' FROM generate_series(1, 2000) n;
ANALYZE incomes;
TRUNCATE incomes;
