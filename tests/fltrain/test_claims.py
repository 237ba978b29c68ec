"""Claims of a study: one worker has a cell, and what a late one writes is refused."""

import json
import os
import threading

import pytest

from fltrain.disk.plain_folder import PlainFolder
from fltrain.studies import beats, new_files
from fltrain.studies.beats import Beating, Watch
from fltrain.studies.claims import ClaimBook, ClaimLost
from fltrain.studies.new_files import create_once
from fltrain.studies.places import Places


@pytest.fixture
def book(tmp_path):
    (tmp_path / "claims").mkdir()
    return ClaimBook(tmp_path / "claims")


@pytest.fixture
def places(tmp_path):
    return Places(work=tmp_path / "work", cells=tmp_path / "cells")


def begin_run(places, cell, number):
    places.prepare(cell, number)
    run = places.find_run(cell, number)
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.json").write_text("{}")
    (run / "metrics.jsonl").write_text("1\n")
    (run / "checkpoints" / "round-1").write_text("weights")
    return run


def test_of_many_that_claim_one_number_one_has_it(book):
    barrier, won = threading.Barrier(16), []

    def claim(who):
        barrier.wait()
        if book.claim("a", 1, {"worker": str(who)}):
            won.append(who)

    threads = [threading.Thread(target=claim, args=(who,)) for who in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert book.read_claim("a", 1) == {"worker": str(won[0])}


def test_a_disk_without_links_has_one_winner_too(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(next(iter(new_files._NO_LINKS)), "no links")

    monkeypatch.setattr(os, "link", refuse)
    assert create_once(tmp_path / "a", b"first")
    assert not create_once(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"first"


def test_a_cell_is_open_until_it_is_claimed_and_after_it_was_stopped(book):
    assert book.list_standings(["a"])["a"].is_open
    book.claim("a", 1, {"worker": "w"})
    assert not book.list_standings(["a"])["a"].is_open
    book.end("a", 1, {"end": "stopped"})
    standing = book.list_standings(["a"])["a"]
    assert (standing.is_open, standing.number) == (True, 1)


def test_a_failed_cell_is_open_once_it_may_be_tried_again(book):
    book.claim("a", 1, {})
    book.end("a", 1, {"end": "failed", "cause": "no memory"})
    standing = book.list_standings(["a"])["a"]
    assert standing.has_failed
    assert not standing.is_open
    book.allow_retry("a", 1)
    assert book.list_standings(["a"])["a"].is_open
    # the next claim may fail again, and is not retried by the old word
    book.claim("a", 2, {})
    book.end("a", 2, {"end": "failed"})
    assert not book.list_standings(["a"])["a"].is_open


def test_a_torn_claim_is_nobodys(book):
    (book.path / "a.000001.claim").write_text('{"worker": "w')
    assert book.read_claim("a", 1) == {}
    assert book.list_standings(["a"])["a"].number == 1


def test_a_late_worker_can_neither_write_nor_finish(places):
    run = begin_run(places, "a", 1)
    assert places.prepare("a", 2)
    with pytest.raises(NotADirectoryError):
        PlainFolder(run).append("metrics.jsonl", b"late\n", is_synced=True)
    with pytest.raises(NotADirectoryError):
        PlainFolder(run).write("config.json", b"late")
    with pytest.raises(NotADirectoryError):
        PlainFolder(run).enter("checkpoints").write("round-2", b"late")
    with pytest.raises(ClaimLost):
        places.finish("a", 1)
    assert not places.is_done("a")
    taken = places.find_run("a", 2)
    assert (taken / "metrics.jsonl").read_text() == "1\n"
    places.finish("a", 2)
    assert (places.find_cell("a") / "checkpoints" / "round-1").read_text() == "weights"


def test_a_file_that_a_late_worker_has_open_is_not_the_newcomers(places):
    run = begin_run(places, "a", 1)
    with open(run / "metrics.jsonl", "a") as log:
        places.prepare("a", 2)
        log.write("late\n")
    assert (places.find_run("a", 2) / "metrics.jsonl").read_text() == "1\n"


def test_who_finishes_before_its_place_is_closed_counts_and_the_newcomer_is_told(places):
    begin_run(places, "a", 1)
    places.finish("a", 1)
    with pytest.raises(ClaimLost):
        places.prepare("a", 2)
    assert places.is_done("a")


def test_a_second_finish_of_a_cell_is_refused(places):
    begin_run(places, "a", 1)
    places.finish("a", 1)
    again = places.work / "a.7" / "run"
    again.mkdir(parents=True)
    (again / "config.json").write_text("{}")
    with pytest.raises(ClaimLost):
        places.finish("a", 7)


def test_what_a_killed_newcomer_left_is_found_by_the_next(places):
    begin_run(places, "a", 1)
    places._close("a", 1)  # killed before anything was brought over
    assert places.prepare("a", 3)
    assert (places.find_run("a", 3) / "metrics.jsonl").read_text() == "1\n"


def test_a_process_that_is_gone_is_dead_at_once_and_a_living_one_is_not(tmp_path):
    watch = Watch(tmp_path)
    with Beating(tmp_path, "me", seconds=60):
        assert watch.judge("me") == "alive"
        last = json.loads((tmp_path / "me.json").read_text())
        (tmp_path / "gone.json").write_text(json.dumps(last | {"start": "1"}))
    assert watch.judge("gone") == "dead"


def test_a_worker_elsewhere_is_dead_when_its_count_stands_still(tmp_path, monkeypatch):
    watch, now = Watch(tmp_path, lease=60), [0.0]
    monkeypatch.setattr(beats.time, "monotonic", lambda: now[0])

    def judge(beat, after):
        (tmp_path / "far.json").write_text(json.dumps({"beat": beat, "home": "another machine"}))
        now[0] += after
        return watch.judge("far")

    assert judge(1, 0) == "unknown"
    assert judge(2, 50) == "alive"
    assert judge(2, 50) == "alive"
    assert judge(2, 11) == "dead"
    assert judge(3, 1) == "alive"  # it was paused, and has come back


def test_a_worker_that_was_never_heard_is_dead_after_the_lease(tmp_path, monkeypatch):
    watch, now = Watch(tmp_path, lease=60), [0.0]
    monkeypatch.setattr(beats.time, "monotonic", lambda: now[0])
    assert watch.judge("") == "unknown"
    now[0] = 61.0
    assert watch.judge("") == "dead"
