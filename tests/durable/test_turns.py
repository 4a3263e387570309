"""Turns of attempts whose worker was killed before."""

import pytest

from retrykit.durable._turns import draw_turn_delay, take_turn


def test_a_turn_is_taken_by_one_process_of_a_worker_at_a_time():
    with take_turn("one") as first, take_turn("one") as second, take_turn("two") as two:
        assert (first, second, two) == (True, False, True)
    with take_turn("one") as again:
        assert again


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_turn_is_free_if_it_cannot_be_stored(tmp_path, folder, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / folder))
    with take_turn("one") as first, take_turn("one") as second:
        assert (first, second) == (True, True)


def test_attempts_try_again_to_get_their_turn_at_different_times():
    delays = [draw_turn_delay() for _ in range(20)]
    assert len({*delays}) == 20
    assert all(5 <= delay <= 15 for delay in delays)
