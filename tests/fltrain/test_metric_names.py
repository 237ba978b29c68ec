"""Names of metrics: as they are asked for, as a history has them, and as a line shows them."""

import pytest

from fltrain.runs import metric_names
from fltrain.runs.metric_names import find_metric
from niidpart import UsageError

ROUND = {
    "round": 1,
    "lr": 0.1,
    "train_loss": 1.0,
    "test_accuracy": 0.5,
    "test_loss": 0.7,
    "test_macro_f1": 0.4,
    "test_brier": 0.3,
    "test_class_accuracy": [0.1, None, 0.9],
    "party_test_macro_f1": [0.1, 0.2],
    "party_test_macro_f1_mean": 0.15,
    "party_test_macro_f1_worst": 0.1,
}
HISTORIES = [[{"round": 1}], [ROUND]]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("macro-f1", "test_macro_f1"),
        ("macro_f1", "test_macro_f1"),
        ("test_macro_f1", "test_macro_f1"),
        ("accuracy", "test_accuracy"),
        ("loss", "test_loss"),
        ("train-loss", "train_loss"),
        ("lr", "lr"),
        ("mine.py:brier", "test_brier"),
        ("party-test-macro-f1-worst", "party_test_macro_f1_worst"),
    ],
)
def test_a_metric_is_found_by_the_name_it_was_asked_for_and_by_its_own(asked, name):
    assert find_metric(asked, HISTORIES) == name


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("mcro-f1", "no run has the metric 'mcro-f1'; did you mean 'test_macro_f1'?"),
        ("xyzzy", "no run has the metric 'xyzzy'; there are: lr, train_loss, test_accuracy"),
        ("xyzzy", "party_test_macro_f1_{mean,worst}"),
        ("class-accuracy", "test_class_accuracy has several values, and one is needed"),
        ("party_test_macro_f1", "has a value for each party; write one of _mean, _worst behind it"),
    ],
)
def test_a_name_that_is_no_number_is_answered_with_those_that_there_are(asked, said):
    with pytest.raises(UsageError) as caught:
        find_metric(asked, HISTORIES)
    assert said in str(caught.value)


def test_what_was_asked_for_is_told_from_what_is_always_there():
    asked = ["test_macro_f1", "test_brier", "test_class_accuracy"]
    assert metric_names.list_asked(ROUND) == asked
    assert metric_names.list_asked_numbers(HISTORIES) == asked[:2]
    assert [metric_names.shorten_name(name) for name in asked] == [
        "macro-f1",
        "brier",
        "class-accuracy",
    ]
    assert metric_names.shorten_name("test_accuracy") == "test_accuracy"


def test_values_have_digits_that_can_be_compared():
    shown = [("test_balanced_accuracy", 0.5), ("test_auc", 1 / 3), ("bytes_up", 1_200_800)]
    assert [metric_names.format_value(*one) for one in shown] == ["50.00", "0.3333", "1.2008e+06"]
