-- Lists of the merchant's API (GET /v1/orders, /v1/events): one account's rows, by a filter, newest first, a page at a time.
-- Without these, a page of an account with a million orders reads all of them. Ids of orders are by age.

-- +goose Up

-- By state. Most orders end as paid, and are found quickly among all: those cost no entry here.
CREATE INDEX orders_unpaid ON orders (account_id, state, id) WHERE state <> 'paid';
-- Those that somebody should look at are few.
CREATE INDEX orders_flagged ON orders (account_id, id) WHERE flags <> '{}';
-- All events. It grows at its end, and no update touches it. Events of one moment are sorted by the rest of their key.
CREATE INDEX processed_events_received ON processed_events (account_id, received_at);
