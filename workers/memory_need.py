"""How much memory a job needs on each of its workers, before it starts.

    on each worker   what it needs whatever its rows are, and its share of what the rows need

Rows are spread evenly, so M workers need member_bytes + row_bytes / M each. Rows need most of it: bins, scores, and the
gains of a round. benchmarks/memory.py compares the estimate with what was measured.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from boost_core.algorithms.base import MaybeSparse, Problem
from boost_core.algorithms.multiclass_adaboost import SAMPLES_A_ROW
from boost_core.binning import SAMPLE_ROWS
from boost_core.bundles import CODE_BYTES, MOST_JOINT, ROOM_BYTES
from boost_core.catalogue import ALGORITHMS
from boost_core.common_bins import SAMPLED
from boost_core.config import TrainingConfig
from boost_core.gang_sums import worth_copies
from boost_core.intrinsics import width_for
from boost_core.sparse_gains import MOST_HOT
from boost_core.sparse_growth import TABLE_BYTES
from boost_core.team import Team
from workers.binner import BLOCK_BYTES
from workers.data_plan import DataPlan

# A process that has imported everything, compiled all its kernels and trained on 1,000 rows: 0.47 GB; 0.3 from a cache.
# Where a child compiles (kernel_maker.py) it and its waiting member take up to 0.56, before any of the 64 MB and more
# of cells is read: these rows and the blocks that they are read in cover the rest.
PROCESS_BYTES = 480_000_000
# While a block of columns is binned: the block itself, and what Arrow has decoded, some of which its allocator keeps.
BLOCKS = 2
SLOT_BYTES = 1 << 30  # of histograms at most (boost_core/growth.py)
# A touched pair of a sparse state: its class and score, and the old ones while they are replaced; its gain twice, where
# touched labels have gains; the same pair with 8 bytes a score, old and new, while rounds are taken back.
PAIR_BYTES, PAIR_GAIN_BYTES, PAIR_BACK_BYTES = 16, 16, 24
# A drawn example: entries of this round and of the last one, and either what it is drawn as or a copy that is searched.
EXAMPLE_BYTES = 40
ROW_BYTES = 20  # label, three row lists of a tree in a gang (alone it has one), leaf
SPARSE_ROW_BYTES = 88  # the same, mass of gains, and where its lists begin and end, in this round and in the last one
APART = {"independent_stumps"}  # weak learners of a part a column, each of which says each row's leaf


@dataclass(frozen=True)
class Need:
    """Bytes of a job. member_bytes: of each member; row_bytes: of all rows, to be shared by the members."""

    member_bytes: int
    row_bytes: int

    def on(self, members: int) -> int:
        """Bytes on each of so many workers."""
        return self.member_bytes + -(-self.row_bytes // members)

    def fewest(self, worker_bytes: int) -> int | None:
        """The fewest workers of so many bytes that it fits; None: not even an empty share does."""
        left = worker_bytes - self.member_bytes
        if left <= 0:
            return None
        return max(1, -(-self.row_bytes // left))


@dataclass(frozen=True)
class DataFacts:
    """What the estimate depends on. n_columns: of scores; sparse, touched_gains: see MaybeSparse; multi_label: rows
    have sets of n_classes labels."""

    n_train: int
    n_valid: int
    n_features: int
    n_classes: int
    n_columns: int
    sparse: bool
    touched_gains: bool
    multi_label: bool
    weighted: bool
    config: TrainingConfig


@lru_cache(maxsize=256)
def _state(name: str, weak_learner: str, n_classes: int, config: "_Hashed") -> tuple[int, bool, bool]:
    """Score columns, and what MaybeSparse says: the algorithm is asked, about no rows."""
    choice = config.config.algorithm
    with Team(1) as team:
        problem = Problem(
            np.empty(0, np.int32),
            np.ones(n_classes, np.int64),
            team,
            weak_learner=config.config.weak_learner,
            rounds=1,
            range_edges=np.zeros(1, np.int64),
        )
        algorithm = ALGORITHMS[name](problem, choice.parameters)
        if not isinstance(algorithm, MaybeSparse):
            return algorithm.n_columns, False, False
        return algorithm.n_columns, algorithm.sparse, algorithm.touched_gains


@dataclass(frozen=True, eq=False)
class _Hashed:
    """A configuration as a key: its parameters are mappings, which have no hash."""

    config: TrainingConfig

    def __hash__(self) -> int:
        return hash(repr(self.config))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self.config == other.config


def facts_of(plan: DataPlan, config: TrainingConfig) -> DataFacts:
    """The facts of a job whose data are planned."""
    n_classes = len(plan.classes)
    key = _Hashed(config)
    n_columns, sparse, touched_gains = (n_classes, False, False)
    if not plan.multi_label:
        n_columns, sparse, touched_gains = _state(config.algorithm.name, config.weak_learner.name, n_classes, key)
    weighted = plan.weight is not None or config.algorithm.parameters.get("class_weight") is not None
    return DataFacts(
        plan.n_train,
        plan.n_valid,
        len(plan.features),
        n_classes,
        n_columns,
        sparse,
        touched_gains,
        plan.multi_label,
        weighted,
        config,
    )


def estimate(facts: DataFacts) -> Need:
    """The bytes that a job needs."""
    train = facts.n_train * (_shared_row_bytes(facts) + _train_row_bytes(facts))
    valid = facts.n_valid * (_shared_row_bytes(facts) + _valid_row_bytes(facts))
    rows = train + valid + EXAMPLE_BYTES * _examples(facts) + _copied_bytes(facts)
    member = _block_bytes(facts) + _bundle_bytes(facts) + _histogram_bytes(facts) + _model_bytes(facts)
    return Need(PROCESS_BYTES + member, rows)


def _copied_bytes(facts: DataFacts) -> int:
    """Bins of a wide table that members of a gang hold besides their own rows' (boost_core/gang_sums.py), and a sample
    of them (boost_core/common_bins.py)."""
    n_bins = facts.n_features * (facts.config.max_bins + 1)
    shape = (facts.n_train, facts.n_features, n_bins, _padded(facts), _leaves(facts.config))
    cells = (facts.n_train + min(SAMPLED, facts.n_train)) * facts.n_features
    return cells if not facts.sparse and worth_copies(*shape) else 0


def _shared_row_bytes(facts: DataFacts) -> int:
    """Of a row of either table: bins, the label or the set of labels, copies, the number of a row that is left."""
    sets = facts.n_classes if facts.multi_label else 0
    return facts.n_features + sets + (16 if facts.weighted else 0) + _score_bytes(facts)


def _score_bytes(facts: DataFacts) -> int:
    if facts.sparse:
        return PAIR_BYTES * _touched(facts)
    return 4 * facts.n_columns


def _touched(facts: DataFacts) -> int:
    """Wrong classes that a row may have been answered: one a round at most."""
    return min(facts.config.rounds, facts.n_classes - 1)


def _resamples(facts: DataFacts) -> bool:
    return facts.config.algorithm.parameters.get("sampling") == "resample"


def _examples(facts: DataFacts) -> int:
    """Examples that a round draws and keeps in lists, over all rows."""
    if not (facts.sparse and _resamples(facts)):
        return 0
    return int(facts.config.algorithm.parameters["sample_rows"]) or SAMPLES_A_ROW * facts.n_train


def _train_row_bytes(facts: DataFacts) -> int:
    """Of a training row besides: the round's gains and lists, and the copies that some options make."""
    config = facts.config
    if facts.sparse:
        each = PAIR_GAIN_BYTES * facts.touched_gains + PAIR_BACK_BYTES * (config.stopping is not None)
        return SPARSE_ROW_BYTES + each * _touched(facts)
    gain_bytes = (8 if facts.weighted else 4) * _padded(facts)
    matrices = 2 if float(config.algorithm.parameters.get("row_fraction", 1.0)) < 1.0 else 1
    matrices += 2 * _resamples(facts)  # counts of drawn examples, of this round and of the last one
    matrices += config.weak_learner.name == "product"  # the products of gains and the other factors
    leaves = 4 * (facts.n_columns if config.weak_learner.name in APART else 1)
    back = 8 * facts.n_columns if config.stopping is not None else 0  # scores taken back to the best round
    return ROW_BYTES + gain_bytes * matrices + leaves + back


