-- Each of these was written with every event or attempt, and only the night's work reads by them.
DROP INDEX event_type;
DROP INDEX event_at;
DROP INDEX delivery_finished;
DROP INDEX delivery_log;
DROP INDEX attempt_at;
