-- The first schema. Every key leads with account_id, so one merchant's rows never stand in another's way.
-- Times are the database's clock. Money is minor units (bigint) beside an ISO 4217 code. River's own tables are
-- made by River's migrations, which run after these.

-- +goose Up

CREATE TABLE accounts (
  id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT accounts_pk PRIMARY KEY (id),
  CONSTRAINT accounts_id CHECK (id ~ '^[a-z0-9][a-z0-9_.-]{0,63}$')
);

-- When a source last received, give or take two hours: one that does is not taken out of the configuration.
CREATE TABLE sources (
  account_id text NOT NULL,
  id text NOT NULL,
  last_received_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT sources_pk PRIMARY KEY (account_id, id)
);

-- One row per event, kept for years: narrow, and the place where a duplicate is found out.
-- fillfactor leaves room for the outcome, which the same transaction writes.
CREATE TABLE processed_events (
  account_id text NOT NULL,
  source_id text NOT NULL,
  event_id text NOT NULL,
  type text NOT NULL,
  realm text NOT NULL DEFAULT '',
  payment text,
  order_id uuid,
  received_at timestamptz NOT NULL DEFAULT now(),
  occurred_at timestamptz,
  deliveries int NOT NULL DEFAULT 1,
  last_delivered_at timestamptz NOT NULL DEFAULT now(),
  outcome text,
  reason text,
  order_version_before int,
  order_version_after int,
  facts jsonb NOT NULL,
  facts_hash bytea NOT NULL,
  mapping_version smallint NOT NULL,
  CONSTRAINT processed_events_pk PRIMARY KEY (account_id, source_id, event_id),
  CONSTRAINT processed_events_outcome CHECK (outcome IN ('applied', 'no_change', 'waiting', 'ignored', 'flagged', 'quarantined')),
  CONSTRAINT processed_events_deliveries CHECK (deliveries >= 1),
  CONSTRAINT processed_events_versions CHECK (order_version_after >= order_version_before)
) WITH (fillfactor = 80);
CREATE INDEX processed_events_payment ON processed_events (account_id, payment) WHERE payment IS NOT NULL;
-- What somebody may have to look at, and what a resumed source folds.
CREATE INDEX processed_events_review ON processed_events (account_id, outcome, received_at)
  WHERE outcome IN ('waiting', 'flagged', 'quarantined');

-- Events that name an order and that its payments may not lead to: a person asks why it is not paid.
CREATE INDEX processed_events_named ON processed_events (account_id, (facts ->> 'reference'))
  WHERE outcome IN ('waiting', 'ignored', 'flagged', 'quarantined') AND facts ->> 'reference' IS NOT NULL;

-- The bytes as they came, one row per event of a delivery; the body stands in the first of them, the others
-- share its delivery. No foreign key: partitions are dropped by age. No default partition: DETACH CONCURRENTLY
-- does not work beside one.
CREATE TABLE event_payloads (
  account_id text NOT NULL,
  source_id text NOT NULL,
  event_id text NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now(),
  delivery uuid NOT NULL,
  header jsonb NOT NULL,
  body bytea
) PARTITION BY RANGE (received_at);
CREATE INDEX event_payloads_event ON event_payloads (account_id, source_id, event_id);
CREATE INDEX event_payloads_delivery ON event_payloads (delivery) WHERE body IS NOT NULL;

-- Payloads of events that somebody may still have to look at move here before their partition is dropped.
CREATE TABLE event_payloads_kept (LIKE event_payloads);
CREATE INDEX event_payloads_kept_event ON event_payloads_kept (account_id, source_id, event_id);
CREATE INDEX event_payloads_kept_delivery ON event_payloads_kept (delivery) WHERE body IS NOT NULL;

-- +goose StatementBegin
DO $$
BEGIN
  ALTER TABLE event_payloads ALTER COLUMN body SET COMPRESSION lz4;
  ALTER TABLE event_payloads_kept ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
  RAISE NOTICE 'this server has no lz4: payloads are compressed with its default';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE
  day date;
