"""The life of an array, by the client: client.py SERVER FOLDER-WITH-MEMBERS. Says `all of it` at its end."""

import sys
import time

from braid import Braid, Refused

server, folder = sys.argv[1:]
unix = server.removeprefix("unix:") if server.startswith("unix:") else None
braid = Braid(unix=unix) if unix else Braid(server)
a, b, c = (f"{folder}/{name}.img" for name in "abc")


def refused(status, why, work):
    try:
        work()
    except Refused as refusal:
        assert refusal.status == status and why in refusal.why, (refusal.status, refusal)
        return refusal
    raise AssertionError(f"not refused: {why}")


def wait(what, condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


assert braid.about()["api_version"] == 1
assert braid.volumes() == []
if not unix:
    url = server.split("#")[0]
    refused(401, "not the token", lambda: Braid(url, token="0" * 64).volumes())
    refused(401, "missing", lambda: Braid(url).volumes())
planned = braid.create("home", "raid1", [a, b], assume_clean=True, plan=True)
assert planned["possible"] and planned["plan"]["array_bytes"] > 0, planned
assert braid.volumes() == [], "a plan does nothing"
braid.create("home", "raid1", [a, b], assume_clean=True, bitmap="internal")
braid.up("home", attach="none")
home = braid.volume("home")
assert home.look()["state"] == "online"
assert braid.up("home") == {"done": "Nothing: home is up already.", "changed": False, "command": "braid up home", "answer": ""}
refused(409, "home is up already, and it can be written to", lambda: braid.up("home", read_only=True))
refused(404, "no volume called nobody", lambda: braid.volume("nobody").look())

states = braid.follow()
assert next(states)["volumes"]["home"]["state"] == "online"
order = {"fail": {"member": b}}
planned = home.plan(order)
assert "as if it had failed" in planned["does"]
assert "is faulty now" in home.order(order, planned["if_state"])
refused(409, "has changed since", lambda: home.order({"scrub": {}}, planned["if_state"]))
for state in states:
    if state["volumes"]["home"]["state"] == "degraded":
        assert state["volumes"]["home"]["stack"], "what did not change is still there"
        break
states.close()
home.look()
braid.volume("home").remove(b)
refused(409, "has changed since", lambda: home.scrub())
refused(409, "only copy", lambda: home.fail(a))
home.add(b, again=True)
wait("b is in sync", lambda: home.look()["arrays"][0]["in_sync"] == [True, True])
# The recovery that filled it ends after that, which is a change.
wait("the recovery has ended", lambda: home.look()["arrays"][0]["job"] is None)
job = braid.jobs()[-1]
assert (job["kind"], job["member"]) == ("recovery", b), job
assert braid.job(job["id"], wait=60)["state"] == "done"
refused(404, "no job", lambda: braid.end_job("nobody.a0.1"))
home.look()
home.speed(min=1 << 20, max=0, latency_us=20000)
home.scrub()
home.attach_cache("size=4M")
home.detach_cache()
home.lock()
home.unlock()
home.replace(b, c)
wait("c has taken over", lambda: any(one["member"] == c and one["state"] == "in_sync" and not one["replacement"] for one in home.look()["arrays"][0]["members"]))
assert home.stop(plan=True)["command"] == "braid down home"
assert braid.volume("home").stop()["command"] == "braid down home"
wait("home is down", lambda: [one["state"] for one in braid.volumes()] == ["down"])
assert braid.rename("home", "house", plan=True)["command"] == "braid rename home house"
assert "is called house" in braid.rename("home", "house")["done"]
assert [one["name"] for one in braid.volumes()] == ["house"]
assert braid.forget("house", plan=True)["changes"]
assert braid.forget("house")["changed"] and not braid.forget("house")["changed"]
assert braid.volumes() == []
braid.up("disk", stack="ram(8M)", attach="none")
braid.volume("disk").resize(16 << 20)
assert braid.volume("disk").look()["device"]["size_bytes"] == 16 << 20
braid.volume("disk").stop()
print("all of it")
