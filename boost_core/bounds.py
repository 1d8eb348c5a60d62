"""What the theory proves for a round, held against what the round came to."""

import math

from boost_core.errors import BoundBroken
from boost_core.records import RoundRecord

LARGEST_LN = 700.0  # exp of more does not fit a float


def check_bounds(record: RoundRecord, slack: float) -> None:
    """Errors: BoundBroken if the loss or the strict training error exceeds what the theory proves for the round.

    slack: how far rounding may have moved ln loss since the first round.
    """
    if not record.ln_loss <= record.ln_bound + slack:
        raise BoundBroken(
            f"round {record.round}: ln loss {record.ln_loss!r} exceeds its bound {record.ln_bound!r} by more than "
            f"{slack:g}; the run is wrong, please report it with the job and the data's fingerprint"
        )
    slack = min(slack, LARGEST_LN)
    if record.error_bound is not None and not record.strict_train_error <= record.error_bound * math.exp(slack):
        raise BoundBroken(
            f"round {record.round}: strict training error {record.strict_train_error!r} exceeds its bound "
            f"{record.error_bound!r}; the run is wrong, please report it with the job and the data's fingerprint"
        )