BEGIN
  FOR day IN SELECT d::date FROM generate_series((now() AT TIME ZONE 'UTC')::date - 1, (now() AT TIME ZONE 'UTC')::date + 14, '1 day') d LOOP
    EXECUTE format('CREATE TABLE %I PARTITION OF event_payloads FOR VALUES FROM (%L) TO (%L)',
      'event_payloads_' || to_char(day, 'YYYYMMDD'), day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
  END LOOP;
END $$;
-- +goose StatementEnd

CREATE TABLE orders (
  account_id text NOT NULL,
  id uuid NOT NULL,
  external_ref text NOT NULL,
  -- What the merchant's API said. total and currency are also filled where on_unknown_order: create takes them
  -- from a payment's own amount; registered stays false then.
  registered boolean NOT NULL DEFAULT false,
  registered_at timestamptz,
  total bigint,
  currency text,
  canceled boolean NOT NULL DEFAULT false,
  create_from_payment boolean NOT NULL DEFAULT false,
  marks text[] NOT NULL DEFAULT '{}',
  details jsonb,
  -- The fold, as of version.
  state text NOT NULL DEFAULT 'pending',
  flags text[] NOT NULL DEFAULT '{unregistered}',
  want text NOT NULL DEFAULT 'wait',
  captured bigint NOT NULL DEFAULT 0,
  refunded bigint NOT NULL DEFAULT 0,
  lost bigint NOT NULL DEFAULT 0,
  kept bigint NOT NULL DEFAULT 0,
  at_risk bigint NOT NULL DEFAULT 0,
  authorized bigint NOT NULL DEFAULT 0,
  -- What the merchant was told, and when somebody must look at the order again.
  told text NOT NULL DEFAULT 'nothing',
  fence bigint NOT NULL DEFAULT 0,
  wake_at timestamptz,
  version int NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT orders_pk PRIMARY KEY (account_id, id),
  CONSTRAINT orders_external_ref UNIQUE (account_id, external_ref),
  CONSTRAINT orders_total CHECK ((total IS NULL) = (currency IS NULL) AND total >= 0),
  CONSTRAINT orders_registered CHECK (NOT registered OR total IS NOT NULL),
  CONSTRAINT orders_currency CHECK (currency ~ '^[A-Z]{3}$'),
  CONSTRAINT orders_state CHECK (state IN ('pending', 'authorized', 'partially_paid', 'paid', 'partially_refunded', 'refunded',
    'disputed', 'charged_back', 'failed', 'canceled', 'expired')),
  CONSTRAINT orders_want CHECK (want IN ('wait', 'go', 'pause', 'stop')),
  CONSTRAINT orders_told CHECK (told IN ('nothing', 'held', 'fulfilled', 'revoked')),
  CONSTRAINT orders_sums CHECK (kept = captured - refunded - lost AND kept >= 0 AND at_risk BETWEEN 0 AND kept
    AND refunded >= 0 AND lost >= 0 AND authorized >= 0),
  CONSTRAINT orders_version CHECK (version >= 1)
) WITH (fillfactor = 70);
CREATE INDEX orders_wake ON orders (account_id, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX orders_stubs ON orders (account_id, created_at) WHERE NOT registered;

-- The ledger is a cache of the fold over processed_events.facts, never the only copy.
-- A merged payment keeps no ledger and no order; its ids go on pointing at it, it points at the survivor.
CREATE TABLE payments (
  account_id text NOT NULL,
  id uuid NOT NULL,
  order_id uuid,
  merged_into uuid,
  ledger jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT payments_pk PRIMARY KEY (account_id, id),
  CONSTRAINT payments_order FOREIGN KEY (account_id, order_id) REFERENCES orders,
  CONSTRAINT payments_merged_into FOREIGN KEY (account_id, merged_into) REFERENCES payments,
  CONSTRAINT payments_merged CHECK (merged_into IS NULL OR order_id IS NULL AND merged_into < id)
) WITH (fillfactor = 70);
CREATE INDEX payments_by_order ON payments (account_id, order_id) WHERE order_id IS NOT NULL;

-- Insert only: what a gateway calls a payment. realm = gateway, gateway account and mode.
CREATE TABLE payment_ids (
  account_id text NOT NULL,
  realm text NOT NULL,
  id text NOT NULL,
  payment_id uuid NOT NULL,
  CONSTRAINT payment_ids_pk PRIMARY KEY (account_id, realm, id),
  CONSTRAINT payment_ids_payment FOREIGN KEY (account_id, payment_id) REFERENCES payments
);

-- One row per version of an order, and in it the effect that this version owes the merchant, if any.
CREATE TABLE order_transitions (
  account_id text NOT NULL,
  order_id uuid NOT NULL,
  version int NOT NULL,
  from_state text,
  to_state text NOT NULL,
  cause text NOT NULL,
  source_id text,
  event_id text,
  at timestamptz NOT NULL DEFAULT now(),
  kept bigint NOT NULL DEFAULT 0,
  flags text[] NOT NULL DEFAULT '{}',
  effect text,
  effect_state text,
  after text,
  attempts int NOT NULL DEFAULT 0,
  tried boolean NOT NULL DEFAULT false,
  fence bigint NOT NULL DEFAULT 0,
  claimed_until timestamptz,
  next_at timestamptz,
  undoes int,
  last_error text,
  why text,
  settled_at timestamptz,
  CONSTRAINT order_transitions_pk PRIMARY KEY (account_id, order_id, version),
  CONSTRAINT order_transitions_order FOREIGN KEY (account_id, order_id) REFERENCES orders,
  CONSTRAINT order_transitions_effect CHECK (effect IN ('fulfil', 'hold', 'release', 'revoke')),
  CONSTRAINT order_transitions_effect_state CHECK (effect_state IN ('open', 'claimed', 'done', 'canceled', 'assumed', 'dead')),
  CONSTRAINT order_transitions_effect_pair CHECK ((effect IS NULL) = (effect_state IS NULL)),
  CONSTRAINT order_transitions_after CHECK (after IN ('nothing', 'held', 'fulfilled', 'revoked')),
  CONSTRAINT order_transitions_claim CHECK ((effect_state = 'claimed') = (claimed_until IS NOT NULL))
) WITH (fillfactor = 90);
-- At most one effect of an order is owed at a time.
CREATE UNIQUE INDEX order_transitions_one_open ON order_transitions (account_id, order_id)
  WHERE effect_state IN ('open', 'claimed', 'dead');
-- Calls that are out: at most as many as there are workers. Claims that lapsed are found here.
CREATE INDEX order_transitions_claimed ON order_transitions (claimed_until) WHERE effect_state = 'claimed';
CREATE INDEX order_transitions_dead ON order_transitions (account_id, at) WHERE effect_state = 'dead';

-- Statements are prepared while the tables are still empty, and a plan made then is kept until the first ANALYZE. Of an
-- empty table Postgres knows nothing, takes all indexes that start with account_id for equally good, and may read a whole
-- account where one row was asked for. So let it know the shape of these tables before there is anything in them:
-- statistics outlive TRUNCATE.
INSERT INTO orders (account_id, id, external_ref) SELECT 'a', gen_random_uuid(), n::text FROM generate_series(1, 2000) n;
INSERT INTO processed_events (account_id, source_id, event_id, type, realm, payment, order_id, outcome, facts, facts_hash, mapping_version)
  SELECT 'a', 's', external_ref, 't' || external_ref::int % 10, 'r', external_ref, id, 'applied', '{}', '', 1 FROM orders;
INSERT INTO payments (account_id, id, order_id) SELECT 'a', gen_random_uuid(), id FROM orders;
INSERT INTO payment_ids (account_id, realm, id, payment_id) SELECT 'a', 'r', row_number() OVER ()::text, id FROM payments;
INSERT INTO order_transitions (account_id, order_id, version, to_state, cause, effect, effect_state)
  SELECT 'a', o.id, v, 'paid', 'c', CASE WHEN v = 3 THEN 'fulfil' END,
    CASE WHEN v = 3 THEN CASE WHEN o.external_ref::int % 20 = 0 THEN 'open' ELSE 'done' END END
  FROM orders o, generate_series(1, 3) v;
ANALYZE orders, processed_events, payments, payment_ids, order_transitions;
TRUNCATE orders, processed_events, payments, payment_ids, order_transitions;
