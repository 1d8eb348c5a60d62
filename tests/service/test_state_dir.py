"""The state folder: one server at a time, and the name of the one before."""

from pathlib import Path

import pytest

from service.errors import StartRefused
from service.state_dir import StateDirectory


def test_the_state_folder_remembers_its_owner(tmp_path: Path) -> None:
    first = StateDirectory.claim(tmp_path / "a" / "b", "one")
    assert first.previous_owner is None
    with pytest.raises(StartRefused, match="in use by another server"):
        StateDirectory.claim(tmp_path / "a" / "b", "two")
    first.close()
    first.close()
    second = StateDirectory.claim(tmp_path / "a" / "b", "two")
    assert (second.owner, second.previous_owner) == ("two", "one")
    second.close()


def test_a_state_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartRefused, match="file"):
        StateDirectory.claim(tmp_path / "file" / "state", "one")
