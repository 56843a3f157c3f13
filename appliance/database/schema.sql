-- Instants are milliseconds since 1970 in UTC (names end in _at). Dates are YYYY-MM-DD and
-- slots HH:MM in venue time, stored as text and never as instants. Ids are UUIDs as text. Staff
-- are in live.db alone, so that staff_id refers to nothing in the tables that test.db has too.
-- Three or more allowed values are written with OR: for IN, SQLite builds a table at each insert.

-- One row: the venue that this box serves.
CREATE TABLE venue (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    slug TEXT NOT NULL,
    status TEXT NOT NULL
        CHECK (status = 'active' OR status = 'inactive' OR status = 'suspended'),
    reservation_mode TEXT NOT NULL CHECK (reservation_mode IN ('prepaid', 'free')),
    auto_confirm INTEGER NOT NULL CHECK (auto_confirm IN (0, 1)),
    request_expiry_hours INTEGER NOT NULL,
    currency TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    -- HH:MM; before it, tonight is yesterday's date.
    evening_ends_at TEXT NOT NULL CHECK (evening_ends_at GLOB '[0-2][0-9]:[0-5][0-9]'),
    policies TEXT,                   -- JSON object or null
    address TEXT,                    -- how guests find it, for guests alone
    map_url TEXT,                    -- https; null: they are led to a map by the address
    phone TEXT,                      -- for guests; null: they are shown none
    booking_page INTEGER NOT NULL DEFAULT 0 CHECK (booking_page IN (0, 1)),
    cancel_hours INTEGER NOT NULL DEFAULT 2 CHECK (cancel_hours >= 0),
    reminder_hours INTEGER NOT NULL DEFAULT 24 CHECK (reminder_hours >= 0),  -- 0: no reminder
    early_minutes INTEGER NOT NULL DEFAULT 120 CHECK (early_minutes >= 0),
    contact_days INTEGER NOT NULL DEFAULT 30 CHECK (contact_days >= 1),
    house_email TEXT,                -- told of what guests do; null: nobody is
    hears_requests INTEGER NOT NULL DEFAULT 1 CHECK (hears_requests IN (0, 1)),
    hears_cancellations INTEGER NOT NULL DEFAULT 1 CHECK (hears_cancellations IN (0, 1)),
    hears_payments INTEGER NOT NULL DEFAULT 1 CHECK (hears_payments IN (0, 1)),
    hears_checks INTEGER NOT NULL DEFAULT 1 CHECK (hears_checks IN (0, 1)),
    -- 1: guests book a slot, never the whole evening.
    slots_only INTEGER NOT NULL DEFAULT 0 CHECK (slots_only IN (0, 1)),
    -- How much of a guest's name the door sees.
    names_at_door TEXT NOT NULL DEFAULT 'initial'
        CHECK (names_at_door IN ('given', 'initial', 'whole')),
    payment_how TEXT,                -- how guests pay in advance; null: they are told nothing
    payment_hours INTEGER NOT NULL DEFAULT 0 CHECK (payment_hours >= 0),  -- 0: no deadline
    -- 1: what is not paid by the deadline is cancelled.
    payment_frees INTEGER NOT NULL DEFAULT 0 CHECK (payment_frees IN (0, 1)),
    capacity INTEGER CHECK (capacity >= 1)  -- people inside at most; null: no limit
) STRICT;

-- Named venue_table because TABLE is a word of SQL.
CREATE TABLE venue_table (
    id TEXT PRIMARY KEY,
    position INTEGER NOT NULL,       -- the venue's own order
    number TEXT NOT NULL UNIQUE,     -- the label shown in the room: T1, T2, …
    name TEXT NOT NULL,
    capacity_min INTEGER NOT NULL CHECK (capacity_min >= 1),
    capacity_max INTEGER NOT NULL CHECK (capacity_max >= capacity_min),
    minimum_spend INTEGER NOT NULL,  -- whole currency units
    type TEXT NOT NULL,
    bookable INTEGER NOT NULL CHECK (bookable IN (0, 1))
) STRICT;

CREATE TABLE slot (
    id TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    start TEXT NOT NULL CHECK (start GLOB '[0-2][0-9]:[0-5][0-9]'),
    -- At or before start, it is the next morning.
    "end" TEXT NOT NULL CHECK ("end" GLOB '[0-2][0-9]:[0-5][0-9]'),
    days_of_week TEXT NOT NULL       -- JSON list, 0 = Sunday
) STRICT;

