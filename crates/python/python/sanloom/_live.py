"""Views and zones of a running lab."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _sanloom
from ._lab import Lab
from ._sanloom import Table

_Ask = Callable[[dict[str, Any]], dict[str, Any]]
_Edits = str | Sequence[Mapping[str, Any]]
_LIMIT_S = 60


class RequestError(RuntimeError):
    """The running lab did not execute a request; `kind` is the kind of the cause."""

    def __init__(self, reason: str, kind: str = "usage") -> None:
        super().__init__(reason)
        self.kind = kind


class View(Mapping[str, Any]):
    """A table of `sanloom show` at one moment, as its JSON has it."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def table(self, name: str | None = None) -> Table:
        """The rows of a list of the view; without a name, of its only list."""
        lists = [key for key, value in self._values.items() if isinstance(value, list)]
        if name is None:
            if len(lists) != 1:
                raise TypeError(f"the view has the lists {', '.join(lists) or 'of no kind'}; name one of them")
            name = lists[0]
        if name not in lists:
            raise KeyError(f"the view has no list `{name}`; it has {', '.join(lists)}")
        return _sanloom.table_of(json.dumps(self._values[name]))

    def __repr__(self) -> str:
        return f"<sanloom.View {self._values.get('view')} of {self._values.get('of')}>"


class Live:
    """A running lab. Each call is a request of its own; nothing is kept between them."""

    def __init__(self, ask: _Ask, name: str, lab: Lab | None = None) -> None:
        self._ask = ask
        self._name = name
        self._lab = lab

    def request(self, request: str, /, **fields: Any) -> dict[str, Any]:
        """Sends any request of the control interface; returns the answer as its JSON."""
        given = {name: value for name, value in fields.items() if value is not None}
        answer = self._ask({"request": request, **given})
        if answer.get("answer") == "failed":
            raise RequestError(answer["reason"], answer.get("kind", "usage"))
        return answer

    def show(self, table: str, *, switch: str | None = None) -> View:
        """A table of `sanloom show`: `ports`, `flogi`, `ns`, `fabric`, `luns`, `sessions`, …"""
        answer = self.request("show", table=table, switch=switch)
        answer.pop("answer")
        return View(answer)

    def metrics(self) -> str:
        """All counters in the text format of Prometheus."""
        return str(self.request("metrics")["text"])

    def zones(self, *, switch: str | None = None) -> dict[str, Any]:
        """The zones of a switch, and its open transaction."""
        return self.request("zone", switch=switch, do="show")

    def _edits(self, edits: _Edits, switch: str | None) -> list[Any]:
        if not isinstance(edits, str):
            return list(edits)
        if self._lab is None:
            raise TypeError("names of a lab need the lab; connect with its file, or give edits with port names")
        zones = json.dumps(self.zones(switch=switch))
        found: list[Any] = json.loads(_sanloom.zone_edits(self._lab._source(), zones, edits))
        return found

    def preview_zones(self, edits: _Edits = (), *, switch: str | None = None) -> dict[str, Any]:
        """The pairs of ports that gain or lose access by the transaction and further edits."""
        return self.request("zone", switch=switch, do="preview", edits=self._edits(edits, switch))

    def edit_zones(self, edits: _Edits, *, switch: str | None = None) -> dict[str, Any]:
        """Edits the zones in the transaction of the switch: all edits take effect, or none.

        `edits` is the text of a file of zone edits, with the names of the lab, or a list of edits of
        the control interface.
        """
        return self.request("zone", switch=switch, do="edit", edits=self._edits(edits, switch))

    def commit_zones(self, *, switch: str | None = None) -> dict[str, Any]:
        """Puts the transaction into force in the whole fabric."""
        return self.request("zone", switch=switch, do="commit")

    def abort_zones(self, *, switch: str | None = None) -> dict[str, Any]:
        """Discards the transaction."""
        return self.request("zone", switch=switch, do="abort")

    def rollback_zones(self, *, switch: str | None = None) -> dict[str, Any]:
        """Restores the zones before the last change."""
        return self.request("zone", switch=switch, do="rollback")

    def set_port(self, port: str, *, enabled: bool) -> None:
        """Enables or disables a port, for example `sw1:0`."""
        self.request("port", port=port, enabled=enabled)

    def __repr__(self) -> str:
        return f"<sanloom.Live {self._name}>"


def connect(
    target: str | os.PathLike[str] | Lab,
    *,
    user: str | None = None,
    password: str | None = None,
    cafile: str | os.PathLike[str] | None = None,
) -> Live:
    """Connects to a running lab (`sanloom up`).

    `target` is the lab file, its control socket, or the address of its page, such as
    `http://127.0.0.1:8080`. User and password are those of the page; without the right ones, and
    without an answer, `ConnectionError` is raised. `cafile` has the certificate of a page with
    `https`: the file `surface.pem` in the folder of the lab, or its certificate alone.
    """
    if cafile is not None and not str(target).startswith("https://"):
        raise TypeError("only an address with https has a certificate")
    if isinstance(target, Lab):
        return _socket(_sanloom.control_socket(target._source()), target)
    name = os.fspath(target)
    if name.startswith(("http://", "https://")):
        return _page(name, user, password, cafile)
    if user is not None or password is not None:
        raise TypeError("a control socket has no users; its permissions decide")
    if stat.S_ISSOCK(os.stat(name).st_mode):
        return _socket(name)
    return connect(Lab(name))


def _socket(path: str | os.PathLike[str], lab: Lab | None = None) -> Live:
    def ask(request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(_sanloom.ask(os.fspath(path), json.dumps(request)))
        return answer

    ask({"request": "metrics"})
    return Live(ask, os.fspath(path), lab)


def _page(
    address: str, user: str | None, password: str | None, cafile: str | os.PathLike[str] | None
) -> Live:
    # The import of these modules takes as long as that of the rest of the package.
    import base64
    import ssl
    import urllib.error
    import urllib.request

    headers = {"Content-Type": "application/json"}
    if user is not None:
        credentials = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
        headers["Authorization"] = f"Basic {credentials}"

    context = ssl.create_default_context(cafile=cafile) if address.startswith("https://") else None

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        url = address.rstrip("/") + "/api/v1/request"
        sent = urllib.request.Request(url, json.dumps(request).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(sent, timeout=_LIMIT_S, context=context) as response:
                answer: dict[str, Any] = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            body = error.read()
            try:
                failed: dict[str, Any] = json.loads(body)
            except ValueError:
                failed = {}
            reason = failed.get("reason") or failed.get("error") or str(error)
            return {"answer": "failed", "reason": reason, "kind": failed.get("kind", "usage")}
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                raise ConnectionError(
                    f"the certificate of {address} is not trusted ({error.reason.verify_message}); pass"
                    " `cafile`: surface.pem in the folder of the lab, or its certificate"
                ) from None
            raise ConnectionError(f"no page answers at {address}: {error.reason}") from None

    answer = ask({"request": "metrics"})
    if answer.get("answer") == "failed":
        raise ConnectionError(f"the page at {address} refuses: {answer['reason']}")
    return Live(ask, address)
