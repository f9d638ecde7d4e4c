-- What comes back: a schedule that makes one order per period, called {external_ref}:{period}. A row is never deleted,
-- so that its name, and with it the names of its orders, are its own for ever.

-- +goose Up

CREATE TABLE recurrences (
  account_id text NOT NULL,
  id uuid NOT NULL,
  external_ref text NOT NULL,
  -- What each of its orders is registered with.
  amount bigint NOT NULL,
  currency text NOT NULL,
  details jsonb,
  -- When its periods begin. The zone is the account's as it was when the row was made: a later change of the
  -- configuration renames no period.
  interval text NOT NULL,
  every int NOT NULL,
  time_zone text NOT NULL,
  starts_on date NOT NULL,
  -- Where it ends: no period begins after this day, there are no more than so many. NULL: it does not.
  ends_on date,
  ends_after int,
  -- The first period that was not made yet, and when it begins; NULL: there is none.
  next_period text,
  next_start timestamptz,
  created_count int NOT NULL DEFAULT 0,
  ended_at timestamptz,
  version int NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT recurrences_pk PRIMARY KEY (account_id, id),
  CONSTRAINT recurrences_external_ref UNIQUE (account_id, external_ref),
  CONSTRAINT recurrences_amount CHECK (amount >= 0),
  CONSTRAINT recurrences_currency CHECK (currency ~ '^[A-Z]{3}$'),
  CONSTRAINT recurrences_interval CHECK (interval IN ('day', 'week', 'month', 'quarter', 'year')),
  CONSTRAINT recurrences_every CHECK (every BETWEEN 1 AND 1000),
  CONSTRAINT recurrences_starts_on CHECK (starts_on BETWEEN '1970-01-01' AND '9999-12-31'),
  CONSTRAINT recurrences_count CHECK (created_count >= 0 AND ends_after >= 1 AND created_count <= ends_after),
  CONSTRAINT recurrences_next CHECK ((next_start IS NULL) = (next_period IS NULL)),
  CONSTRAINT recurrences_ended CHECK ((ended_at IS NULL) = (next_start IS NOT NULL)),
  CONSTRAINT recurrences_version CHECK (version >= 1)
) WITH (fillfactor = 80);
CREATE INDEX recurrences_due ON recurrences (account_id, next_start) WHERE next_start IS NOT NULL;
