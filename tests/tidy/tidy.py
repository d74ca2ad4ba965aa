#!/usr/bin/env python3
"""The rules of the tree that no compiler knows, as TAP: one line per rule, the offences below it.

tidy.py [ROOT]                checks the tree
tidy.py --fill [ROOT]         fills the test column of docs/architecture/properties.md

The floors: a file may include its own floor and lower ones, as the table FLOORS says. Exceptions stand in
exceptions.txt beside this file: `rule path reason`, few and each with its reason.
"""

import pathlib
import re
import subprocess
import sys

# folder: what its files may include besides "holdfast/…" and "absl/…". A trailing slash means every file
# directly in that folder; a name means that one header. The longest folder that fits a file is its floor.
FLOORS = {
    "include/holdfast": [],
    "journal/base": ["journal/base/"],
    "journal/format": ["journal/base/", "journal/format/"],
    "journal/io": ["journal/base/", "journal/io/"],
    "journal": ["journal/base/", "journal/format/", "journal/io/aligned_buffer.h",
                "journal/io/read_ahead.h", "journal/io/read_window.h", "journal/io/storage.h",
                "journal/"],
    "index": ["journal/base/", "journal/format/record_ref.h", "index/"],
    "recovery": ["journal/base/", "journal/format/", "journal/io/aligned_buffer.h",
                 "journal/io/read_window.h", "journal/io/storage.h", "journal/", "recovery/"],
    "meta": ["journal/base/", "meta/", "meta/http/", "meta/backends/"],
    "meta/http": ["journal/base/", "meta/http/"],
    "meta/backends": ["journal/base/", "meta/", "meta/http/", "meta/backends/"],
    "stores": ["journal/base/", "journal/format/", "journal/record_sink.h", "journal/state_machine.h",
               "journal/batch_draft.h", "journal/engine_clock.h", "journal/live_bytes.h",
               "journal/record_block.h", "index/", "meta/cached_meta.h",
               "meta/membership.h", "meta/meta_key.h", "meta/meta_pages.h",
               "meta/meta_text.h", "meta/meta_writer.h", "stores/"],
    "runtime": ["journal/base/", "stores/", "meta/membership.h", "meta/meta_key.h", "meta/meta_pages.h",
                "meta/meta_text.h", "meta/meta_writer.h", "meta/http/", "runtime/", "runtime/a2a/"],
    "tools": ["*"],
    "bench": ["*"],
    "tests": ["*"],
}
# The composition roots know more than their floor.
ALSO_MAY = {
    "stores/engine.cc": ["journal/", "recovery/", "journal/io/open_storage.h", "journal/io/storage.h", "meta/"],
    "stores/local_stores.h": ["meta/journal_meta.h"],
    "stores/memory_engine.cc": ["meta/memory_meta.h"],
    "stores/store_factory.cc": ["meta/", "meta/http/tls_options.h", "meta/http/transport.h"],
    "meta/journal_meta.cc": ["journal/format/", "journal/", "index/"],
    "meta/journal_meta.h": ["journal/format/", "journal/", "index/"],
}
# Folders that nothing outside them includes; tests may look at all of them.
TOP_FLOORS = ("tools/", "bench/", "tests/")

# A library behind one file: header prefix to the files that may include it.
BEHIND_ONE_FILE = {
    "liburing": ["journal/io/uring_storage.cc"],
    "xxhash": ["journal/base/checksum.cc"],
    "nlohmann/": ["journal/base/json.cc"],
    "zstd": ["journal/format/compression.cc", "tools/event_source.cc"],
    "CLI/": ["tools/cli.cc", "tools/cli_dlq.cc", "tools/cli_parts.cc", "bench/main.cc"],
    "boost/": ["meta/http/beast_", "meta/http/parse_from.h", "meta/http/wire.",
               "tests/meta/http/wire_test.cc"],
    "benchmark/": ["bench/micro/"],
    "openssl/": ["meta/http/tls.cc", "meta/md5.cc", "tests/support/test_ca.h"],
}

