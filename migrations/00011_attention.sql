-- What needs a person is looked for every minute: what does is found by indexes of hardly any rows, so that it costs nothing while
-- there is nothing. The tables may be large and busy, so the indexes are built beside them. One that an interrupted run left behind is
-- of no use.

-- +goose NO TRANSACTION
-- +goose Up

-- Orders with a flag that alarms (store.AttentionFlags), as opposed to one that says how far an order has come.
DROP INDEX CONCURRENTLY IF EXISTS orders_attention;
CREATE INDEX CONCURRENTLY orders_attention ON orders (account_id, id)
  WHERE flags && '{account_mismatch,amount_unknown,currency_mismatch,id_reused,mode_mismatch,over_refunded,overpaid,paid_after_cancel,reference_conflict,total_differs,unexpected_move}'::text[];
-- Stubs alone: orders that their payment's own amount has made are not registered either, and may be many.
DROP INDEX CONCURRENTLY IF EXISTS orders_stubs_only;
CREATE INDEX CONCURRENTLY orders_stubs_only ON orders (account_id, created_at) WHERE NOT registered AND total IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS processed_events_quarantined;
CREATE INDEX CONCURRENTLY processed_events_quarantined ON processed_events (account_id, received_at)
  WHERE outcome = 'quarantined' AND dismissed_at IS NULL;
-- Events whose payment belonged to no order when they came. It may belong to one since.
DROP INDEX CONCURRENTLY IF EXISTS processed_events_unplaced;
CREATE INDEX CONCURRENTLY processed_events_unplaced ON processed_events (account_id, received_at)
  WHERE outcome = 'waiting' AND reason = 'no_reference' AND dismissed_at IS NULL;