-- Days, both included, on which nothing can be booked. What was booked before is kept.
CREATE TABLE closing_day (
    id TEXT PRIMARY KEY,
    first_day TEXT NOT NULL CHECK (first_day GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
    last_day TEXT NOT NULL CHECK (last_day GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
    reason TEXT NOT NULL,            -- for staff; may be empty
    CHECK (first_day <= last_day)
) STRICT;

-- A partner's key. A rotated key shares its predecessor's lineage, and with it the right to
-- cancel, the replays and the externalRefs (docs/decisions/keys-and-limits.md).
CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    lineage TEXT NOT NULL,           -- the id of the first key of the line
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,       -- SHA-256 of the key
    prefix TEXT NOT NULL,            -- svc_live_ and the first characters, to recognise it
    last_four TEXT NOT NULL,
    scopes TEXT NOT NULL,            -- space-separated
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,            -- to the minute
    expires_at INTEGER,              -- of a rotated key: it works until then
    revoked_at INTEGER               -- refused since then, whatever the clock says
) STRICT;

CREATE TABLE reservation (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status = 'confirmed' OR status = 'requested'
        OR status = 'pending' OR status = 'partial' OR status = 'completed'
        OR status = 'cancelled' OR status = 'declined'),
    source TEXT NOT NULL
        CHECK (source = 'partner' OR source = 'platform' OR source = 'manual'),
    table_id TEXT NOT NULL REFERENCES venue_table (id),
    table_ids TEXT,                  -- of a group: JSON list of its tables, table_id first
    date TEXT NOT NULL CHECK (date GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
    slot TEXT CHECK (slot GLOB '[0-2][0-9]:[0-5][0-9]'),  -- null holds the whole evening
    starts INTEGER NOT NULL,         -- minutes after midnight of date: the interval asked for,
    ends INTEGER NOT NULL,           -- [starts, ends); the whole evening is [0, 2880)
    guests INTEGER NOT NULL CHECK (guests >= 1),
    customer_name TEXT,              -- name, contacts and notes are erased after the evening
    customer_email TEXT,
    customer_phone TEXT,             -- as typed
    customer_numbers TEXT,           -- the sure numbers in it, in E.164, separated by spaces
    notes TEXT,
    language TEXT                    -- the customer's, where known
        CHECK (language = 'fr' OR language = 'en' OR language = 'ar'),
    access_code TEXT UNIQUE,         -- freed (null) 30 days after the evening
    replaced_codes TEXT,             -- JSON list of the access codes before it, freed with it
    pass_id BLOB NOT NULL UNIQUE,    -- the 8 bytes in the guest pass
    generation INTEGER NOT NULL DEFAULT 0,       -- of the guest pass
    link_generation INTEGER NOT NULL DEFAULT 0,  -- of both links
    arrived INTEGER NOT NULL DEFAULT 0,
    -- Of those that arrived, how many are out. More than arrived while another door has not yet
    -- said that it let them in.
    people_out INTEGER NOT NULL DEFAULT 0 CHECK (people_out >= 0),
    went_out_at INTEGER,             -- when somebody of the party last went out
    checked_in_at INTEGER,
    link_expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,  -- raised by each edit: staff edits name what they saw
    cancelled_at INTEGER,
    cancelled_by TEXT
        CHECK (cancelled_by = 'guest' OR cancelled_by = 'venue' OR cancelled_by = 'partner'),
    expires_at INTEGER,              -- of an unanswered request, and of one to be paid in advance
    external_ref TEXT,
    late_at INTEGER,                 -- since when staff know that the party comes late
    left_at INTEGER,                 -- since when the party is gone and its tables are free
    -- 1: cancelled by the venue, because nobody came.
    no_show INTEGER NOT NULL DEFAULT 0 CHECK (no_show IN (0, 1)),
    -- 1: seated without a reservation.
    walk_in INTEGER NOT NULL DEFAULT 0 CHECK (walk_in IN (0, 1)),
    -- 1: the door is asked for special attention.
    vip INTEGER NOT NULL DEFAULT 0 CHECK (vip IN (0, 1)),
    CHECK (starts < ends)
) STRICT;

-- The order of the list (docs/decisions/availability.md): whole evenings first, as null sorts before text.
CREATE INDEX reservation_list ON reservation (date, slot, created_at, id);
CREATE INDEX reservation_deadline ON reservation (expires_at)
    WHERE status = 'requested' OR status = 'pending';
-- What is completed when its evening ends, and gives up its code some weeks later.
CREATE INDEX reservation_open ON reservation (date, status)
    WHERE status = 'confirmed' OR access_code IS NOT NULL;

-- How a reservation was asked for, which answers the same request again.
CREATE TABLE booking_request (
    reservation_seq INTEGER PRIMARY KEY REFERENCES reservation (seq),
    lineage TEXT,                    -- of the partner's key, guest, or staff:<id> for a sent form
    idempotency_key TEXT,
    request_hash BLOB,               -- SHA-256 of the parsed request; erased with the guest
    issued_code TEXT,                -- the access code as first answered
    email_outcome TEXT               -- null while the first answer waits for the mail server
        CHECK (email_outcome = 'sent' OR email_outcome = 'failed' OR email_outcome = 'skipped'),
    body_mismatches INTEGER NOT NULL DEFAULT 0  -- replays whose body was another
) STRICT;
CREATE UNIQUE INDEX booking_request_replay ON booking_request (lineage, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- Changes that a partner asked for, which answer the same request again.
CREATE TABLE change_request (
    reservation_seq INTEGER NOT NULL REFERENCES reservation (seq),
    idempotency_key TEXT NOT NULL,
    request_hash BLOB,               -- SHA-256 of the parsed request; erased with the guest
    email_id TEXT,                   -- the email about it, if any
    PRIMARY KEY (reservation_seq, idempotency_key)
) STRICT, WITHOUT ROWID;

-- Who holds a table: availability and conflicts are read here and nowhere else. A reservation has
-- a row for each of its tables, from the booking until it is cancelled or declined, or its party
-- has left or did not come.
CREATE TABLE hold (
    date TEXT NOT NULL CHECK (date GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
    table_id TEXT NOT NULL REFERENCES venue_table (id),
    starts INTEGER NOT NULL,         -- minutes after midnight of date: the interval held,
    ends INTEGER NOT NULL,           -- [starts, ends); the whole evening is [0, 2880)
    reservation_seq INTEGER REFERENCES reservation (seq),  -- null: held for a while only
    expires_at INTEGER,              -- of a hold without a reservation
    source TEXT NOT NULL CHECK (source = 'partner' OR source = 'platform' OR source = 'manual'),
    PRIMARY KEY (date, table_id, starts),
    CHECK (starts < ends),
    CHECK ((reservation_seq IS NULL) = (expires_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- A hold without a reservation, for a few minutes: each of its tables has a row in hold.
CREATE TABLE open_hold (
    id TEXT PRIMARY KEY,
    lineage TEXT NOT NULL,           -- of the key that holds
    table_ids TEXT NOT NULL,         -- JSON list
    date TEXT NOT NULL,
    slot TEXT,                       -- null: the whole evening
    starts INTEGER NOT NULL,         -- as in hold
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- First come, first served, even if the code forgot to look.
CREATE TRIGGER hold_insert BEFORE INSERT ON hold
BEGIN
    SELECT RAISE (ABORT, 'table_taken') WHERE EXISTS (
        SELECT 1 FROM hold
        WHERE date = NEW.date AND table_id = NEW.table_id
            AND starts < NEW.ends AND NEW.starts < ends);
END;

CREATE TRIGGER hold_update BEFORE UPDATE OF date, table_id, starts, ends ON hold
BEGIN
    SELECT RAISE (ABORT, 'table_taken') WHERE EXISTS (
        SELECT 1 FROM hold
        WHERE date = NEW.date AND table_id = NEW.table_id
            AND starts < NEW.ends AND NEW.starts < ends
            AND (date, table_id, starts) <> (OLD.date, OLD.table_id, OLD.starts));
END;

-- What happened to a reservation, by whom: the portal's history.
CREATE TABLE history (
    seq INTEGER PRIMARY KEY,
    reservation_id TEXT NOT NULL REFERENCES reservation (id),
    at INTEGER NOT NULL,
    what TEXT NOT NULL,              -- created, accepted, declined, cancelled, payment, …
    actor TEXT NOT NULL,             -- key:<id>, staff:<id>, terminal:<id>, guest, box
    detail TEXT                      -- JSON; no personal data
) STRICT;
CREATE INDEX history_reservation ON history (reservation_id);

CREATE TABLE payment (
    id TEXT PRIMARY KEY,
    reservation_id TEXT NOT NULL REFERENCES reservation (id),
    at INTEGER NOT NULL,
    amount INTEGER NOT NULL CHECK (amount > 0),  -- whole currency units
    method TEXT NOT NULL,
    staff_id TEXT,
    voided_at INTEGER                -- counts no more; who voided it and why is in history
) STRICT;
CREATE INDEX payment_reservation ON payment (reservation_id);

-- A partner's webhook receiver (contract section 2.8).
CREATE TABLE endpoint (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    events TEXT NOT NULL,            -- JSON list of event types
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    created_at INTEGER NOT NULL,
    secret BLOB NOT NULL,            -- wrapped with the environment's key
    previous_secret BLOB,            -- wrapped; signs too until it expires
    previous_secret_expires_at INTEGER,
    failures_in_a_row INTEGER NOT NULL DEFAULT 0,
    last_success_at INTEGER,
    last_failure_at INTEGER,
    last_outcome TEXT,
    clock_skew_s INTEGER,            -- its clock minus ours, as its latest answer said
    -- What its certificate is checked against, if not the machine's own list: never nothing.
    ca TEXT,                         -- PEM: the only certificates that may have signed it
    lineage TEXT,                    -- of the key that registered it; null: the venue's staff
    -- 1: of reservations, it is told the externalRef of that line alone.
    own_refs INTEGER NOT NULL DEFAULT 0 CHECK (own_refs IN (0, 1))
) STRICT;
CREATE INDEX endpoint_active ON endpoint (active);

-- An event has no body: it is rendered at each attempt from the reservation as it then is.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,         -- never used again: the newest event is never deleted
    type TEXT NOT NULL,
    reservation_id TEXT REFERENCES reservation (id),  -- null for webhook.test
    occurred_at INTEGER NOT NULL
) STRICT;
CREATE INDEX event_reservation ON event (reservation_id);

-- One event on its way to one endpoint. In flight is known in memory only: a crash leaves
-- the row pending, and it is sent again with the same id.
CREATE TABLE delivery (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,         -- X-Service-Delivery and the body's id
    endpoint_id TEXT NOT NULL REFERENCES endpoint (id),
    event_seq INTEGER NOT NULL REFERENCES event (seq),
    state TEXT NOT NULL DEFAULT 'pending'
        CHECK (state = 'pending' OR state = 'delivered' OR state = 'dead' OR state = 'cancelled'),
    attempts INTEGER NOT NULL DEFAULT 0,   -- charged since creation or since the last replay
    due_at INTEGER NOT NULL,
    -- What the next attempt is: the first one, a retry at due_at, or one that was asked for.
    kind TEXT NOT NULL DEFAULT 'new'
        CHECK (kind = 'new' OR kind = 'retry' OR kind = 'replay'),
    finished_at INTEGER,             -- delivered, dead or cancelled since
    replays INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX delivery_due ON delivery (endpoint_id, kind, due_at, seq) WHERE state = 'pending';
CREATE INDEX delivery_dead ON delivery (finished_at) WHERE state = 'dead';
CREATE INDEX delivery_event ON delivery (event_seq);

CREATE TABLE attempt (
    delivery_seq INTEGER NOT NULL REFERENCES delivery (seq),
    n INTEGER NOT NULL,              -- 1, 2, … over all replays
    at INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    phase TEXT NOT NULL,             -- where it ended: guard, dns, connect, tls, wait, done, …
    outcome TEXT NOT NULL,           -- delivered, http_500, timeout, conn_refused, …
    http_status INTEGER,
    remote_address TEXT,
    excerpt TEXT,                    -- first bytes of the answer, escaped text
    -- 0: our own fault, the ladder did not move.
    charged INTEGER NOT NULL CHECK (charged IN (0, 1)),
    body_sha256 BLOB,                -- of what was sent; null when nothing was rendered
    PRIMARY KEY (delivery_seq, n)
) STRICT, WITHOUT ROWID;

-- The latest request of a delivery that failed, head and body as they were sent. Gone once it
-- is delivered; it has a guest's first name, and goes with what is erased of that guest.
CREATE TABLE failed_request (
    delivery_seq INTEGER PRIMARY KEY REFERENCES delivery (seq),
    at INTEGER NOT NULL,
    request BLOB NOT NULL
) STRICT;

-- A fault that the running box saw and no check can find out again: its row goes with the fault.
CREATE TABLE observation (
    name TEXT NOT NULL,              -- proxy_unknown, reader_trouble, …
    subject TEXT NOT NULL,           -- what it is about, such as an address, or empty
    since INTEGER NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (name, subject)
) STRICT, WITHOUT ROWID;

-- Guest pass keys. Old ones verify until the last pass they signed is two days past.
CREATE TABLE signing_key (
    kid INTEGER PRIMARY KEY CHECK (kid BETWEEN 0 AND 255),
    public_key BLOB NOT NULL,        -- 32 bytes, Ed25519
    private_key BLOB NOT NULL,       -- wrapped with the environment's key
    created_at INTEGER NOT NULL,
    retired_at INTEGER,              -- null for the one that signs
    leaked_at INTEGER                -- since then whatever it signed counts as replaced
) STRICT;

CREATE TABLE terminal (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL DEFAULT 'override'  -- each includes the one before
        CHECK (role = 'scan' OR role = 'search' OR role = 'override'),
    language TEXT NOT NULL DEFAULT 'fr'
        CHECK (language = 'fr' OR language = 'en' OR language = 'ar'),
    token_hash BLOB UNIQUE,          -- null until paired
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER,            -- to the minute
    version TEXT,
    wrong_codes TEXT NOT NULL DEFAULT '[]',  -- JSON: when its latest ten wrong codes were typed
    revoked_at INTEGER
) STRICT;

CREATE TABLE pairing (
    secret_hash BLOB PRIMARY KEY,    -- of what the link carries, which nobody can guess
    code_hash BLOB NOT NULL UNIQUE,  -- of the eight digits that may be typed instead
    terminal_name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role = 'scan' OR role = 'search' OR role = 'override'),
    offered_by TEXT NOT NULL,        -- the actor to whom the audit log ascribes the pairing
    expires_at INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,  -- wrong digits: five close the digits, never the link
    used_at INTEGER
) STRICT;

-- The door log. Of a row, only the free text in reason and verdict is ever changed: it is erased.
CREATE TABLE scan_log (
    seq INTEGER PRIMARY KEY,
    scan_id TEXT NOT NULL,
    terminal_id TEXT NOT NULL REFERENCES terminal (id),
    at INTEGER NOT NULL,
    device_at INTEGER,               -- as the terminal's own clock said
    kind TEXT NOT NULL CHECK (kind = 'pass' OR kind = 'link' OR kind = 'code' OR kind = 'name'
        OR kind = 'list' OR kind = 'other' OR kind = 'undo' OR kind = 'walk_in'),
    read_hash BLOB,                  -- SHA-256 of what was read, when it is not ours
    reservation_id TEXT REFERENCES reservation (id),
    result TEXT NOT NULL,
    admitted INTEGER NOT NULL,       -- people let in by this scan; negative for an undo
    moved INTEGER NOT NULL DEFAULT 0,  -- people who came back in; negative: who went out
    reason TEXT,                     -- of an override or an undo
    undoes INTEGER,                  -- seq of the check-in that this undo took back
    staff_id TEXT,                   -- who did it from the portal; null at a terminal
    happened_at INTEGER,             -- out of the box's reach: device_at by the box's clock
    verdict TEXT NOT NULL            -- JSON, answered again when the scanId comes again
) STRICT;
CREATE UNIQUE INDEX scan_log_once ON scan_log (terminal_id, scan_id);
CREATE UNIQUE INDEX scan_log_undo ON scan_log (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX scan_log_reservation ON scan_log (reservation_id, seq);
CREATE INDEX scan_log_at ON scan_log (at);
CREATE INDEX scan_log_without_table ON scan_log (at)
    WHERE reservation_id IS NULL AND admitted + moved != 0;

-- What doors out of each other's reach let in, and the box would not have.
CREATE TABLE door_conflict (
    id TEXT PRIMARY KEY,
    scan_seq INTEGER NOT NULL UNIQUE REFERENCES scan_log (seq),
    other_seq INTEGER REFERENCES scan_log (seq),  -- the first admission of the party, if any
    reservation_id TEXT REFERENCES reservation (id),  -- null: nobody knows whom
    kind TEXT NOT NULL CHECK (kind IN ('admitted_twice', 'admitted_anyway')),
    despite TEXT NOT NULL,           -- the verdict that the box would have given
    arrived INTEGER NOT NULL,        -- people in, once both were counted
    guests INTEGER NOT NULL,
    found_at INTEGER NOT NULL,
    acknowledged_at INTEGER,
    acknowledged_by TEXT             -- staff:<id> or terminal:<id>
) STRICT;
CREATE INDEX door_conflict_open ON door_conflict (found_at) WHERE acknowledged_at IS NULL;

CREATE TABLE staff (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL
        CHECK (role = 'owner' OR role = 'manager' OR role = 'host' OR role = 'door'),
    password TEXT,                   -- Argon2id; null until the first sign-in
    language TEXT NOT NULL DEFAULT 'fr'  -- of the portal's pages
        CHECK (language = 'fr' OR language = 'en' OR language = 'ar'),
    created_at INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT;
-- The name is what a person signs in with.
CREATE UNIQUE INDEX staff_name ON staff (name COLLATE NOCASE) WHERE disabled_at IS NULL;

-- One row: the newest instant that was believed. A clock that is far from it may be wrong.
CREATE TABLE heartbeat (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
) STRICT;

-- A signed-in browser. It ends 12 hours after its last use, or 7 days after its first.
CREATE TABLE session (
    hash BLOB PRIMARY KEY,           -- SHA-256 of the cookie's 256 bits
    id TEXT NOT NULL UNIQUE,         -- names it in lists and opens nothing
    staff_id TEXT NOT NULL REFERENCES staff (id),
    device TEXT NOT NULL,            -- browser and system, as their words say
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL         -- to the minute
) STRICT;
CREATE INDEX session_staff ON session (staff_id);

-- Wrong passwords in a row, for each account and device; a browser in which that person has
-- signed in before has a row of its own, so that strangers cannot lock its owner out.
CREATE TABLE staff_sign_in_failure (
    account BLOB NOT NULL,           -- SHA-256 of the name that was typed
    device BLOB NOT NULL,            -- SHA-256 of the device's cookie; empty for strangers
    wrong INTEGER NOT NULL,
    at INTEGER NOT NULL,             -- the latest
    PRIMARY KEY (account, device)
) STRICT, WITHOUT ROWID;

-- A browser in which somebody has signed in.
CREATE TABLE staff_known_device (
    hash BLOB NOT NULL,              -- SHA-256 of its cookie
    staff_id TEXT NOT NULL REFERENCES staff (id),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (hash, staff_id)
) STRICT, WITHOUT ROWID;

-- What an authenticator app shows codes by. Offered first; in force once a code was right.
CREATE TABLE two_factor (
    staff_id TEXT PRIMARY KEY REFERENCES staff (id),
    secret BLOB NOT NULL,            -- 160 bits, wrapped
    offered_at INTEGER NOT NULL,
    since INTEGER                    -- in force since then; null while only offered
) STRICT, WITHOUT ROWID;

-- A code that was taken, by its step of 30 seconds: none is taken twice, wherever the clock goes.
CREATE TABLE staff_spent_step (
    staff_id TEXT NOT NULL REFERENCES staff (id),
    step INTEGER NOT NULL,
    PRIMARY KEY (staff_id, step)
) STRICT, WITHOUT ROWID;

-- Recovery codes that were not used yet.
CREATE TABLE staff_recovery_code (
    staff_id TEXT NOT NULL REFERENCES staff (id),
    hash BLOB NOT NULL,              -- SHA-256
    PRIMARY KEY (staff_id, hash)
) STRICT, WITHOUT ROWID;

-- Somebody whose password was right is asked for the code, for five minutes.
CREATE TABLE staff_asked_code (
    hash BLOB PRIMARY KEY,           -- SHA-256 of the form's secret
    staff_id TEXT NOT NULL REFERENCES staff (id),
    device BLOB NOT NULL,            -- as in staff_sign_in_failure
    expires_at INTEGER NOT NULL,
    -- 1: the next code is among the wrong tries already.
    is_counted INTEGER NOT NULL CHECK (is_counted IN (0, 1))
) STRICT, WITHOUT ROWID;

-- A one-time sign-in link.
CREATE TABLE staff_invitation (
    hash BLOB PRIMARY KEY,           -- SHA-256 of the link's secret
    staff_id TEXT NOT NULL REFERENCES staff (id),
    expires_at INTEGER NOT NULL,
    used_at INTEGER
) STRICT;

-- Emails to guests: kept until the mail server took them. In the test environment the
-- outbox is the mailbox: nothing leaves it.
CREATE TABLE email (
    id TEXT PRIMARY KEY,
    reservation_id TEXT NOT NULL REFERENCES reservation (id),
    kind TEXT NOT NULL CHECK (kind = 'confirmation' OR kind = 'requested'
        OR kind = 'payment_due' OR kind = 'payment_reminder' OR kind = 'accepted' OR kind = 'declined'
        OR kind = 'cancelled' OR kind = 'changed' OR kind = 'reminder'
        OR kind = 'house_request' OR kind = 'house_cancelled' OR kind = 'house_changed'
        OR kind = 'house_payment'),
    recipient TEXT,                  -- erased with the guest's contacts, as are the words
    words TEXT,                      -- a line from the venue
    language TEXT NOT NULL CHECK (language = 'fr' OR language = 'en' OR language = 'ar'),
    state TEXT NOT NULL
        CHECK (state = 'waiting' OR state = 'sent' OR state = 'failed' OR state = 'kept'),
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    sent_at INTEGER,
    trouble TEXT
) STRICT;
CREATE INDEX email_due ON email (due_at) WHERE state = 'waiting';
CREATE INDEX email_reservation ON email (reservation_id);

-- One row while a box that `serve` made from nothing is being set up, and after. A box that was
-- made from a venue file has none until an owner begins.
CREATE TABLE setup (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    -- 1: nothing but the setup page answers until there is an owner.
    closed INTEGER NOT NULL CHECK (closed IN (0, 1)),
    link_hash BLOB,                  -- SHA-256 of the one-time link's secret; null once used
    link_expires_at INTEGER,
    steps_hidden INTEGER NOT NULL DEFAULT 0 CHECK (steps_hidden IN (0, 1))
) STRICT;

-- Who did what to keys, doors, people and sessions. Rows are never changed.
CREATE TABLE audit_log (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,             -- staff:<id>, key:<id>, terminal:<id>, console, box, nobody
    what TEXT NOT NULL,              -- sign_in, key_issued, role_changed, …
    detail TEXT NOT NULL             -- JSON; no secret, no guest, and nothing that was mistyped
) STRICT;

-- A reservation that a guest keeps in a browser, once per browser ("my reservations").
CREATE TABLE claim (
    device_hash BLOB NOT NULL,       -- SHA-256 of the id in the browser's cookie
    reservation_id TEXT NOT NULL REFERENCES reservation (id),
    at INTEGER NOT NULL,
    PRIMARY KEY (device_hash, reservation_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX claim_reservation ON claim (reservation_id);

-- A guest has asked that what the box knows of them be erased (law 09-08).
CREATE TABLE erasure_request (
    reservation_id TEXT PRIMARY KEY REFERENCES reservation (id),
    at INTEGER NOT NULL,
    done_at INTEGER                  -- null while staff still have to see to it
) STRICT;
CREATE INDEX erasure_request_open ON erasure_request (at) WHERE done_at IS NULL;

-- Whose guests were erased on demand. Also in erasures.jsonl, which no restore brings back to an
-- earlier state: whoever is in that file and not here has come back with a backup.
CREATE TABLE erasure (
    reservation_id TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Addresses that want no reminders.
CREATE TABLE no_reminders (
    address_hash BLOB PRIMARY KEY,   -- SHA-256 of the address in lower case
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row while a mirror is configured: how far it is (appliance/mirror).
CREATE TABLE mirror (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    token TEXT NOT NULL,             -- names the state of the mirror, there as here
    carried INTEGER NOT NULL,        -- the newest change that was carried
    copying TEXT NOT NULL,           -- while everything is copied: the table, else empty
    copied_to TEXT NOT NULL DEFAULT '',  -- the last id of it that was copied
    copied INTEGER NOT NULL DEFAULT 0,   -- rows so far
    carried_at INTEGER,
    trouble TEXT NOT NULL DEFAULT '',    -- what keeps it from being filled
    trouble_since INTEGER
) STRICT;

-- Rows that were changed, in their order; triggers write them while a mirror is configured.
CREATE TABLE mirror_change (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,              -- the table, by its name in the mirror
    row_id ANY NOT NULL
) STRICT;
