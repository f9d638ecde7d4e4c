-- What gateways are asked by ourselves, so that what their webhooks lost is found: how far the list of each source was read, which
-- orders wait for too long, and what came of it.

-- +goose Up

-- One row per source. Who works on it holds a claim: claimed_until is a lease, and fence tells one claim from another.
CREATE TABLE reconcile_cursors (
  account_id text NOT NULL,
  source_id text NOT NULL,
  gateway text NOT NULL,
  -- What can be done, as of the last look at the configuration, and in a sentence why not more.
  lists boolean NOT NULL DEFAULT false,
  asks boolean NOT NULL DEFAULT false,
  note text,
  -- All that happened before it was taken in. NULL: the list was never read.
  reached_at timestamptz,
  -- The events that were received up to then were looked through for orders that wait.
  scanned_at timestamptz,
  fence bigint NOT NULL DEFAULT 0,
  claimed_until timestamptz,
  next_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  held_until timestamptz, -- the gateway asked not to be asked before
  failures int NOT NULL DEFAULT 0, -- in a row
  last_error text,
  succeeded_at timestamptz, -- the end of the last run that read all there was
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT reconcile_cursors_pk PRIMARY KEY (account_id, source_id),
  CONSTRAINT reconcile_cursors_failures CHECK (failures >= 0)
) WITH (fillfactor = 70);

-- One row per run, and in it the report. Runs that found nothing are dropped soon, the others after months.
CREATE TABLE reconcile_runs (
  account_id text NOT NULL,
  id uuid NOT NULL, -- by age
  source_id text NOT NULL,
  gateway text NOT NULL,
  cause text NOT NULL,
  fence bigint NOT NULL, -- of the claim that it ran under
  result text NOT NULL DEFAULT 'running',
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  eventful boolean NOT NULL DEFAULT false, -- somebody may want to know of it
  report jsonb NOT NULL DEFAULT '{}',
  CONSTRAINT reconcile_runs_pk PRIMARY KEY (account_id, id),
  CONSTRAINT reconcile_runs_cause CHECK (cause IN ('schedule', 'command')),
  CONSTRAINT reconcile_runs_result CHECK (result IN ('running', 'done', 'more', 'failed', 'stopped', 'lost')),
  CONSTRAINT reconcile_runs_ended CHECK ((result = 'running') = (ended_at IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX reconcile_runs_by_source ON reconcile_runs (account_id, source_id, id);
CREATE INDEX reconcile_runs_eventful ON reconcile_runs (account_id, id) WHERE eventful;
CREATE INDEX reconcile_runs_ended_at ON reconcile_runs (ended_at) WHERE ended_at IS NOT NULL;

-- Orders whose gateway should have told by now how they go on. It is asked about them less and less often. No foreign key: a row
-- of an order that is gone is taken away like one of an order that waits no more.
CREATE TABLE reconcile_orders (
  account_id text NOT NULL,
  source_id text NOT NULL, -- that asks
  order_id uuid NOT NULL,
  version int NOT NULL, -- of the order, when it was found to wait
  found_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  asks int NOT NULL DEFAULT 0,
  asked_at timestamptz,
  next_at timestamptz DEFAULT clock_timestamp(), -- NULL: it is not asked about any more
  CONSTRAINT reconcile_orders_pk PRIMARY KEY (account_id, source_id, order_id)
) WITH (fillfactor = 70);
CREATE INDEX reconcile_orders_due ON reconcile_orders (account_id, source_id, next_at) WHERE next_at IS NOT NULL;

-- Objects that were announced by a run, until it is known what their answers brought.
CREATE TABLE reconcile_asks (
  account_id text NOT NULL,
  source_id text NOT NULL,
  object text NOT NULL, -- as in fetches
  order_id uuid, -- that waits; NULL: the object stood in the list
  announced_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT reconcile_asks_pk PRIMARY KEY (account_id, source_id, object)
) WITH (fillfactor = 70);
