-- What retrykit keeps beside the tables of Procrastinate. It may be run again.

-- Several processes may run it at the same time.
SELECT pg_advisory_xact_lock(hashtext('retrykit_jobs'));

CREATE TABLE IF NOT EXISTS retrykit_jobs (
    -- A history goes when its job is removed.
    place bigint PRIMARY KEY REFERENCES procrastinate_jobs (id) ON DELETE CASCADE,
    -- Not jsonb, which cannot hold every text that an error may say.
    envelope json,
    result json,
    -- Why the job is dead: it is attempted no more.
    why json
);

-- A job is started once under its id, and queued again once after each death.
CREATE UNIQUE INDEX IF NOT EXISTS retrykit_jobs_started ON procrastinate_jobs (
    (args -> 'retrykit' -> 'envelope' ->> 'job'),
    (args -> 'retrykit' -> 'envelope' ->> 'run')
) WHERE args -> 'retrykit' IS NOT NULL;