PRODUCT = ("include/", "journal/", "index/", "recovery/", "meta/", "stores/", "runtime/", "tools/")
# What comes in by constructor: pattern to (folders that are checked, files where it is at home).
BANNED_CALLS = {
    r"::now\(": (PRODUCT + ("tests/", "bench/"), ["journal/base/real_clock.cc", "bench/stopwatch.h"]),
    r"\b(?:u|nano)?sleep(?:_for|_until)?\(|\bSleepFor\(": (PRODUCT + ("tests/", "bench/"), []),
    r"\brandom_device\b|\bs?rand\(": (PRODUCT + ("tests/", "bench/"), ["journal/base/seeded_rng.cc"]),
    r"\bgetenv\(": (PRODUCT + ("tests/", "bench/"), ["tools/main.cc", "tests/support/"]),
    r"(?<![\w.>:])(?:::)?open(?:at)?\(|\bfopen\(|\b[io]?fstream\b": (PRODUCT, ["journal/io/"]),
    r"\b[fs]?n?printf\(|\bstd::c(?:out|err)\b": (PRODUCT, ["tools/main.cc"]),
    r"\bthrow\b": (PRODUCT + ("tests/", "bench/"), []),
    r"\bcatch \(": (PRODUCT, ["meta/http/", "tools/cli.cc"]),
}

VAGUE_WORDS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "impl"}
MIRRORED = ("journal/", "index/", "recovery/", "meta/", "stores/", "runtime/", "tools/")
FILE_BYTES_MAX = 1 << 20
COLUMNS_MAX = 100
PROPERTIES = "docs/architecture/properties.md"


class Tree:
    def __init__(self, root):
        self.root = root
        self.exceptions = self.read_exceptions()
        self.used = set()
        self.paths = sorted(p for p in self.list_files() if (root / p).is_file())
        self.texts = {}
        self.codes = {}

    def list_files(self):
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                                cwd=self.root, capture_output=True, text=True)
        if listed.returncode == 0 and listed.stdout:
            return listed.stdout.splitlines()
        files = (p.relative_to(self.root) for p in self.root.rglob("*"))
        return [str(p) for p in files if not p.parts[0].startswith(("build", ".git", ".cache"))]

    def read_exceptions(self):
        lines = (self.root / "tests/tidy/exceptions.txt").read_text(encoding="utf-8").splitlines()
        return {tuple(line.split(None, 2)[:2]) for line in lines if line and not line.startswith("#")}

    def excepted(self, rule, path):
        if (rule, path) in self.exceptions:
            self.used.add((rule, path))
            return True
        return False

    def text(self, path):
        if path not in self.paths:
            raise FileNotFoundError(path)
        if path not in self.texts:
            self.texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self.texts[path]

    def code(self, path):
        """The lines of a C++ file with comments and the insides of literals blanked."""
        if path not in self.codes:
            blank = lambda match: re.sub(r"[^\n]", " ", match.group()) if match.group()[0] == "/" else '""'
            literal = r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*(?:.|\n)*?\*/'
            self.codes[path] = re.sub(literal, blank, self.text(path)).splitlines()
        return self.codes[path]

    def sources(self, *folders):
        return [p for p in self.paths if p.endswith((".h", ".cc")) and p.startswith(folders or ("",))]


def includes(tree, path):
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        if match := re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line):
            yield number, match[1], match[2]


def fits(target, allowed):
    return any(entry == "*" or target == entry or
               (entry.endswith("/") and target.startswith(entry) and "/" not in target[len(entry):])
               for entry in allowed)


def floor_of(path):
    folders = [f for f in FLOORS if path.startswith(f + "/")]
    return max(folders, key=len, default=None)


