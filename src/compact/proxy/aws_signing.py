"""Requests that an agent has signed for AWS (SigV4): a proxy has to sign them anew, with credentials of its own.

A signature covers the body and the host. The agent signs for the host that it talks to, which is this proxy, so that no
signature of its own would be taken by AWS, whether the body is changed or not. Bearer tokens need none of this.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from compact.proxy.headers import Headers
from compact.runner import run_blocking, run_short

_log = logging.getLogger("compact.proxy")
_SCHEME = b"AWS4-HMAC-SHA256"
# Credential=<key id>/<date>/<region>/<service>/aws4_request
_SCOPE = re.compile(rb"Credential=[^/]+/\d+/([^/]+)/([^/]+)/aws4_request")
# What a signature adds to a request, and replaces in it.
_SIGNATURE_HEADERS = (b"authorization", b"x-amz-date", b"x-amz-security-token", b"x-amz-content-sha256")
# Headers that servers between here and AWS may change.
_UNSIGNED = (b"connection", b"user-agent", b"accept-encoding", b"transfer-encoding", b"expect", b"x-amzn-trace-id")


@dataclass(frozen=True, slots=True)
class SigningScope:
    """The region and the service that a request was signed for."""

    region: str
    service: str


def signing_scope(headers: Mapping[bytes, bytes]) -> SigningScope | None:
    """Return what a request was signed for; None if it has no signature of AWS."""
    found = headers.get(b"authorization", b"")
    scope = _SCOPE.search(found) if found.startswith(_SCHEME) else None
    return SigningScope(scope[1].decode("latin-1"), scope[2].decode("latin-1")) if scope else None


class AwsSigner:
    """Signs requests with the credentials that AWS's own tools would use here: environment, profile, role."""

    def __init__(self) -> None:
        self._credentials: Any = None
        self._is_warned = False

    async def can_sign(self) -> bool:
        """Return True if there are credentials; if not, the log says once what to do."""
        if self._credentials is None:
            # They may come from a server of the cloud, which can take seconds.
            self._credentials = await run_blocking(_find_credentials)
        if self._credentials is None and not self._is_warned:
            self._is_warned = True
            _log.warning(
                "requests that are signed for AWS are passed on as they are, and AWS will not take them from a proxy: "
                "install boto3 and give this proxy AWS credentials, or have the agent use AWS_BEARER_TOKEN_BEDROCK"
            )
        return self._credentials is not None

    async def sign(self, scope: SigningScope, method: str, url: str, headers: Headers, body: bytes) -> Headers:
        """Return the headers of a request with a new signature in place of the one it had."""
        frozen = await run_blocking(self._credentials.get_frozen_credentials)  # may have to be renewed
        return await run_short(lambda: _sign(frozen, scope, method, url, headers, body))


def _find_credentials() -> Any:
    try:
        session: Any = import_module("botocore.session")
    except ModuleNotFoundError:
        return None
    return session.get_session().get_credentials()


def _sign(credentials: Any, scope: SigningScope, method: str, url: str, headers: Headers, body: bytes) -> Headers:
    auth: Any = import_module("botocore.auth")
    requests: Any = import_module("botocore.awsrequest")
    kept = [(name, value) for name, value in headers if name.lower() not in _SIGNATURE_HEADERS]
    signed = {name.decode("latin-1"): value.decode("latin-1") for name, value in kept if name.lower() not in _UNSIGNED}
    request = requests.AWSRequest(method=method, url=url, data=body, headers=signed)
    auth.SigV4Auth(credentials, scope.service, scope.region).add_auth(request)
    added = [(name, value) for name, value in request.headers.items() if name.lower().encode() in _SIGNATURE_HEADERS]
    return [*kept, *((name.encode(), str(value).encode()) for name, value in added)]
