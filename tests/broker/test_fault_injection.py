"""A disk that fails on demand, in a program that runs a broker."""

from __future__ import annotations

import errno
import threading

import pytest

from tagwire.broker import Broker
from tagwire.broker.fault_injection import FaultyFiles
from tagwire.errors import ConfigError, Error


def test_a_full_disk_refuses_and_takes_again_when_there_is_room(broker, wire, make):
    wire.create("t")
    broker.disk.fail("write", errno.ENOSPC)
    assert wire.produce("t", make.records(b"lost")).error_code == Error.KAFKA_STORAGE_ERROR
    broker.disk.mend()
    assert wire.produce("t", make.records(b"kept")).base_offset == 0


def test_a_failed_fsync_takes_the_log_offline_until_the_next_start(tmp_path, connect, make):
    broker = Broker(tmp_path / "data")
    with broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        assert wire.produce("t", make.records(b"kept")).error_code == 0
        broker.disk.fail("sync", times=1)
        assert wire.produce("t", make.records(b"lost")).error_code == Error.KAFKA_STORAGE_ERROR
        assert wire.produce("t", make.records(b"lost")).error_code == Error.KAFKA_STORAGE_ERROR
    with broker:
        wire = connect(broker.bootstrap)
        assert wire.offset_at("t", -1).offset == 1
        assert wire.produce("t", make.records(b"kept")).base_offset == 1


def test_an_operation_that_does_not_exist_is_named(broker):
    with pytest.raises(ConfigError, match="'fsync' is not one of create, open, read"):
        broker.disk.fail("fsync")


def test_what_another_thread_mends_as_it_fails_stays_mended(tmp_path):
    files, mending = FaultyFiles(), threading.Thread(target=lambda: files.mend())

    class Times(float):
        """How often, of which another thread thinks better as it is counted."""

        def __sub__(self, one):
            mending.start()
            mending.join(0.3)
            return super().__sub__(one)

    files.fail("remove", times=Times(5))
    with pytest.raises(OSError, match="Input/output error"):
        files.remove(tmp_path / "file")
    mending.join(20)
    (tmp_path / "file").touch()
    files.remove(tmp_path / "file")