def check_floors(tree):
    for path in tree.sources():
        floor = floor_of(path)
        if floor is None:
            yield f"{path}: in no folder of the floor table"
            continue
        allowed = FLOORS[floor] + ALSO_MAY.get(path, [])
        for number, _, target in includes(tree, path):
            inside = floor_of(target)
            if target.startswith(TOP_FLOORS) and not path.startswith((inside + "/", "tests/")):
                yield f"{path}:{number}: nothing outside includes {target}"
            elif inside is not None and inside != "include/holdfast" and not fits(target, allowed):
                yield f"{path}:{number}: {floor} does not know {target}"
            elif target.startswith("include/") or target.startswith(".."):
                yield f"{path}:{number}: {target} is not spelled from the root"
            elif inside is None and "/" not in target and (tree.root / path).parent.joinpath(target).exists():
                yield f"{path}:{number}: {target} is not spelled from the root"


def check_stores_apart(tree):
    stores = {p.removesuffix(".h") for p in tree.sources("stores/") if p.endswith("_store.h")}
    for path in tree.sources("stores/"):
        own = path.rsplit(".", 1)[0]
        if own not in stores:
            continue
        for number, _, target in includes(tree, path):
            if target.removesuffix(".h") in stores - {own}:
                yield f"{path}:{number}: a store does not know another: {target}"


def check_libraries(tree):
    for path in tree.sources():
        for number, _, target in includes(tree, path):
            for prefix, homes in BEHIND_ONE_FILE.items():
                if target.startswith(prefix) and not path.startswith(tuple(homes)):
                    yield f"{path}:{number}: {target} belongs behind {', '.join(homes)}"


def check_public_headers(tree):
    for path in tree.sources("include/"):
        for number, bracket, target in includes(tree, path):
            standard = bracket == "<" and re.fullmatch(r"[a-z_]+", target)
            if not standard and not target.startswith(("absl/status/", "absl/time/", "holdfast/")):
                yield f"{path}:{number}: a public header does not include {target}"
        for number, line in enumerate(tree.code(path), 1):
            if "absl::string_view" in line:
                yield f"{path}:{number}: std::string_view in our signatures"


def check_banned_calls(tree):
    for pattern, (folders, homes) in BANNED_CALLS.items():
        for path in tree.sources(*folders):
            if homes and path.startswith(tuple(homes)):
                continue
            for number, line in enumerate(tree.code(path), 1):
                if match := re.search(pattern, line):
                    yield f"{path}:{number}: {match.group()}"


def check_names(tree):
    for path in tree.paths:
        words = set(re.split(r"[_\-.]", path.rsplit("/", 1)[-1].lower()))
        if vague := words & VAGUE_WORDS:
            yield f"{path}: '{vague.pop()}' is not an idea"
    for path in tree.sources():
        for number, line in enumerate(tree.code(path), 1):
            match = re.match(r"\s*(?:class|struct|enum class)\s+(?:[A-Z_]+\s+)*(\w+)", line)
            if match and (vague := {w.lower() for w in re.findall("[A-Z][a-z]+", match[1])} & VAGUE_WORDS):
                yield f"{path}:{number}: {match[1]}: '{vague.pop()}' is not an idea"


def check_dropped_results(tree):
    for path in tree.sources():
        lines = tree.text(path).splitlines()
        for number, line in enumerate(lines, 1):
            if not re.search(r"\(void\)\s*(?!sizeof)[\w:.>*-]+\(", line):
                continue
            end = next(i for i in range(number - 1, len(lines)) if ";" in lines[i])
            if not any(re.search(r"//\s*\w", text) for text in lines[number - 1:end + 1]):
                yield f"{path}:{number}: (void) without a reason beside it"


