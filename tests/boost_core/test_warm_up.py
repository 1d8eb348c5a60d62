"""Compiling ahead of a job."""

from dataclasses import replace

import pytest

from boost_core.warm_up import warm_up
from tests.builders import CONFIGURATIONS, config_for, reference_options


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_every_configuration_warms_up(configuration: str):
    options = replace(reference_options(configuration), max_leaves=4)
    config = config_for(options, 1_000_000, "stump" in configuration)
    for n_classes in (2,) if options.binary else (2, 3, 6):
        warm_up(config, n_classes)
