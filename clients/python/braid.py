"""A client of `braid web`: all volumes of a machine, from Python, with the standard library alone.

    from braid import Braid

    braid = Braid(unix="/run/braid-web.sock")               # as the socket's owner
    braid = Braid("http://127.0.0.1:7374", token_file="/var/lib/braid/web-token")
    braid = Braid("https://nas.lan:7374", token=TOKEN, cafile="nas.pem")

    for volume in braid.volumes():
        print(volume["name"], volume["state"], volume["why"], volume["next"])
    home = braid.volume("home")
    print(home.plan({"fail": {"member": "/dev/sdb"}})["does"])
    home.fail("/dev/sdb")
    for state in braid.follow():
        print(state["volumes"]["home"]["state"])

What is refused raises `Refused`, with what was refused, why, and what to do next. An order goes with the
state that was seen last (`home.look()`), if any was: it is refused if that has changed. What all of it means is
said by docs/api/openapi.json, which the server has at /api/v1/openapi.json.
"""

import http.client
import json
import socket
import ssl
import urllib.parse

__all__ = ["Braid", "Refused", "Volume", "merge"]

API = "/api/v1"


class Refused(Exception):
    """A request that was refused, or failed."""

    def __init__(self, status, why, next=None, code=None):
        super().__init__(why if next is None else f"{why}\n  next: {next}")
        self.status, self.why, self.next, self.code = status, why, next, code


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def merge(target, patch):
    """Applies a JSON merge patch (RFC 7396), and answers what came of it."""
    if not isinstance(patch, dict):
        return patch
    result = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


