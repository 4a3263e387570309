-- The table of retrykit beside those of Procrastinate. Safe to repeat.

-- Several processes may run it at the same time.
SELECT pg_advisory_xact_lock(hashtext('retrykit_jobs'));

CREATE TABLE IF NOT EXISTS retrykit_jobs (
    -- The id of the job's row; its state is deleted with it.
    row_id bigint PRIMARY KEY REFERENCES procrastinate_jobs (id) ON DELETE CASCADE,
    -- Not jsonb, which cannot store all characters of error messages.
    envelope json,
    result json,
    -- Why the job is dead.
    reason json
);

-- Added later: how often the attempt that follows was begun and did not end.
ALTER TABLE retrykit_jobs ADD COLUMN IF NOT EXISTS killed integer NOT NULL DEFAULT 0;
-- Added later: whether a repetition of that attempt has begun.
ALTER TABLE retrykit_jobs ADD COLUMN IF NOT EXISTS begun boolean NOT NULL DEFAULT false;

-- A job is started once with its id, and requeued once after each death.
CREATE UNIQUE INDEX IF NOT EXISTS retrykit_jobs_started ON procrastinate_jobs (
    (args -> 'retrykit' -> 'envelope' ->> 'job'),
    (args -> 'retrykit' -> 'envelope' ->> 'run')
) WHERE args -> 'retrykit' IS NOT NULL;
