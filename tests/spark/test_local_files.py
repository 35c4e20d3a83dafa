"""Files of this machine: on the disk before a commit names them; what killed jobs have left goes with a later one."""

from __future__ import annotations

import os
import time

from tagwire.spark.tables import data_files
from tagwire.spark.tables.data_files import LocalDestination
from tagwire.spark.tables.local_files import locked, remove_abandoned


def test_directories_that_are_old_and_that_nobody_holds_are_removed(tmp_path):
    names = "land-killed", "land-held", "land-young", "other-old"
    old = time.time() - 100
    for name in names:
        (tmp_path / name / "run-1").mkdir(parents=True)
    (tmp_path / "land-link").symlink_to(tmp_path / "other-old")
    with locked(tmp_path / "land-held", "held"):
        for name in names:
            if name != "land-young":
                os.utime(tmp_path / name, (old, old))
        remove_abandoned(tmp_path, "land-", 60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["land-held", "land-link", "land-young", "other-old"]
    assert (tmp_path / "other-old/run-1").is_dir()


def test_a_file_and_the_directories_it_is_named_in_are_on_the_disk_when_it_is_closed(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(data_files, "sync", synced.append)
    to = LocalDestination(tmp_path / "table/data", True)
    to.close("date=1/f", to.create("date=1/f"))
    table = tmp_path / "table"
    assert synced == [table / "data/date=1/f", table / "data/date=1", table / "data", table]
