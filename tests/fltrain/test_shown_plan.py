"""What of a plan's paths stands on a page."""

import pytest

from fltrain.report.shown_plan import shorten_paths


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('data_root = "/home/ana/my data/adult"', 'data_root = "adult"'),
        ("algorithms = ['~/mine.py:clipped']", "algorithms = ['mine.py:clipped']"),
        ('{"data_root": "/a/b", "rounds": 3}', '{"data_root": "b", "rounds": 3}'),
        ("lr = 1  # as in /home/ana/notes.md, (/srv/x/y)", "lr = 1  # as in notes.md, (y)"),
        ("# ~/data has it", "# data has it"),
    ],
)
def test_of_an_absolute_path_the_last_part_stands(written, shown):
    assert shorten_paths(written) == shown


@pytest.mark.parametrize(
    "text",
    [
        'data_root = "data/adult"',
        'algorithms = ["own/mine.py:clipped"]',
        "# and/or, 1/2, https://example.org/a/b, a / b",
        'about = "sgd/adam"',
    ],
)
def test_all_else_stays_as_it_was_written(text):
    assert shorten_paths(text) == text
