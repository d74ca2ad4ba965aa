#!/usr/bin/python3
"""nacos_double.py --port PORT [--data FILE] [--user NAME:PASSWORD] [--hold-min-ms N] [--ignore-cas]

A double of a Nacos server, as far as configs go: the v1 interface with its long poll and the v3 admin
interface, both over the same configs, and the logins of both. It writes `ready` when it listens.

  --data         keeps the configs there, so that they are still there after a restart; tokens are not
  --user         wants this user, or a token of his; without it everybody may
  --hold-min-ms  how long a long poll is held at least (10000, as Nacos has it)
  --ignore-cas   publishes whatever casMd5 says, as old servers do
"""

import argparse
import hashlib
import json
import os
import re
import secrets
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,256}")
FORM_BYTES_MAX = 2 << 20
WORD_END, LINE_END = "\x02", "\x01"


class Refusal(Exception):
    """What v1 answers as a status with text, and v3 as a status with {code, message, data}."""

    def __init__(self, status, code, message, data=None):
        super().__init__(message)
        self.status, self.code, self.message, self.data = status, code, message, data


class Configs:
    """The database. A key is (namespace, group, dataId); rows keep the order in which they were made."""

    def __init__(self, path, ignore_cas):
        self.path, self.ignore_cas = path, ignore_cas
        self.changed = threading.Condition()
        self.rows = {}
        self.next_id = 1
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for row in json.load(file):
                    self.rows[row["tenant"], row["group"], row["dataId"]] = row
                    self.next_id = row["id"] + 1

    def save(self):
        self.changed.notify_all()
        if not self.path:
            return
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(list(self.rows.values()), file)
        os.replace(self.path + ".new", self.path)

    def publish(self, key, content, cas_md5):
        with self.changed:
            row = self.rows.get(key)
            # A comparison is with what is there: where nothing is, everything is published.
            if row and cas_md5 and cas_md5 != row["md5"] and not self.ignore_cas:
                raise Refusal(500, 20005, "resource conflict", "Cas publish fail, server md5 may have changed.")
            if not row:
                row = {"id": self.next_id, "tenant": key[0], "group": key[1], "dataId": key[2], "type": "text"}
                self.next_id += 1
            content_md5 = hashlib.md5(content.encode()).hexdigest()
            self.rows[key] = {**row, "content": content, "md5": content_md5}
            self.save()

    def remove(self, key):
        with self.changed:
            if self.rows.pop(key, None):
                self.save()

    def get(self, key):
        with self.changed:
            return self.rows.get(key)

    def search(self, key, blur):
        def like(pattern):  # SQL's LIKE, with * for %
            parts = (".*" if c == "*" else "." if c == "_" else re.escape(c) for c in pattern)
            return re.compile("".join(parts) if blur else re.escape(pattern), re.DOTALL)

        group, data_id = like(key[1]), like(key[2])
        with self.changed:
            return [
                row
                for (tenant, row_group, row_id), row in self.rows.items()
                if tenant == key[0] and group.fullmatch(row_group) and data_id.fullmatch(row_id)
            ]

    def await_change(self, md5_of, hold):
        """Keys whose content has another MD5 than told; empty after `hold` seconds without one."""
        until = time.monotonic() + hold
        with self.changed:
            while True:
                other = [key for key, md5 in md5_of.items() if self.rows.get(key, {}).get("md5", "") != md5]
                left = until - time.monotonic()
                if other or left <= 0:
                    return other
                self.changed.wait(left)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    configs = None
    user = None
    hold_min = 10.0
    tokens = set()

    def log_message(self, *_):
        pass

    def respond(self, status, body, content_type="text/plain;charset=UTF-8"):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def respond_json(self, value, status=200):
        self.respond(status, json.dumps(value), "application/json")

    def handle_call(self):
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.fields = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        v3 = url.path.startswith("/nacos/v3/")
        try:
            if "x-www-form-urlencoded" in (self.headers.get("Content-Type") or ""):
                if len(body) > FORM_BYTES_MAX:
                    raise Refusal(400, 10000, "parameter missing")
                self.fields.update(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
            route = self.ROUTES.get((self.command, url.path))
            if not route:
                raise Refusal(404, None, "no such interface")
            if route not in (Handler.login,):
                self.check_user()
            route(self)
        except Refusal as refusal:
            if v3 and refusal.code is not None:
                self.respond_json(
                    {"code": refusal.code, "message": refusal.message, "data": refusal.data}, refusal.status
                )
            else:
                self.respond(refusal.status, f"caused: {refusal.data or refusal.message};")

    do_GET = do_POST = do_DELETE = handle_call

    # --- users

    def check_user(self):
        if not self.user:
            return
        token = self.headers.get("accessToken") or self.fields.get("accessToken")
        if token in self.tokens or (self.fields.get("username"), self.fields.get("password")) == self.user:
            return
        raise Refusal(403, 403, "token invalid!" if token else "user not found!")

    def login(self):
        if not self.user or (self.fields.get("username"), self.fields.get("password")) != self.user:
            raise Refusal(403, 403, "unknown user!")
        token = secrets.token_hex(16)
        self.tokens.add(token)
        self.respond_json({"accessToken": token, "tokenTtl": 18000, "globalAdmin": True, "username": self.user[0]})

    # --- what both interfaces have

    def field(self, name):
        value = self.fields.get(name, "")
        if not value:
            raise Refusal(400, 10000, f"Required parameter '{name}' is not present")
        return value

    def key(self, group, space, pattern=False):
        data_id, group = self.field("dataId"), self.field(group)
        for name in (data_id, group):
            if not pattern and not NAME.fullmatch(name):
                raise Refusal(400, 20002, "invalid name")
        return self.fields.get(space) or "public", group, data_id

    def page(self, rows):
        number, size = int(self.field("pageNo")), int(self.field("pageSize"))
        return {
            "totalCount": len(rows),
            "pageNumber": number,
            "pagesAvailable": -(-len(rows) // size),
            "pageItems": rows[(number - 1) * size : number * size],
        }

    def publish(self, key):
        self.configs.publish(key, self.field("content"), self.headers.get("casMd5"))

    # --- v1

    def v1_key(self, pattern=False):
        return self.key("group", "tenant", pattern)

    def v1_get(self):
        search = self.fields.get("search")
        if search:
            rows = self.configs.search(self.v1_key(pattern=True), search == "blur")
            # Its searches read fewer columns than they answer with.
            return self.respond_json(self.page([{**row, "md5": None} for row in rows]))
        row = self.configs.get(self.v1_key())
        if self.fields.get("show") == "all":
            return self.respond_json(row) if row else self.respond(200, "")
        if not row:
            return self.respond(404, "config data not exist")
        return self.respond(200, row["content"])

    def v1_publish(self):
        self.publish(self.v1_key())
        self.respond_json(True)

    def v1_remove(self):
        self.configs.remove(self.v1_key())
        self.respond_json(True)

    def v1_listen(self):
        md5_of = {}
        for line in urllib.parse.unquote_plus(self.field("Listening-Configs")).split(LINE_END):
            words = line.split(WORD_END)
            if len(words) >= 3:
                md5_of[words[3] if len(words) > 3 else "public", words[1], words[0]] = words[2]
            elif line:
                raise Refusal(400, 20002, "invalid probeModify")
        held = self.headers.get("Long-Pulling-Timeout")
        hold = max(self.hold_min, int(held) / 1000 - 0.5) if held else 0
        lines = ""
        for space, group, data_id in self.configs.await_change(md5_of, hold):
            words = [data_id, group] + ([space] if space != "public" else [])
            lines += WORD_END.join(words) + LINE_END
        self.respond(200, urllib.parse.quote_plus(lines) + "\n" if lines else "")

    # --- v3

    def v3_key(self, pattern=False):
        return self.key("groupName", "namespaceId", pattern)

    def v3_respond(self, data):
        self.respond_json({"code": 0, "message": "success", "data": data})

    @staticmethod
    def v3_info(row, with_content):
        info = {name: row[name] for name in ("id", "dataId", "md5", "type")}
        info.update(namespaceId=row["tenant"], groupName=row["group"])
        return {**info, "content": row["content"]} if with_content else info

    def v3_get(self):
        row = self.configs.get(self.v3_key())
        if not row:
            raise Refusal(404, 20004, "resource not found", "Config not exist, please publish Config first.")
        self.v3_respond(self.v3_info(row, True))

    def v3_publish(self):
        self.publish(self.v3_key())
        self.v3_respond(True)

    def v3_remove(self):
        self.configs.remove(self.v3_key())
        self.v3_respond(True)

    def v3_list(self):
        rows = self.configs.search(self.v3_key(pattern=True), self.fields.get("search", "blur") == "blur")
        self.v3_respond(self.page([self.v3_info(row, False) for row in rows]))

    ROUTES = {
        ("GET", "/nacos/v1/cs/configs"): v1_get,
        ("POST", "/nacos/v1/cs/configs"): v1_publish,
        ("DELETE", "/nacos/v1/cs/configs"): v1_remove,
        ("POST", "/nacos/v1/cs/configs/listener"): v1_listen,
        ("POST", "/nacos/v1/auth/login"): login,
        ("GET", "/nacos/v3/admin/cs/config"): v3_get,
        ("POST", "/nacos/v3/admin/cs/config"): v3_publish,
        ("DELETE", "/nacos/v3/admin/cs/config"): v3_remove,
        ("GET", "/nacos/v3/admin/cs/config/list"): v3_list,
        ("POST", "/nacos/v3/auth/user/login"): login,
    }


class Server(ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that went away


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data")
    parser.add_argument("--user")
    parser.add_argument("--hold-min-ms", type=int, default=10_000)
    parser.add_argument("--ignore-cas", action="store_true")
    options = parser.parse_args()
    Handler.configs = Configs(options.data, options.ignore_cas)
    Handler.user = tuple(options.user.split(":", 1)) if options.user else None
    Handler.hold_min = options.hold_min_ms / 1000
    server = Server(("127.0.0.1", options.port), Handler)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
