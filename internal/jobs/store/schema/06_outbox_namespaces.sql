-- By these, the namespaces of a target's messages take turns. Messages of before have NULL, and
-- share a turn.
ALTER TABLE outbox ADD COLUMN IF NOT EXISTS namespace $KEY;
CREATE INDEX IF NOT EXISTS outbox_namespace ON outbox (target, dead, namespace, due, log, seq);