class Braid:
    """A server. `url` is http:// on the loopback, or https://; `unix` the path of a socket instead."""

    def __init__(self, url=None, *, unix=None, token=None, token_file=None, cafile=None, timeout=150):
        if (url is None) == (unix is None):
            raise ValueError("either a url or the path of a Unix socket")
        if token_file is not None:
            with open(token_file, encoding="ascii") as file:
                token = file.read().strip()
        self._unix, self._token, self._timeout = unix, token, timeout
        self.last_id = None
        self._url = urllib.parse.urlsplit(url) if url else None
        if self._url and self._url.scheme not in ("http", "https"):
            raise ValueError(f"{url!r} is neither http:// nor https://")
        if self._url and self._url.fragment.startswith("token="):
            self._token = self._url.fragment.removeprefix("token=")
        secure = self._url is not None and self._url.scheme == "https"
        self._tls = ssl.create_default_context(cafile=cafile) if secure else None

    def _connect(self):
        if self._unix:
            return _UnixConnection(self._unix, self._timeout)
        host, port = self._url.hostname, self._url.port
        if self._tls:
            return http.client.HTTPSConnection(host, port or 443, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(host, port or 80, timeout=self._timeout)

    def _ask(self, method, path, body=None):
        """An answer that is not read yet, and its connection."""
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        connection = self._connect()
        try:
            connection.request(method, API + path, data, headers)
            answer = connection.getresponse()
            if answer.status != 200:
                text = answer.read().decode(errors="replace")
                try:
                    said = json.loads(text)
                    raise Refused(answer.status, said["why"], said.get("next"), said.get("code"))
                except (ValueError, KeyError, TypeError):
                    raise Refused(answer.status, text or answer.reason) from None
            return connection, answer
        except BaseException:
            connection.close()
            raise

    def get(self, path):
        """What is at a path below /api/v1."""
        connection, answer = self._ask("GET", path)
        try:
            return json.loads(answer.read())
        finally:
            connection.close()

    def post(self, path, body):
        """What comes of sending `body` to a path below /api/v1."""
        connection, answer = self._ask("POST", path, body)
        try:
            return json.loads(answer.read())
        finally:
            connection.close()

    def about(self):
        return self.get("")

    def volumes(self):
        """All volumes: those that are up, and those that are known."""
        return self.get("/volumes")["volumes"]

    def volume(self, name):
        return Volume(self, name)

    def up(self, name=None, *, plan=False, **options):
        """Brings a volume up: by its name, or `stack=`; `attach=`, `nbd=`, `read_only=`, `degraded=`."""
        options.update({} if name is None else {"name": name})
        return self.post(f"/volumes?plan={int(plan)}", {"up": options})

    def create(self, name, level, members, *, plan=False, **options):
        """Makes an array; `spares=`, `chunk_bytes=`, `bitmap=`, `assume_clean=` and others."""
        options.update(name=name, level=level, members=list(members))
        return self.post(f"/volumes?plan={int(plan)}", {"create": options})

    def forget(self, name, *, plan=False):
        """Removes the record of a volume that is down."""
        return self.post(f"/volumes?plan={int(plan)}", {"forget": {"name": name}})

    def rename(self, name, to, *, plan=False):
        """Calls a volume that is down otherwise."""
        return self.post(f"/volumes?plan={int(plan)}", {"rename": {"name": name, "to": to}})

    def reports(self):
        return self.get("/reports")["reports"]

    def jobs(self):
        """Long work of all volumes that are up: scrubs, resyncs, recoveries, images."""
        return self.get("/jobs")["jobs"]

    def job(self, id, wait=0):
        """A job; with `wait`, when it has ended, or after so many seconds (at most 300)."""
        return self.get(f"/jobs/{urllib.parse.quote(id, safe='')}?wait={int(wait)}")

    def end_job(self, id):
        """Ends a check or a repair."""
        connection, answer = self._ask("DELETE", f"/jobs/{urllib.parse.quote(id, safe='')}")
        try:
            return json.loads(answer.read())
        finally:
            connection.close()

    def events(self, after=None):
        """(kind, data), for ever: `state` first, then `patch`, `event` and `missed`; `last_id` is that of the last event,
        behind which `after` goes on."""
        connection, answer = self._ask("GET", "/events" if after is None else f"/events?after={int(after)}")
        try:
            kind = None
            for line in answer:
                line = line.decode().rstrip("\r\n")
                if line.startswith("id: "):
                    self.last_id = int(line.removeprefix("id: "))
                elif line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield kind, json.loads(line.removeprefix("data: "))
        finally:
            connection.close()

    def follow(self):
        """All volumes each time when something has changed: {"volumes": {NAME: …}, "error": …}."""
        state = {}
        for kind, data in self.events():
            if kind in ("state", "patch"):
                state = data if kind == "state" else merge(state, data)
                yield state


class Volume:
    """A volume by its name."""

    def __init__(self, braid, name):
        self._braid, self.name = braid, name
        self._path = "/volumes/" + urllib.parse.quote(name, safe="")
        self._seen = None

    def look(self):
        """How it is; orders that follow are for this state, until one was given."""
        status = self._braid.get(self._path)
        self._seen = status["if_state"]
        return status

    def curves(self):
        return self._braid.get(f"{self._path}/curves")["curves"]

    def plan(self, order):
        """What an order would do, and whether it can be given now."""
        return self._braid.post(f"{self._path}/orders?plan=1", {"order": order})

    def order(self, order, if_state=None):
        """Gives an order; answers what was done. `if_state`: the mark of a state, as a plan has it."""
        seen, self._seen = if_state or self._seen, None
        return self._braid.post(f"{self._path}/orders", self._with(seen, {"order": order}))["done"]

    def stop(self, force=False, *, plan=False):
        seen, self._seen = self._seen, None
        return self._braid.post(f"{self._path}/stop?plan={int(plan)}", self._with(seen, {"force": force}))

    @staticmethod
    def _with(seen, body):
        return body if seen is None else {**body, "if_state": seen}

    def fail(self, member, array=None):
        return self.order({"fail": {"member": member, "array": array}})

    def remove(self, member, array=None):
        return self.order({"remove": {"member": member, "array": array}})

    def add(self, member, *, again=False, force=False, write_mostly=False, array=None):
        how = {"again": again, "force": force, "write_mostly": write_mostly}
        return self.order({"add": {"member": member, **how, "array": array}})

    def replace(self, member, new, *, force=False, write_mostly=False, array=None):
        how = {"force": force, "write_mostly": write_mostly}
        return self.order({"replace": {"member": member, "with": new, **how, "array": array}})

    def scrub(self, *, repair=False, cancel=False, array=None):
        return self.order({"scrub": {"repair": repair, "cancel": cancel, "array": array}})

    def speed(self, *, min=None, max=None, latency_us=None, array=None):
        """Limits of passes, in bytes a second and µs; 0 takes one back, None leaves it."""
        limits = {"min_bytes_per_second": min, "max_bytes_per_second": max, "latency_us_p99": latency_us}
        return self.order({"speed": {**limits, "array": array}})

    def resize(self, size):
        return self.order({"whole": {"resize": {"bytes": size}}})

    def lock(self, force=False):
        return self.order({"whole": {"lock": {"force": force}}})

    def unlock(self):
        return self.order({"whole": "unlock"})

    def attach_cache(self, parameters):
        return self.order({"cache": {"attach": {"parameters": parameters}}})

    def detach_cache(self):
        return self.order({"cache": "detach"})
