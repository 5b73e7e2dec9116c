#!/usr/bin/python
"""An Ansible module for volumes of braid, over the API of `braid web` (docs/api.md)."""

DOCUMENTATION = r"""
module: braid_volume
short_description: Ensure the state of a volume of braid
description:
  - Speaks to C(braid web) over its Unix socket, or over TCP with a token. Supports check mode.
options:
  name:
    description: Name of the volume.
    type: str
    required: true
  state:
    description:
      - C(present), the volume is known; it is created from I(level) and I(members) if it is not.
      - C(up), it is present and serves; C(down), it is present and stopped.
      - C(absent), it is stopped, and its record is removed, so that it is not started at boot. Members stay as they are.
    type: str
    choices: [present, up, down, absent]
    default: up
  level:
    description: Level of an array that is to be created, such as C(raid1).
    type: str
  members:
    description: Paths of its members in the order of their roles; C(missing) leaves a role free.
    type: list
    elements: str
  options:
    description: Further fields of C(create), such as C(bitmap) or C(spares); see NewVolume in docs/api/openapi.json.
    type: dict
    default: {}
  stack:
    description: Stack expression of a volume without superblocks, such as C(ram(64M)); instead of I(level).
    type: str
  attach:
    description: How the volume is attached, C(auto), C(ublk), C(fuse), C(nbd) or C(none).
    type: str
  nbd:
    description: Addresses at which it listens for NBD clients.
    type: list
    elements: str
    default: []
  read_only:
    description: Refuse writes.
    type: bool
    default: false
  force:
    description: Stop a volume although it is in use.
    type: bool
    default: false
  socket:
    description: The socket of C(braid web --listen unix:PATH).
    type: path
    default: /run/braid-web.sock
  url:
    description: Address of C(braid web) instead of I(socket), such as C(https://nas.lan:7374).
    type: str
  token:
    description: Token for I(url); C(braid web token add) makes one.
    type: str
  ca_path:
    description: Certificates in PEM that an https I(url) is verified with.
    type: path
"""

EXAMPLES = r"""
- braid_volume: {name: home, state: up, level: raid1, members: [/dev/sdb, /dev/sdc]}
- braid_volume: {name: scratch, state: up, stack: "ram(1G)", attach: none}
- braid_volume: {name: old, state: absent}
"""

RETURN = r"""
done: {description: What was done or would be done, type: list, elements: str, returned: success}
volume: {description: The volume as GET /api/v1/volumes has it, type: dict, returned: success}
code: {description: The word for the error, as ErrorCode in docs/api/openapi.json, type: str, returned: failure}
next: {description: What to do next, type: str, returned: failure}
"""

import http.client
import json
import socket
import ssl
from urllib.parse import urlsplit

from ansible.module_utils.basic import AnsibleModule

# The longest that a request takes: a volume flushes before it stops.
TIMEOUT_S = 180


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def connect(params):
    if not params["url"]:
        return UnixConnection(params["socket"])
    url = urlsplit(params["url"])
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=params["ca_path"])
        return http.client.HTTPSConnection(url.hostname, url.port or 443, timeout=TIMEOUT_S, context=context)
    return http.client.HTTPConnection(url.hostname, url.port or 80, timeout=TIMEOUT_S)


def ask(module, method, path, body=None):
    """Sends a request; fails the module with the reason and the next step if it is refused."""
    headers = {"Content-Type": "application/json"}
    if module.params["token"]:
        headers["Authorization"] = "Bearer " + module.params["token"]
    try:
        connection = connect(module.params)
        connection.request(method, "/api/v1" + path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        module.fail_json(msg=f"braid web does not answer: {error}", next="systemctl start braid-web")
    if response.status != 200:
        module.fail_json(msg=answer.get("why"), code=answer.get("code"), next=answer.get("next"))
    return answer


def find(module):
    volumes = ask(module, "GET", "/volumes")["volumes"]
    return next((one for one in volumes if one["name"] == module.params["name"]), None)


def steps(module, volume):
    """The requests that lead to the state, each with its path and body."""
    params, state = module.params, module.params["state"]
    name = {"name": params["name"]}
    stop = (f"/volumes/{params['name']}/stop", {"force": params["force"]})
    if state == "absent":
        is_up = volume is not None and volume["state"] != "down"
        return ([stop] if is_up else []) + [("/volumes", {"forget": name})]
    found = []
    stack = {}
    if volume is None and params["level"]:
        create = {**params["options"], **name, "level": params["level"], "members": params["members"]}
        found.append(("/volumes", {"create": create}))
    elif volume is None and params["stack"] and state == "up":
        stack = {"stack": params["stack"]}
    elif volume is None:
        text = f"there is no volume called {params['name']}"
        module.fail_json(msg=text, code="not-found", next="give level and members; or a stack, with state=up")
    if state == "up":
        up = {**name, **stack, "nbd": params["nbd"], "read_only": params["read_only"]}
        if params["attach"]:
            up["attach"] = params["attach"]
        found.append(("/volumes", {"up": up}))
    elif state == "down" and volume is not None:
        found.append(stop)
    return found


def main():
    fields = {name: {"type": "str"} for name in ("level", "stack", "attach", "url")}
    module = AnsibleModule(
        argument_spec={
            **fields,
            "name": {"type": "str", "required": True},
            "state": {"choices": ["present", "up", "down", "absent"], "default": "up"},
            "members": {"type": "list", "elements": "str"},
            "options": {"type": "dict", "default": {}},
            "nbd": {"type": "list", "elements": "str", "default": []},
            "read_only": {"type": "bool", "default": False},
            "force": {"type": "bool", "default": False},
            "socket": {"type": "path", "default": "/run/braid-web.sock"},
            "token": {"type": "str", "no_log": True},
            "ca_path": {"type": "path"},
        },
        required_together=[("level", "members")],
        mutually_exclusive=[("level", "stack")],
        supports_check_mode=True,
    )
    changed, done = False, []
    for path, body in steps(module, find(module)):
        if module.check_mode:
            plan = ask(module, "POST", path + "?plan=1", body)
            if not plan["possible"]:
                module.fail_json(msg=plan["why_not"], code="not-possible", next=plan["next"])
            changed, text = changed or plan["changes"], plan["does"]
        else:
            answer = ask(module, "POST", path, body)
            changed, text = changed or answer["changed"], answer["done"]
        done.append(text)
    module.exit_json(changed=changed, done=done, volume=find(module))


if __name__ == "__main__":
    main()
