#!/usr/bin/python3
"""etcd3gw_session.py HOST PORT: a session of Debian's etcd3gw client, told call by call.

What is printed depends on the meaning of the answers only, so it is the same for every server that
means the same. The last line is `done`.
"""

import sys
import threading

from etcd3gw.client import Etcd3Client


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def main():
    host, port = sys.argv[1], int(sys.argv[2])
    client = Etcd3Client(host=host, port=port, api_path="/v3/", timeout=20)

    def show(name, value):
        print(name, value, flush=True)

    show("members", len(client.members()))
    show("status", sorted(key for key in client.status() if key in ("header", "version", "leader")))
    show("absent", client.get("absent"))
    show("put", client.put("a/1", "one"))
    for index in range(2, 6):
        client.put(f"a/{index}", f"value {index}")
    show("get", [text(value) for value in client.get("a/1")])
    show("metadata", [
        (text(value), text(meta["key"]), meta["create_revision"], meta["mod_revision"], meta["version"])
        for value, meta in client.get("a/1", metadata=True)])
    show("prefix", [text(value) for value, _ in client.get_prefix("a/")])
    show("descending", [
        text(value) for value, _ in client.get_prefix("a/", sort_order="descend", sort_target="mod")])
    show("all", len(client.get_all()))
    show("replace", client.replace("a/1", "one", "uno"))
    show("replace again", client.replace("a/1", "one", "uno"))
    show("create", client.create("a/new", "made"))
    show("create again", client.create("a/new", "made"))
    show("delete", client.delete("a/2"))
    show("delete again", client.delete("a/2"))
    show("delete prefix", client.delete_prefix("a/"))
    show("left", len(client.get_all()))

    lease = client.lease(ttl=60)
    client.put("leased", "x", lease=lease)
    show("lease keys", [text(key) for key in lease.keys()])
    show("lease ttl", 0 < lease.ttl() <= 60)
    show("refreshed", lease.refresh())
    show("revoked", lease.revoke())
    show("gone with it", client.get("leased"))

    lock = client.lock("one", ttl=60)
    show("acquire", lock.acquire())
    other = client.lock("one", ttl=60)
    show("other acquires", other.acquire())
    show("release", lock.release())
    show("other acquires now", other.acquire())
    show("other releases", other.release())

    events, cancel = client.watch_prefix("w/")
    writer = threading.Thread(target=lambda: [client.put(f"w/{i}", str(i)) for i in range(5)] and
                              client.delete("w/3"))
    writer.start()
    for _ in range(6):
        event = next(events)
        show("event", (event.get("type", "PUT"), text(event["kv"]["key"]), text(event["kv"].get("value"))))
    writer.join()
    cancel()

    timer = threading.Thread(target=lambda: client.put("once", "now"))
    timer.start()
    while True:
        # The put may come before the watch; then there is another.
        try:
            event = client.watch_once("once", timeout=1)
            break
        except Exception as error:
            if type(error).__name__ != "WatchTimedOut":
                raise
            client_thread = threading.Thread(target=lambda: client.put("once", "now"))
            client_thread.start()
    show("once", text(event["kv"]["value"]))
    timer.join()
    print("done")


if __name__ == "__main__":
    main()
