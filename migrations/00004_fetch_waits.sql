-- Signed events that only name an object at the gateway wait until it was asked about: found by the object. The table
-- may be large and busy, so the index is built beside it. One that an interrupted run left behind is of no use.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS processed_events_fetch;
CREATE INDEX CONCURRENTLY processed_events_fetch ON processed_events (account_id, source_id, (facts ->> 'fetch'))
  WHERE outcome = 'waiting' AND facts ->> 'fetch' IS NOT NULL;
