"""What a second processor does beside a deal changes nothing: the order of its rows, the digest."""

import contextlib
import threading
import time

import numpy as np
import pytest

import niidpart
from niidpart.making import beside, orders
from niidpart.making.derivation import deals_by_sizes
from niidpart.strategies import STRATEGIES

LABELS = np.arange(3000) ** 2 % 7
BY_SIZES = [name for name in STRATEGIES.names() if deals_by_sizes(STRATEGIES.find(name))]
SLOW = """
import time
import numpy as np
from niidpart.strategies import Deal

def {name}(class_sizes, n_parties, rng):
    time.sleep(0.5)
    n = int(class_sizes.sum())
    return Deal(np.array([0, 1]), np.array([n // 3, n - n // 3]), {{}}, by_class={by_class})
"""


@pytest.fixture
def drawn(monkeypatch):
    """The threads in which orders by class were drawn, which all begin at once."""
    threads = []
    plain = orders.draw_order

    def draw(labels, rng, *, by_class):
        threads.append((threading.current_thread() is threading.main_thread(), by_class))
        return plain(labels, rng, by_class=by_class)

    monkeypatch.setattr(orders, "draw_order", draw)
    monkeypatch.setattr(beside, "_LONG", 0)
    monkeypatch.setattr(orders, "_PATIENCE", 0)
    monkeypatch.setattr(beside, "_count_processors", lambda: 2)
    return threads


@pytest.mark.parametrize("name", BY_SIZES)
def test_an_early_order_changes_no_split(name, request):
    alone = niidpart.make(LABELS, name, n_parties=6).digest
    drawn = request.getfixturevalue("drawn")
    assert niidpart.make(LABELS, name, n_parties=6).digest == alone
    assert len(drawn) >= 1


@pytest.mark.parametrize("by_class", [True, False])
def test_the_order_of_a_slow_strategy_is_drawn_beside_it_and_serves_a_deal_by_class(
    by_class, drawn, tmp_path
):
    path = tmp_path / "mine.py"
    path.write_text(SLOW.format(name="slow", by_class=by_class))
    niidpart.make(LABELS, f"{path}:slow", n_parties=2)
    early = [(False, True)]
    assert drawn == (early if by_class else [*early, (True, False)])


def test_a_quick_strategy_has_nothing_drawn_beside_it(drawn, monkeypatch):
    monkeypatch.setattr(orders, "_PATIENCE", 600)
    start = time.monotonic()
    niidpart.make(LABELS, "dir", n_parties=6)
    assert drawn == [(True, True)]
    assert time.monotonic() - start < 600


def test_without_a_thread_or_its_memory_the_order_is_drawn_afterwards(drawn, monkeypatch):
    wanted = niidpart.make(LABELS, "dir", n_parties=6).digest

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert niidpart.make(LABELS, "dir", n_parties=6).digest == wanted
    counting = orders.draw_order

    def draw(labels, rng, *, by_class):
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError
        return counting(labels, rng, by_class=by_class)

    monkeypatch.setattr(orders, "draw_order", draw)
    assert niidpart.make(LABELS, "dir", n_parties=6).digest == wanted


def test_the_thread_has_ended_where_the_strategy_fails(drawn, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def bad(class_sizes, n_parties, rng):\n    raise KeyError('mine')\n")
    with pytest.raises(KeyError):
        niidpart.make(LABELS, f"{path}:bad", n_parties=2)
    assert all(thread.name != "order" for thread in threading.enumerate())


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("fault", [None, MemoryError, KeyError])
def test_work_beside_a_block_has_ended_with_it(fault):
    done = []

    def work():
        if fault is MemoryError:
            raise MemoryError  # whoever needs what it makes meets it again
        time.sleep(0.01)
        done.append(threading.current_thread() is threading.main_thread())

    with contextlib.suppress(KeyError), beside.do_beside(work, 1, "digest"):
        if fault is KeyError:
            raise KeyError
    assert done == ([] if fault is MemoryError else [False])
