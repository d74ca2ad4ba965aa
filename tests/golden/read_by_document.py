#!/usr/bin/env python3
"""A second reader, written from journal/format/FORMAT.md and from no code: prints the records of a store.

read_by_document.py STORE [EXPECTED]    one line a record; with EXPECTED compares, as TAP

It checks every seed, check and zero field that the document names. It takes a chain without damage to its end, the
first place without a valid group; it does not decide about torn tails. It reads every checkpoint too, and looks
whether its entries say what the records say that they rest on.
"""

import base64
import ctypes
import ctypes.util
import json
import pathlib
import re
import struct
import sys

XXHASH = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
XXHASH.XXH3_64bits_withSeed.restype = ctypes.c_uint64
XXHASH.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
ZSTD = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
ZSTD.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]

WORD = (1 << 64) - 1
BLOCK = 4096


def check(data, seed):
    return XXHASH.XXH3_64bits_withSeed(data, len(data), seed)


def mix(value):
    value = (value + 0x9E3779B97F4A7C15) & WORD
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & WORD
    return value ^ value >> 31


def u64(data, place):
    return struct.unpack_from("<Q", data, place)[0]


def need(condition, what):
    if not condition:
        raise SystemExit(f"not ok 1 - the store is as the document says\n# {what}")


# --- §6
def read_mark(data):
    need(len(data) == 3 * BLOCK, "MARK: 12,288 bytes")
    statements = []
    for place in (0, BLOCK):
        slot = data[place:place + BLOCK]
        if check(slot[:4088], place) != u64(slot, 4088):
            continue
        need(slot[:8] == b"HFMARK01" and struct.unpack_from("<I", slot, 8)[0] == 1, "MARK: magic, version")
        need(not any(slot[101:4088]), "MARK: zeros")
        names = ("epoch", "synced", "end_segment", "end_offset", "newest", "oldest")
        statement = dict(zip(names, struct.unpack_from("<6Q", slot, 44)))
        statements.append(dict(statement, sequence=u64(slot, 12), salt=u64(slot, 36), clean=slot[92]))
    need(statements, "MARK: a valid slot")
    return max(statements, key=lambda statement: statement["sequence"])


# --- §1, §2
class Segment:
    def __init__(self, path, salt):
        self.data = path.read_bytes()
        self.id = int(path.name[:16], 16)
        header = self.data[:BLOCK]
        need(header[:8] == b"HOLDSEG\n" and check(header[:4088], 0) == u64(header, 4088), f"{path}: header")
        need(struct.unpack_from("<II", header, 8) == (1, 0), f"{path}: version")
        need((u64(header, 32), u64(header, 40)) == (salt, self.id), f"{path}: salt, id")
        need(not any(header[80:4088]), f"{path}: zeros")
        self.salt, self.stamp, self.bytes = salt, u64(header, 48), u64(header, 56)
        self.link = self.read_link()

    def seed(self, place):
        return mix(mix(mix(self.salt) ^ self.stamp) ^ ((self.id << 32) + place))

    # --- §4
    def group(self, place):
        """The header of the group there; None if the place is unstamped."""
        raw = self.data[place:place + 64]
        if len(raw) < 64 or u64(raw, 0) != self.stamp:
            return None
        need(check(raw[:56], self.seed(place)) == u64(raw, 56), f"segment {self.id}, {place}: group check")
        names = ("length", "flags", "batches", "records", "zero", "first", "synced", "promised", "engine")
        group = dict(zip(names, struct.unpack_from("<IHHIIQQQq", raw, 8)))
        need(group["zero"] == 0 and group["flags"] in (0, 1), f"segment {self.id}, {place}: zero, flags")
        need(group["length"] % BLOCK == 0 and place + group["length"] <= self.bytes, f"segment {self.id}: length")
        return group

    # --- §3
    def read_link(self):
        group = self.group(BLOCK)
        if group is None:
            return None
        need((group["flags"], group["length"], group["first"]) == (1, BLOCK, 0), f"segment {self.id}: Link group")
        raw = self.data[BLOCK:2 * BLOCK]
        need(check(raw[72:232], self.seed(4160)) == u64(raw, 64), f"segment {self.id}: Link check")
        need(not any(raw[162:168]) and not any(raw[168 + raw[161]:]), f"segment {self.id}: zeros in the Link")
        names = ("previous", "previous_stamp", "end", "last", "first", "through", "next", "epoch", "id_salt",
                 "wall", "oldest")
        return dict(zip(names, struct.unpack_from("<9QqQ", raw, 72)), why=raw[160])

    def batches(self, end):
        """(first LSN, records, bytes of the records) of every batch before `end`."""
        place = 2 * BLOCK
        while place < end and (group := self.group(place)) is not None:
            batch, last = place + 64, group["first"] + group["records"]
            lsn = group["first"]
            while lsn < last and batch < end:
                raw = bytearray(self.data[batch:batch + 32])
                length, header_check, first, records, flags, _, payload_check = struct.unpack("<IIQHHIQ", raw)
                raw[4:8] = bytes(4)
                need(check(bytes(raw), self.seed(batch)) & 0xFFFFFFFF == header_check, f"{batch}: header check")
                payload = self.data[batch + 32:batch + length]
                need(check(payload, self.seed(batch)) == payload_check, f"{batch}: payload check")
                need(first == lsn and flags == 0, f"{batch}: order of LSNs")
                yield first, records, payload, batch
                lsn += records
                ended, batch = batch + length, (batch + length + 7) // 8 * 8
                need(not any(self.data[ended:batch]), f"{ended}: zeros")
            place += group["length"]
            if lsn == last:
                need(not any(self.data[batch:place]), f"{batch}: padding")


