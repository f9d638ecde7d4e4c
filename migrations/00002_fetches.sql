-- What has to be asked at a gateway's API: deliveries that carry no fact that may be believed only name an object. One
-- row per source and object, so that an object which is announced a hundred times is asked about once or twice.

-- +goose Up

CREATE TABLE fetches (
  account_id text NOT NULL,
  source_id text NOT NULL,
  object text NOT NULL, -- kind/id
  gateway text NOT NULL,
  state text NOT NULL DEFAULT 'open',
  -- A promise, while open: a job or the ticker looks at this row at or soon after it. While a call is out: its end.
  next_at timestamptz DEFAULT clock_timestamp(),
  -- Announced while a call was out, whose answer may be older than that: one more call follows.
  again boolean NOT NULL DEFAULT false,
  announced_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- the first announcement that was not answered yet
  asked_at timestamptz, -- the start of the last call
  claimed_until timestamptz,
  fence bigint NOT NULL DEFAULT 0,
  attempts int NOT NULL DEFAULT 0, -- that failed in one way, in a row
  failing text, -- that way
  unchanged int NOT NULL DEFAULT 0, -- calls in a row whose answer was the one before
  last_digest text, -- of what was taken in last
  told_at timestamptz, -- the start of the call whose answer that was
  last_error text,
  settled_at timestamptz,
  CONSTRAINT fetches_pk PRIMARY KEY (account_id, source_id, object),
  CONSTRAINT fetches_state CHECK (state IN ('open', 'done', 'dead')),
  CONSTRAINT fetches_promise CHECK ((state = 'open') = (next_at IS NOT NULL)),
  CONSTRAINT fetches_settled CHECK (state = 'open' OR settled_at IS NOT NULL),
  CONSTRAINT fetches_claim CHECK (state = 'open' OR claimed_until IS NULL AND NOT again)
) WITH (fillfactor = 70);
-- What is due, and how much of a source is open: small indexes, of open rows only.
CREATE INDEX fetches_due ON fetches (account_id, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX fetches_open ON fetches (account_id, source_id) WHERE next_at IS NOT NULL;
-- Whether another source told of the same object since.
CREATE INDEX fetches_told ON fetches (account_id, object) WHERE told_at IS NOT NULL;
-- What retention deletes, and what was given up.
CREATE INDEX fetches_settled_at ON fetches (settled_at) WHERE state <> 'open';
CREATE INDEX fetches_dead ON fetches (settled_at) WHERE state = 'dead';

-- See 00001: let the planner know the shape of the table before there is anything in it.
INSERT INTO fetches (account_id, source_id, object, gateway, state, next_at, settled_at, told_at)
  SELECT 'a', 's', 'payment/' || n, 'g', CASE WHEN n % 50 = 0 THEN 'open' WHEN n % 50 = 1 THEN 'dead' ELSE 'done' END,
    CASE WHEN n % 50 = 0 THEN now() END, CASE WHEN n % 50 <> 0 THEN now() END, CASE WHEN n % 50 > 1 THEN now() END
  FROM generate_series(1, 2000) n;
ANALYZE fetches;
TRUNCATE fetches;