def check_one_definition(tree):
    """Two types of one name in one namespace: the linker takes either, and nobody says a word."""
    defined = {}
    for path in tree.sources(*PRODUCT, "bench/"):
        scope = []
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if match := re.match(r"namespace ?([\w:]*) ?{", line):
                scope.append(match[1])
            elif line.startswith("}  // namespace"):
                scope.pop()
            elif match := re.match(r"(?:struct|class) (\w+) (?:final )?(?::[^:].*)?{", line):
                if scope and all(scope):
                    defined.setdefault("::".join(scope + [match[1]]), []).append(f"{path}:{number}")
    for name, places in sorted(defined.items()):
        for place in places[1:]:
            yield f"{place}: {name} is defined at {places[0]} too"


def check_mirrors(tree):
    for path in tree.paths:
        if path.endswith(".cc") and path.startswith(MIRRORED):
            test = f"tests/{path.removesuffix('.cc')}_test.cc"
            if test not in tree.paths:
                yield f"{path}: no {test}"


def check_record_numbers(tree):
    catalogue = "journal/format/records.h"
    form = "journal/format/FORMAT.md"
    numbers = dict(re.findall(r"\bk(\w+) = (\d+),", re.search(r"enum class RecordType[^}]*}", tree.text(catalogue))[0]))
    names = dict(re.findall(r"kType = RecordType::k(\w+);\s*static constexpr const char\* kName = \"([^\"]+)\"",
                            tree.text(catalogue)))
    in_code = {(int(numbers[type_name]), name) for type_name, name in names.items()}
    rows = re.findall(r"^\|\s*(\d+)\s*\|\s*`?([a-z][a-z-]+)`?\s*\|", tree.text(form), re.MULTILINE)
    in_document = {(int(number), name) for number, name in rows}
    for number, name in sorted(in_code - in_document):
        yield f"{form}: no row `| {number} | {name} |`"
    for number, name in sorted(in_document - in_code):
        yield f"{catalogue}: no record {number} {name}"


def proofs(tree):
    """Property id to the names of the tests that say they prove it."""
    found = {}
    for path in tree.sources("tests/"):
        ids = []
        for line in tree.text(path).splitlines():
            if match := re.match(r"\s*//(?:.*\.)? Proves: (.+)", line):
                ids += re.findall(r"\b[A-Z]\d+\b", match[1])
            elif match := re.match(r"\s*(?:TYPED_)?TEST(?:_[FP])?\((\w+), (\w+)", line):
                for name in ids:
                    found.setdefault(name, set()).add(f"{match[1]}.{match[2]}")
                ids = []
            elif ids and not re.match(r"\s*//|\s*(?:TYPED_)?TEST(?:_[FP])?\($|\s*$", line):
                ids = []
    return found


def property_rows(text):
    """(line index, id, sentence, tests) of each row of the table."""
    for index, line in enumerate(text.splitlines()):
        if match := re.fullmatch(r"\| ([A-Z]\d+) \| (.*?) \| (.*?) \|", line):
            yield index, match[1], match[2], match[3]


def in_column(tests):
    return ", ".join(f"`{name}`" for name in sorted(tests))


def check_properties(tree):
    found = proofs(tree)
    rows = {name: tests for _, name, _, tests in property_rows(tree.text(PROPERTIES))}
    for name in sorted(found.keys() - rows.keys()):
        yield f"{PROPERTIES}: no row {name}, which {in_column(found[name])} prove"
    for name, tests in rows.items():
        expected = in_column(found.get(name, ()))
        if "`" in tests and tests != expected:
            yield f"{PROPERTIES}: {name} names other tests than those that prove it (tidy.py --fill)"
        elif "`" not in tests and expected:
            yield f"{PROPERTIES}: {name} is proven by {expected} (tidy.py --fill)"


def fill_properties(tree):
    found = proofs(tree)
    lines = tree.text(PROPERTIES).splitlines()
    for index, name, sentence, tests in property_rows(tree.text(PROPERTIES)):
        column = in_column(found.get(name, ()))
        if column or "`" in tests:
            lines[index] = f"| {name} | {sentence} | {column or '–'} |"
    (tree.root / PROPERTIES).write_text("\n".join(lines) + "\n", encoding="utf-8")


