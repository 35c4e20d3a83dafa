"""What a broker can be told, and what it answers to what it cannot be told."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tagwire.broker import Broker
from tagwire.errors import ConfigError, TagwireError

HALF = "has half of a character (a surrogate), which is no text"  # as of a variable that is no UTF-8

WRONG = [
    ({"fsync": "always"}, "fsync='always' is not batch or interval or never"),
    ({"unsupported": "ignore"}, "unsupported='ignore' is not close or empty"),
    ({"port": 65536}, "port=65536 is not 0 to 65535"),
    ({"num_partitions": 0}, "num_partitions=0 is not 1 to 1000"),
    ({"max_frame_bytes": 10}, "max_frame_bytes=10 is not 1024 or more"),
    ({"num_partition": 3}, "num_partition: no such option; num_partitions is one"),
    ({"datadir": "data"}, "datadir: no such option; data_dir is one"),
    ({"num_partitions": "3"}, "num_partitions='3' is not a whole number"),
    ({"num_partitions": True}, "num_partitions=True is not a whole number"),
    ({"idle_timeout_s": "3"}, "idle_timeout_s='3' is not a number of seconds"),
    ({"group_session_timeout_s": 2147484}, "group_session_timeout_s=2147484.0 is not at most 2147483"),
    ({"group_session_timeout_s": float("inf")}, "group_session_timeout_s=inf is not at most 2147483"),
    ({"auto_create_topics": "no"}, "auto_create_topics='no' is not True or False"),
    ({"as_release": 2.8}, 'as_release=2.8 is not text, such as "2.8"'),
    ({"fsync": True}, "fsync=True is not batch or interval or never"),
    ({"port": "9092"}, "port='9092' is not 0 to 65535"),
    ({"host": None}, 'host=None is no text, such as "127.0.0.1"'),
    ({"advertise": ("a", 1)}, "advertise=('a', 1) is no text, such as \"broker.example:9092\""),
    ({"data_dir": 9092}, "data_dir=9092 is no directory: a port is given as port=9092"),
    ({"users": [("alice", "hunter2")]}, 'users: a dict of names and passwords, {"alice": "..."}, not list'),
    ({"users": {"alice": ""}}, "users: 'alice' needs a name and a password, texts that are not empty"),
    ({"users": {"alice": None}}, "users: 'alice' needs a name and a password, texts that are not empty"),
    ({"users": {"alice": b"hunter2"}}, "users: 'alice' needs a name and a password, texts that are not empty"),
    ({"users": {"alice": "hunter2\udce4"}}, f"users: the password of 'alice' {HALF}"),
    ({"users": {"al\udce4": "hunter2"}}, rf"users: the name of 'al\udce4' {HALF}"),
    ({"users": {"alice": "hunter2\0"}}, "users: the password of 'alice' has a character 0, which SASL forbids"),
    ({"users": {"": "hunter2"}}, "users: '' needs a name and a password, texts that are not empty"),
    ({"tls": "broker.pem"}, 'tls: needs Tls("broker.pem", "broker.key"), not str'),
    ({"sasl": {"PLAIN": "x"}}, "sasl={'PLAIN': 'x'} is not PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or OAUTHBEARER"),
    ({"listeners": "0.0.0.0:9092"}, 'listeners: needs a list of Listener("0.0.0.0", 9092)'),
    ({"register": "headers.toml"}, "register: a HeaderRegister, not str"),
]


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_a_wrong_option_is_named_with_what_is_allowed(options, text):
    with pytest.raises(ConfigError) as caught:
        Broker(**options)
    assert str(caught.value) == text


def test_a_port_in_use_is_named_and_the_directory_let_go(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            Broker(tmp_path / "data", port=port).start()
    with Broker(tmp_path / "data"):
        pass


def test_a_host_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"no\.such\.host\.invalid"):
        Broker(host="no.such.host.invalid").start()


def test_a_broker_that_is_not_running_has_no_address():
    broker = Broker()
    with pytest.raises(TagwireError, match="not running"):
        _ = broker.bootstrap
    broker.start()
    address = broker.bootstrap
    broker.start()
    assert broker.bootstrap == address
    broker.stop()
    with pytest.raises(TagwireError, match="not running"):
        _ = broker.bootstrap


def test_a_broker_does_not_load_arrow():
    program = "import sys; from tagwire.broker import Broker\nwith Broker(): pass\nprint('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_name_is_listened_on_and_advertised_as_ipv4(connect):
    with Broker(host="localhost") as broker:
        (node,) = connect(broker.bootstrap).metadata().brokers
        assert broker.bootstrap == f"{node.host}:{node.port}"
        assert node.host == "127.0.0.1"


def test_a_broker_on_every_address_advertises_the_one_the_client_reached(connect):
    with Broker(host="0.0.0.0") as broker:
        port = broker.bootstrap.rpartition(":")[2]
        (node,) = connect(f"127.0.0.1:{port}").metadata().brokers
        assert (node.host, node.port) == ("127.0.0.1", int(port))
