"""Metrics by name: against scikit-learn and by hand, at the server and at the parties."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fltrain
from fltrain.engine.measures import describe_values
from fltrain.metrics import METRICS, resolve_metrics

SIZE = {"rounds": 1, "local_steps": 3, "device": "cpu", "threads": 1, "lr": 0.1}
COMPUTE = {name: METRICS.find(name) for name in METRICS.names()}


def draw_answers(seed, n, K, is_coarse):
    """Logits [n, K], of few values where ties are wanted, and classes [n]."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, K))
    if is_coarse:
        logits = np.round(logits)
    return torch.tensor(logits), torch.tensor(rng.integers(0, K, n))


answers = st.builds(
    draw_answers,
    st.integers(0, 10**6),
    st.integers(2, 60),
    st.integers(2, 6),
    st.booleans(),
)


@given(answers)
def test_they_are_those_of_scikit_learn(drawn):
    metrics = pytest.importorskip("sklearn.metrics")
    logits, y = drawn
    answer, scores = logits.argmax(1), torch.softmax(logits, 1)
    recall = metrics.recall_score(y, answer, labels=y.unique(), average="macro")
    assert COMPUTE["balanced-accuracy"](logits, y) == pytest.approx(recall)
    assert COMPUTE["macro-f1"](logits, y) == pytest.approx(
        metrics.f1_score(y, answer, average="macro")
    )
    entropy = metrics.log_loss(y, scores, labels=range(logits.shape[1]))
    assert COMPUTE["cross-entropy"](logits, y) == pytest.approx(entropy)
    areas = [
        metrics.roc_auc_score(y == k, scores[:, k])
        for k in range(logits.shape[1])
        if 0 < int((y == k).sum()) < len(y)
    ]
    found = COMPUTE["auc"](logits, y)
    assert found == (pytest.approx(np.mean(areas)) if areas else None)


def test_accuracy_of_each_class_by_hand():
    logits = torch.eye(3)[torch.tensor([0, 0, 1, 1])]
    assert COMPUTE["class-accuracy"](logits, torch.tensor([0, 1, 1, 1])) == [1.0, 2 / 3, None]


def test_calibration_by_hand():
    # two bins: confidence 0.6, of which one in two is right, and 0.9, all right
    shares = torch.tensor([[0.6, 0.4], [0.6, 0.4], [0.1, 0.9]], dtype=torch.float64)
    found = COMPUTE["calibration"](shares.log(), torch.tensor([0, 1, 1]))
    assert found == pytest.approx(2 / 3 * abs(0.5 - 0.6) + 1 / 3 * abs(1 - 0.9))


def test_what_describes_the_parties_by_hand():
    said = describe_values("x", [0.5, None, 1.0, 0.0], [1, 0, 2, 1])
    assert said["x"] == [0.5, None, 1.0, 0.0]
    assert said["x_mean"] == 0.5
    assert said["x_weighted"] == 0.625
    assert said["x_worst"] == 0.0
    assert said["x_std"] == pytest.approx(math.sqrt(1 / 6))
    # the mean difference of two values, each with each, over twice the mean
    assert said["x_gini"] == pytest.approx((4 * 0.5 + 2 * 1.0) / 9 / (2 * 0.5))
    loss = describe_values("x", [0.5, 1.0, 0.0], [1, 1, 1], is_loss=True)
    assert (loss["x_worst"], loss["x_p10"]) == (1.0, pytest.approx(0.9))
    assert describe_values("x", [None], [0]) == {"x": [None]}
    assert describe_values("x", [0.0, 0.0], [1, 1])["x_gini"] == 0


def brier(logits, y):
    return float(((torch.softmax(logits, 1) - torch.eye(logits.shape[1])[y]) ** 2).sum(1).mean())


@pytest.mark.parametrize("algorithm", ["fedavg", "solo", "ditto"])
def test_a_run_has_them_at_the_server_and_at_the_parties(table, table_split, algorithm):
    asked = [*METRICS.names(), brier]
    run = fltrain.run(table_split, table, algorithm=algorithm, metrics=asked, **SIZE)
    plain = fltrain.run(table_split, table, algorithm=algorithm, **SIZE)
    found, before = run.history[-1], plain.history[-1]
    assert {name: found[name] for name in before} == before
    assert len(found["test_class_accuracy"]) == 3
    for metric in resolve_metrics([name for name in asked if name != "class-accuracy"]):
        each = found[f"party_test_{metric.name}"]
        known = [value for value in each if value is not None]
        assert len(each) == 5
        worst = max(known) if metric.is_loss else min(known)
        assert found[f"party_test_{metric.name}_worst"] == worst
        assert found[f"party_val_{metric.name}_mean"] is not None
    if algorithm == "ditto":
        assert "personal_test_macro_f1" in found
    # by hand, from what the first party is served
    model = run.model(0 if algorithm == "solo" else None)
    rows = table_split.test.party(0)
    with torch.no_grad():
        logits = model(torch.from_numpy(table.features(rows)).float())
    y = torch.from_numpy(table.labels[rows]).long()
    assert found["party_test_brier"][0] == pytest.approx(brier(logits, y), rel=1e-5)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("accuracy", "accuracy is measured in any case"),
        ("macro-f2", "did you mean 'macro-f1'"),
        (["auc", "auc"], "asked for 2 times"),
        ([3], "a metric is 3; give auc"),
    ],
)
def test_a_wrong_metric_is_refused_before_the_first_round(table, table_split, asked, said):
    with pytest.raises(fltrain.UsageError, match=said):
        fltrain.run(table_split, table, metrics=asked, **SIZE)


def never(logits, y):
    return float("nan")


def accuracy(logits, y):
    return 1.0


def test_a_value_that_is_not_finite_is_none(tmp_path, table, table_split):
    said = "the metric never gave no finite number for the test set in any round"
    with pytest.warns(UserWarning, match=said) as warned:
        run = fltrain.run(table_split, table, metrics=never, out=tmp_path / "run", **SIZE)
    assert len(warned) == 1
    assert run.history[-1]["test_never"] is None
    assert run.history[-1]["party_test_never"] == [None] * 5


def test_a_name_that_is_there_anyway_is_refused(table, table_split):
    with pytest.raises(fltrain.UsageError, match="a metric is called accuracy"):
        fltrain.run(table_split, table, metrics=accuracy, **SIZE)