def check_floor_table(tree):
    table = re.findall(r"^\|\s*\d+\s*\|\s*`([\w/]+)/`", tree.text("README.md"), re.MULTILINE)
    known = {"include/holdfast", *table}
    for folder in table:
        if not (tree.root / folder).is_dir():
            yield f"README.md: the floor table names {folder}/, which is not there"
    for folder in sorted({p.rsplit("/", 1)[0] for p in tree.sources()}):
        if not any(folder == k or folder.startswith(k + "/") for k in known):
            yield f"README.md: the floor table does not name {folder}/"


def check_sizes(tree):
    for path in tree.paths:
        size = (tree.root / path).stat().st_size
        if size > FILE_BYTES_MAX:
            yield f"{path}: {size} bytes, over 1 MiB"


def check_lines(tree):
    for path in tree.sources():
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if len(line) > COLUMNS_MAX and "http" not in line:
                yield f"{path}:{number}: {len(line)} columns"


def check_unfinished(tree):
    words = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"])
    for path in tree.paths:
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if re.search(rf"\b(?:{words})\b", line):
                yield f"{path}:{number}: unfinished"


def check_locks(tree):
    for path in tree.sources(*PRODUCT):
        text = tree.text(path)
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r"\s*(?:mutable )?Mutex (\w+);(.*)", line)
            if match and f"GUARDED_BY({match[1]})" not in text and "//" not in match[2]:
                yield f"{path}:{number}: {match[1]} does not say what it guards"


def check_standing_alone(tree):
    for path in tree.paths:
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if re.search(r"\.\./shared\b|/wor" + r"k/", line):
                yield f"{path}:{number}: points outside the tree"


RULES = {
    "floors": ("includes go down the floors only", check_floors),
    "stores": ("no store knows another", check_stores_apart),
    "libraries": ("each library stands behind its one file", check_libraries),
    "public": ("public headers know std, Abseil's status and time, and themselves", check_public_headers),
    "calls": ("time, chance, disk and output come in by constructor", check_banned_calls),
    "names": ("no file or type has a vague name", check_names),
    "results": ("a dropped result has its reason beside it", check_dropped_results),
    "definitions": ("a type is defined once", check_one_definition),
    "mirrors": ("every source has its test", check_mirrors),
    "numbers": ("FORMAT.md lists the records of the catalogue", check_record_numbers),
    "properties": ("the property table names the tests that prove", check_properties),
    "table": ("the floor table of README.md is the tree", check_floor_table),
    "sizes": ("no file over 1 MiB", check_sizes),
    "lines": ("no line over 100 columns", check_lines),
    "unfinished": ("nothing is marked unfinished", check_unfinished),
    "locks": ("every mutex says what it guards", check_locks),
    "alone": ("the tree stands alone", check_standing_alone),
}


def offences_of(tree, rule, check):
    try:
        for offence in check(tree):
            if not tree.excepted(rule, re.split(r"[:\s]", offence)[0]):
                yield offence
    except FileNotFoundError as missing:
        yield f"{missing}: is not there"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--fill"]
    root = pathlib.Path(arguments[0] if arguments else __file__).resolve()
    tree = Tree(root if arguments else root.parents[2])
    if "--fill" in sys.argv:
        fill_properties(tree)
        return 0
    failed = False
    print(f"1..{len(RULES) + 1}")
    for index, (rule, (sentence, check)) in enumerate(RULES.items(), 1):
        offences = list(offences_of(tree, rule, check))
        failed |= bool(offences)
        print(f"{'not ok' if offences else 'ok'} {index} - {sentence}")
        for offence in offences:
            print(f"# {offence}")
    stale = sorted(tree.exceptions - tree.used)
    print(f"{'not ok' if stale else 'ok'} {len(RULES) + 1} - every exception is needed")
    for rule, path in stale:
        print(f"# exceptions.txt: {rule} {path}")
    return 1 if failed or stale else 0


if __name__ == "__main__":
    sys.exit(main())
