"""Durable jobs on Procrastinate, in PostgreSQL."""

from retrykit._internal.extras import needs

with needs("procrastinate"):
    from retrykit.integrations.procrastinate._job_control import (
        ajobs,
        akill,
        arequeue,
        aretry_at,
        astatus,
        job_engine,
        jobs,
        kill,
        requeue,
        retry_at,
        status,
    )
    from retrykit.integrations.procrastinate._serving import serve
    from retrykit.integrations.procrastinate._settings import (
        CAPABILITIES,
        RESCUE,
        prepare,
        rescue,
    )
    from retrykit.integrations.procrastinate._store import (
        aapply_schema,
        apply_schema,
        schema,
    )
    from retrykit.integrations.procrastinate._tasks import DurableTask, task

__all__ = ["CAPABILITIES", "RESCUE", "DurableTask", "aapply_schema", "ajobs"]
__all__ += ["akill", "apply_schema", "arequeue", "aretry_at", "astatus"]
__all__ += ["job_engine", "jobs", "kill", "prepare", "requeue", "rescue"]
__all__ += ["retry_at", "schema"]
__all__ += ["serve", "status", "task"]