def chain(segments, mark):
    """From the oldest to the newest, by the Links; and where each ends."""
    newest = max((s for s in segments.values() if s.link), key=lambda s: (s.link["epoch"], s.id))
    oldest = max(newest.link["oldest"], mark["oldest"])
    found = [(newest, len(newest.data))]
    while (link := found[0][0].link)["previous"] and found[0][0].id > oldest:
        before = segments[link["previous"]]
        need(before.stamp == link["previous_stamp"], f"segment {before.id}: life")
        found.insert(0, (before, link["end"]))
    return found


# --- §5
class Fields:
    def __init__(self, data):
        self.data, self.place = data, 0

    def u(self):
        value = shift = 0
        while True:
            byte = self.data[self.place]
            self.place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                need((byte > 0 or shift == 7) and value <= WORD, "varint: the shortest form")
                return value

    def i(self):
        raw = self.u()
        return raw >> 1 ^ -(raw & 1)

    def b(self):
        length = self.u()
        self.place += length
        need(self.place <= len(self.data), "bytes: inside the fields")
        return self.data[self.place - length:self.place]

    def event(self):
        kind = self.u()
        stored = self.b()
        if not kind & 1:
            need(len(stored) == kind >> 1, "event: size")
            return stored, None
        event = ctypes.create_string_buffer(max(1, kind >> 1))
        need(ZSTD.ZSTD_decompress(event, kind >> 1, stored, len(stored)) == kind >> 1, "event: zstd frame")
        return event.raw[:kind >> 1], len(stored)

    def u64(self):
        self.place += 8
        need(self.place <= len(self.data), "u64: inside the fields")
        return u64(self.data, self.place - 8)

    def answers(self):
        found, lsn = [], 0
        for _ in range(self.u()):
            distance = self.u()
            lsn += distance
            need(distance > 0 and lsn <= WORD, "answers: ascending")
            found.append((lsn, self.u64()))
        return found

    def read(self, form):
        if form.endswith("?"):
            present = self.data[self.place]
            self.place += 1
            need(present in (0, 1), "optional: 0 or 1")
            return getattr(self, form[:-1])() if present else None
        return getattr(self, form)()


def catalogue(document):
    """number to (name, [(form, field)]), from the table of §5."""
    rows = re.findall(r"^\| (\d+) \| `([a-z-]+)` \| 1 \| (.*) \|$", document, re.MULTILINE)
    records = {}
    for number, name, fields in rows:
        parts = [part.split(" (")[0].split() for part in fields.split(", ")]
        records[int(number)] = name, [(part[0], part[-1]) for part in parts]
    return records


def answers_in(lsn, record):
    """(LSN, hash) of the remembered acknowledgements that a record shows."""
    fields = Fields(record[8:])
    if record[0] == 12:
        return fields.answers()
    if record[0] != 7:
        return []
    name, epoch, client, reason, key = (fields.read(form) for form in ("b", "u", "b", "u", "b?"))
    if reason != 1 or key is None:
        return []
    return [(lsn, check(key, check(client, check(name, epoch))))]


