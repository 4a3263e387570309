"""What an operator sees of jobs on every engine, from a process without a worker."""

import pytest

from tests.engines.job_commands import replay, transcript

pytestmark = pytest.mark.engines


def test_commands_print_the_transcript_of_the_engine(engine):
    """``python -m tests.engines.job_commands`` rewrites the transcripts."""
    assert replay(engine) == transcript(engine).read_text("utf-8")