def _valid_row_bytes(facts: DataFacts) -> int:
    back = 8 * facts.n_columns if facts.config.stopping is not None and facts.config.calibration is not None else 0
    return 24 + back  # the label, a leaf, and the numbers of rows while they are read


def _padded(facts: DataFacts) -> int:
    """Gains of a row, with the count and what fills up the vectors."""
    return width_for(facts.n_columns + 1)


def _block_bytes(facts: DataFacts) -> int:
    """A block of raw columns: at least one column of the rows, but that is in the rows' bytes of a big job. Its sample
    as float64: of integers of 4 bytes, where they lie far apart, there are twice as many columns."""
    rows = facts.n_train + facts.n_valid
    sample = min(8 * SAMPLE_ROWS, 8 * rows) * max(1, min(facts.n_features, BLOCK_BYTES // max(4 * rows, 1)))
    return BLOCKS * min(BLOCK_BYTES, 8 * rows * facts.n_features) + sample


def _bundle_bytes(facts: DataFacts) -> int:
    """Joint codes and histograms of features of few bins, if there are such (boost_core/bundles.py)."""
    most = facts.n_features // 2
    codes = min(facts.n_train * most, CODE_BYTES)
    return 0 if facts.sparse else codes + min(8 * most * MOST_JOINT * _padded(facts), ROOM_BYTES)


def _histogram_bytes(facts: DataFacts) -> int:
    """Of all leaves of a tree, as many as are kept at once."""
    bins, leaves = facts.n_features * (facts.config.max_bins + 1), _leaves(facts.config)
    if facts.sparse:
        table = 8 * bins * (_hot(facts) + 1)
        return table * (min(leaves, max(1, TABLE_BYTES // table)) + 2)
    one = 8 * bins * _padded(facts)
    return max(2 * one, min(leaves * one, SLOT_BYTES))


def _hot(facts: DataFacts) -> int:
    """Classes with a table: those that leaves answered, at most MOST_HOT where none has a gain below 0."""
    answered = min(facts.n_classes, facts.config.rounds * _leaves(facts.config))
    return answered if facts.touched_gains and not _resamples(facts) else min(answered, MOST_HOT)


def _leaves(config: TrainingConfig) -> int:
    parameters = config.weak_learner.parameters
    return int(parameters.get("max_leaves") or parameters.get("max_nodes") or 2)


def _model_bytes(facts: DataFacts) -> int:
    """The rounds so far: as objects, as the forest that is made of them, and as a checkpoint's bytes."""
    outputs = 1 if facts.sparse else facts.n_columns
    return 3 * facts.config.rounds * _leaves(facts.config) * (48 + 4 * outputs)