def text_of(value):
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return ",".join(f"{lsn}:{answer:016x}" for lsn, answer in value) or "-"
    if re.fullmatch(rb"[A-Za-z0-9._:/@+#-]+", value) and value != b"-" and not value.startswith(b"base64:"):
        return value.decode()
    try:
        return json.dumps(value.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(value).decode()


def line_of(lsn, record, records):
    """None: a record that may be skipped."""
    kind, version, flags, length = struct.unpack_from("<BBHI", record)
    need(flags in (0, 1) and len(record) == 8 + length, "record: flags, length")
    if flags == 1 and (kind not in records or version != 1):
        return None
    need(version == 1 and kind in records, "record: type, version")
    name, forms = records[kind]
    fields = Fields(record[8:])
    words = [str(lsn), name]
    for form, field in forms:
        value = fields.read(form)
        if form != "event":
            words.append(f"{field}={text_of(value)}")
            continue
        event, stored = value
        words.append(f"event={len(event)}")
        if stored is not None:
            words.append(f"stored={stored}")
        words.append(f"payload={text_of(event)}")
    need(fields.place == length, f"record {lsn}: nothing behind the last field")
    return " ".join(words)


# --- §8
def zstd(stored, size):
    out = ctypes.create_string_buffer(max(1, size))
    need(ZSTD.ZSTD_decompress(out, size, stored, len(stored)) == size, "block: zstd frame")
    return out.raw[:size]


class Checkpoint:
    def __init__(self, path, salt):
        data = path.read_bytes()
        self.name, self.salt = path.name, salt
        self.begin = int(path.name[:16], 16)  # "from"
        header, footer = data[:BLOCK], data[-BLOCK:]
        need(len(data) % BLOCK == 0 and len(data) >= 2 * BLOCK, f"{path}: length")
        need(header[:8] == b"HOLDCKP\n" and footer[:8] == b"HOLDCKE\n", f"{path}: magic")
        need(check(header[:4088], self.seed(0)) == u64(header, 4088), f"{path}: header check")
        need(check(footer[:4088], self.seed(2**32 - 1)) == u64(footer, 4088), f"{path}: footer check")
        need(struct.unpack_from("<II", header, 8) == (1, 0) and not any(header[72:4088]), f"{path}: header")
        need(u64(header, 32) == self.begin and u64(header, 40) != 0, f"{path}: from, epoch")
        self.pinned = u64(header, 64)
        version, count, begin, self.through, blocks, end = struct.unpack_from("<IIQQQQ", footer, 8)
        need((version, begin) == (1, self.begin) and count <= 64 and self.through >= begin, f"{path}: footer")
        need(not any(footer[48 + 24 * count:4088]), f"{path}: zeros in the footer")
        self.sections, self.entries = {}, {}
        for index in range(count):
            number, zero, about, size = struct.unpack_from("<IIQQ", footer, 48 + 24 * index)
            need(zero == 0 and number > max(self.sections, default=0) and about <= size, f"{path}: sections")
            self.sections[number] = size
        self.read_blocks(data, blocks, end)
        need((end + BLOCK - 1) // BLOCK * BLOCK == len(data) - BLOCK, f"{path}: the footer is the next block")
        need(not any(data[end:-BLOCK]), f"{path}: zeros before the footer")

    def seed(self, place):
        return mix(mix(mix(self.salt) ^ self.begin) ^ place)

    def read_blocks(self, data, blocks, end):
        place = BLOCK
        bytes_of = dict.fromkeys(self.sections, b"")
        for k in range(blocks):
            number, section, size, length, compressed = struct.unpack_from("<IIIIB", data, place)
            stored = data[place + 32:place + 32 + length]
            seed = check(data[place:place + 24], self.seed(k + 1))
            need(check(stored, seed) == u64(data, place + 24), f"{self.name}: block {k}")
            need(number == k and section in self.sections and 1 <= size <= 262144, f"{self.name}: block {k}")
            need(compressed in (0, 1) and not any(data[place + 17:place + 24]), f"{self.name}: block {k}")
            need(length < size if compressed else length == size, f"{self.name}: block {k}: lengths")
            entries = zstd(stored, size) if compressed else stored
            bytes_of[section] += entries
            self.entries.setdefault(section, []).extend(self.read_entries(section, entries))
            ended, place = place + 32 + length, (place + 32 + length + 7) // 8 * 8
            need(not any(data[ended:place]), f"{self.name}: zeros behind block {k}")
        need(place == end, f"{self.name}: where the last block ends")
        need({s: len(b) for s, b in bytes_of.items()} == self.sections, f"{self.name}: bytes of the sections")

    def read_entries(self, section, data):
        fields, found = Fields(data), []
        while fields.place < len(data):
            if section == 12:
                found.append(self.answer_entry(fields))
            else:
                found.append(self.payload_entry(fields) if section in (5, 8) else self.position_entry(fields))
        return found

    def answer_entry(self, fields):
        entry = {"of": fields.u(), "hash": fields.u64(), "behind": fields.u(), "segment": fields.u()}
        return dict(entry, lsn=entry["of"] + entry["behind"])

    def payload_entry(self, fields):
        entry = {"id": fields.b()}
        for name in ("segment", "offset", "length", "bytes", "payload_lsn", "state_lsn", "epoch"):
            entry[name] = fields.u()
        entry.update(due=fields.i(), attempt=fields.u())
        entry["offset"] *= 8
        entry["state_lsn"] += entry["payload_lsn"]
        return entry

    def position_entry(self, fields):
        kind = fields.u()
        need(kind in (1, 2, 3), f"{self.name}: entry {kind} of section 1")
        if kind in (1, 3):
            entry = {"key": (fields.b(), fields.b(), fields.u()), "position": (fields.u(), fields.u())}
            return dict(entry, lsn=fields.u(), segment=fields.u(), bytes=fields.u())
        entry = {"source": (fields.b(), fields.u(), fields.u())}
        for mark in ("seen", "cursor"):
            lsn = fields.u()
            entry[mark] = (lsn, fields.u(), fields.u(), fields.u()) if lsn else None
        return entry

    def check_against(self, batches):
        """batches: LSN to (segment, offset, length, [(type, fields)]) of the batch that holds it."""
        for section, entries in self.entries.items():
            for entry in entries:
                lsn = entry.get("payload_lsn", entry.get("lsn", 0))
                need(max(lsn, entry.get("state_lsn", 0)) <= self.through, f"{self.name}: an entry is too new")
                if section == 1 or lsn not in batches:
                    continue
                segment, offset, length, kind, record = batches[lsn]
                if section == 12:
                    need(segment == entry["segment"], f"{self.name}: segment of LSN {lsn}")
                    need((entry["of"], entry["hash"]) in answers_in(lsn, record), f"{self.name}: answer in LSN {lsn}")
                    continue
                here = (entry["segment"], entry["offset"], entry["length"])
                need(here == (segment, offset, length), f"{self.name}: place of LSN {lsn}: {here}")
                need(kind in (section, 5 if section == 5 else 8), f"{self.name}: type of LSN {lsn}")
                need(Fields(record[8:]).b() == entry["id"], f"{self.name}: id of LSN {lsn}")
                need(entry["bytes"] <= len(record) < entry["bytes"] * 1.01 + 1, f"{self.name}: bytes of {lsn}")


def check_checkpoints(store, salt, batches):
    folder = store / "checkpoint"
    if not folder.is_dir():
        return []
    paths = [path for path in folder.iterdir() if re.fullmatch(r"[0-9a-f]{16}\.ckp", path.name)]
    checkpoints = [Checkpoint(path, salt) for path in sorted(paths)]
    for checkpoint in checkpoints:
        checkpoint.check_against(batches)
    return checkpoints


def lines(store, records):
    mark = read_mark((store / "MARK").read_bytes())
    paths = [path for path in (store / "journal").iterdir() if re.fullmatch(r"[0-9a-f]{16}\.seg", path.name)]
    segments = {segment.id: segment for segment in (Segment(path, mark["salt"]) for path in paths)}
    last, batches = None, {}
    for segment, end in chain(segments, mark):
        link = segment.link
        need(last is None or link["last"] == last, f"segment {segment.id}: the last LSN before it")
        due = link["next"] if link["through"] == link["first"] - 1 else link["first"]
        for first, count, payload, offset in segment.batches(end):
            need(first == due, f"LSN {due} must come, {first} stands there")
            place = 0
            for lsn in range(first, first + count):
                length = 8 + struct.unpack_from("<I", payload, place + 4)[0]
                record = payload[place:place + length]
                batches[lsn] = segment.id, offset, 32 + len(payload), record[0], record
                if (line := line_of(lsn, record, records)) is not None:
                    yield line
                place += length
            need(place == len(payload), f"LSN {first}: the records fill their batch")
            last = first + count - 1
            due = link["next"] if last == link["through"] else last + 1
    need(last >= mark["synced"], "S of MARK is there")
    for checkpoint in check_checkpoints(store, mark["salt"], batches):
        need(checkpoint.through <= last, f"{checkpoint.name}: the journal reaches it")


def main(store, expected=None):
    here = pathlib.Path(__file__).resolve().parent
    records = catalogue((here / "../../journal/format/FORMAT.md").read_text(encoding="utf-8"))
    found = list(lines(pathlib.Path(store), records))
    if expected is None:
        print("\n".join(found))
        return 0
    print("1..1")
    same = found == pathlib.Path(expected).read_text(encoding="utf-8").splitlines()
    print("ok" if same else "not ok", f"1 - the document alone reads the {len(found)} records of the store")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
