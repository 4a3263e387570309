"""Translation of other retry libraries to retrykit, exactly or not at all.

Usages of backoff, tenacity, stamina, retrying and urllib3 become usages of retrykit,
with the same calls, delays, errors, results and hooks. What cannot be translated
exactly is left as it is, under a comment with the reason. The files are read, and never
imported.

>>> text = '''
... import backoff
...
... @backoff.on_exception(backoff.expo, OSError, max_tries=5)
... def fetch(): ...
... '''
>>> print(migrate_text(text).after.strip())
from retrykit import retry
from retrykit.schedules import exponential
<BLANKLINE>
@retry(on=OSError, max_attempts=5, schedule=exponential(1).full_jitter())
def fetch(): ...
"""

from retrykit._internal.extras import needs

with needs("migrate"):
    from retrykit.migrate._files import (
        FileMigration,
        Problem,
        Report,
        migrate_paths,
        write_file,
    )
    from retrykit.migrate._findings import Migration, Usage
    from retrykit.migrate._migration import migrate_text
    from retrykit.migrate._source import Surroundings

__all__ = ["FileMigration", "Migration", "Problem", "Report", "Surroundings", "Usage"]
__all__ += ["migrate_paths", "migrate_text", "write_file"]
