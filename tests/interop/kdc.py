"""A KDC of MIT's Kerberos on the loopback interface, with a realm, a configuration and a database of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..certificates import HOST
from .peer import NotRunError
from .real_node import free_ports

REALM: Final = "TAGWIRE.TEST"
SECONDS: Final = 30

# Ports are above 1024 and files its own: it needs no privileges. Names are taken as they are, without DNS.
_KRB5: Final = """
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{realm} = {{
  kdc = {host}:{port}
}}
"""
_KDC: Final = """
[kdcdefaults]
kdc_listen = ""
kdc_tcp_listen = {host}:{port}
[realms]
{realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/kadm5.acl
  max_life = 1h
}}
[logging]
kdc = FILE:{folder}/kdc.log
"""
_PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


@dataclass
class Kdc:
    """Its files are in `folder`; programs find the realm by `environment`."""

    folder: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        return {"KRB5_CONFIG": str(self.folder / "krb5.conf"), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}

    def keytab(self, principal: str) -> Path:
        """The file with the key of a principal, which is made."""
        path = self.folder / f"{principal.replace('/', '-')}.keytab"
        if not path.exists():
            self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-q", f"ktadd -norandkey -k {path} {principal}")
        return path

    def tickets(self, principal: str) -> Path:
        """A cache of tickets, as kinit makes it."""
        path = self.folder / f"{principal}.cache"
        self._run("kinit", "-c", str(path), "-k", "-t", str(self.keytab(principal)), principal)
        return path

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_found(program), *arguments],
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, f"{program}: {done.stdout[-500:]}{done.stderr[-500:]}"

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[Kdc]:
        """Raises NotRunError: MIT's programs are not installed (Debian: krb5-kdc, krb5-admin-server, krb5-user)."""
        for program in _PROGRAMS:
            _found(program)
        kdc = cls(folder, free_ports(1)[0])
        given = {"realm": REALM, "host": HOST, "port": kdc.port, "folder": folder}
        (folder / "krb5.conf").write_text(_KRB5.format(**given), encoding="utf-8")
        (folder / "kdc.conf").write_text(_KDC.format(**given), encoding="utf-8")
        kdc._run("kdb5_util", "create", "-s", "-P", "of-tests-alone", "-r", REALM)
        process = subprocess.Popen(
            [_found("krb5kdc"), "-n"],
            env=os.environ | kdc.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            kdc._await(process)
            yield kdc
        finally:
            process.terminate()
            process.wait(SECONDS)

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < until:
            try:
                socket.create_connection((HOST, self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the KDC did not start")


def _found(program: str) -> str:
    path = shutil.which(program, path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin")
    if path is None:
        raise NotRunError(f"{program} is not installed (Debian: krb5-kdc, krb5-admin-server, krb5-user)")
    return path
