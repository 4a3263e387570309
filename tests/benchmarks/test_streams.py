"""The benchmark of streams: what it counts, in each way that is installed."""

from benchmarks.streams import ITEMS, WAYS, Reading, nanoseconds, read_all, ways

STREAMS = 60
BY_NAME = {way.name: way for way in WAYS}


def reading_of(name):
    return read_all(BY_NAME[name].sync(), STREAMS)


def test_a_source_breaks_at_the_same_items_in_each_way(quiet):
    assert reading_of("not retried") == reading_of("not retried")
    again = reading_of('retrykit, "restart"')
    without = reading_of("retrykit, restart(skip_seen=True)")
    assert (again.requests, again.sent) == (without.requests, without.sent)
    assert (again.lost, again.errors) == (without.lost, without.errors)
    assert again.twice > without.twice == 0


def test_what_is_sent_is_got_once_got_again_or_left_out(quiet):
    bare = reading_of("not retried")
    assert bare.requests == STREAMS
    assert bare.sent + bare.lost == STREAMS * ITEMS
    again = reading_of('retrykit, "restart"')
    assert again.sent == STREAMS * ITEMS - again.lost + again.twice


def test_a_resumed_stream_gets_each_item_once(quiet):
    found = reading_of("retrykit, resume(function)")
    assert found == Reading(requests=found.requests, sent=STREAMS * ITEMS)
    assert found.requests > STREAMS


def test_each_way_that_is_installed_reads_both_kinds_of_streams(quiet):
    names = {way.name for way in ways()}
    assert names >= {name for name in BY_NAME if "retr" in name}
    found = nanoseconds(10, 1)
    assert {*found} == names
    assert all(0 <= time < float("inf") for each in found.values() for time in each)
