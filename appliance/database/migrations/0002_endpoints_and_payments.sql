-- Whose key registered an endpoint; null: the venue's staff, or nobody knows any more.
ALTER TABLE endpoint ADD COLUMN lineage TEXT;
-- 1: of reservations, it is told the externalRef of that line alone.
ALTER TABLE endpoint ADD COLUMN own_refs INTEGER NOT NULL DEFAULT 0 CHECK (own_refs IN (0, 1));

UPDATE endpoint SET lineage = (
    SELECT k.lineage FROM security_log s JOIN api_key k ON s.actor = 'key:' || k.id
    WHERE s.what = 'endpoint_registered' AND json_extract(s.detail, '$.endpoint') = endpoint.id
);

-- A voided payment counts no more; who voided it and why is in history.
ALTER TABLE payment ADD COLUMN voided_at INTEGER;
