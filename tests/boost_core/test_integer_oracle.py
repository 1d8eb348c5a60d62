"""The engine equals the integer oracle to the bit, round by round."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from boost_core import gain_matrix
from tests import reference
from tests.builders import (
    CONFIGURATIONS,
    bin_table,
    config_for,
    nested_tree,
    reference_options,
    scores_by_round,
    small_tables,
    train_alone,
)

ROUNDS = 20


examples = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.generate],  # shrinking takes minutes, and the examples are small already
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def check_against_the_oracle(data: st.DataObject, configuration: str) -> None:
    options = reference_options(configuration)
    stump = configuration.endswith("stump")
    table = data.draw(small_tables(options.binary, absent=options.init_weights != "balanced"))
    max_leaves = 2 if stump else data.draw(st.sampled_from([8, 7, 6, 5, 4, 3, 2]))
    options = replace(options, max_leaves=max_leaves)
    binned = bin_table(table)

    expected = reference.boost(binned.grid(), table.labels.tolist(), table.n_classes, options, ROUNDS)
    result = train_alone(binned, config_for(options, ROUNDS, stump))

    forest, records = result.forest, result.records
    assert result.stop_reason == expected.stop_reason
    assert forest.multiplier.tolist() == [r.alpha for r in expected.rounds]
    for number, (record, wanted) in enumerate(zip(records, expected.rounds, strict=True)):
        assert nested_tree(forest, number) == wanted.tree
        assert record.edge == wanted.edge
        assert record.alpha == wanted.alpha * reference.UNIT
        assert record.n_leaves == wanted.n_leaves
        assert record.train_error == wanted.wrong / table.n_rows
        assert record.strict_train_error == wanted.strictly_wrong / table.n_rows
        assert record.ln_loss == pytest.approx(wanted.ln_loss, rel=1e-13, abs=1e-13)
    for scores, wanted in zip(scores_by_round(forest, table.X)[1:], expected.rounds, strict=True):
        assert scores.tolist() == [list(row) for row in wanted.scores]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@examples
@given(data=st.data())
def test_every_round_equals_the_oracle(configuration: str, data: st.DataObject):
    check_against_the_oracle(data, configuration)


@pytest.mark.parametrize("bits", [4, 10])
@pytest.mark.parametrize("configuration", ["adaboost factorised", "mh asymmetric factorised", "mh balanced free"])
@examples
@given(data=st.data())
def test_gains_of_few_bits_equal_the_oracle(
    monkeypatch: pytest.MonkeyPatch, configuration: str, bits: int, data: st.DataObject
):
    """What is rare with all bits is common with few: ties, gains that round to 0, edges of 1 with rows still wrong."""
    monkeypatch.setattr(gain_matrix, "GAIN_BITS", bits)
    monkeypatch.setattr(reference, "GAIN_BITS", bits)
    check_against_the_oracle(data, configuration)
