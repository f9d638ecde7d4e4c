-- What an event was taken to mean before it was read again with another mapping (paidonce events reevaluate): its facts,
-- the mapping that read them, and what they had done. Insert only, in the transaction that replaces them and under the
-- lock of the event's row in processed_events, whose table it follows in the order of locks. No rows of it are read in
-- any hot path.

-- +goose Up

CREATE TABLE event_meanings (
  account_id text NOT NULL,
  source_id text NOT NULL,
  event_id text NOT NULL,
  -- The clock, not the transaction's start: who replaces an event again has waited for the lock, and comes later.
  replaced_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  type text NOT NULL,
  realm text NOT NULL,
  occurred_at timestamptz,
  outcome text,
  reason text,
  order_id uuid,
  order_version_before int,
  order_version_after int,
  facts jsonb NOT NULL,
  facts_hash bytea NOT NULL,
  mapping_version smallint NOT NULL,
  CONSTRAINT event_meanings_pk PRIMARY KEY (account_id, source_id, event_id, replaced_at)
);
