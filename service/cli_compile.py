"""`edgewise compile`: compiled kernels for the first job to find."""

import time

from service.cli_output import reporting

# Some kernels are compiled for a number of channels, in steps of 4. For other numbers the rest is found at least: half
# of the time (42 s for the first, 25 s alone with 26, 10 s for 10, 2 s for 3).
COMMON_CLASSES = (26, 10, 3)


def run(classes: list[int] | None, *, as_json: bool) -> None:
    """Compile what a job with the defaults needs, alone and in a gang. What is compiled already is only looked at."""
    with reporting(as_json) as output:
        from boost_core.catalogue import resolve_config
        from boost_core.warm_up import WarmUp, warm_up

        config = resolve_config({"algorithm": {"name": "adaboost_mh"}, "rounds": 2, "max_bins": 255, "seed": 0})
        counts, began = sorted(set(classes or COMMON_CLASSES), reverse=True), time.monotonic()
        for n_classes in counts:
            for in_gang in (True, False):
                warm_up(config, n_classes, WarmUp(in_gang))
        seconds = time.monotonic() - began
        output.answer({"classes": counts, "seconds": seconds}, f"kernels for {counts} classes in {seconds:.1f} s")
