#!/usr/bin/env python3
"""Counts the test cases of meson's logs. Used by tools/test.

run_summary.py targets BUILD SUITE     the ninja targets of the test programs of a suite
run_summary.py show RESULT SECONDS     failures, skips and one line of counts for one run
run_summary.py total RESULTS           adds up every run; the last line is "N passed, N failed"

A case is one gtest case, one TAP line, or a plain program. A program that dies, times out or fails without a
failing case counts as one failure, and so does a gtest program that passed without running a case.
"""

import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

OUTPUT_LINES_MAX = 100


class Run:
    def __init__(self, folder):
        self.passed = 0
        self.failures = []  # (name, text)
        self.skips = []  # (name, reason)
        if (folder / "failed").exists():
            self.failures.append((folder.name, "did not build"))
            return
        programs = read_programs(folder / "testlog.json")
        cases = read_cases(folder / "testlog.junit.xml", programs)
        if not programs:
            self.failures.append((folder.name, "no test ran"))
        for program in programs:
            self.add_program(program, cases[program["name"]])

    def add_program(self, program, cases):
        name = program["name"].split(" / ")[-1]
        result = program["result"]
        output = tail(program.get("stdout", "") + program.get("stderr", ""))
        failed = [(f"{name} {case}", text or output) for case, kind, text in cases if kind == "failed"]
        self.passed += sum(kind == "passed" for _, kind, _ in cases)
        self.skips += [(f"{name} {case}", text) for case, kind, text in cases if kind == "skipped"]
        if result not in ("OK", "SKIP") and not failed:
            failed = [(name, f"{result}, exit code {program.get('returncode')}\n{output}")]
        elif result == "OK" and not cases:
            failed = [(name, "passed without running a case")]
        self.failures += failed


def read_programs(path):
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def read_cases(path, programs):
    """Name of the program, as in testlog.json, to [(case, "passed" | "failed" | "skipped", text)]."""
    cases = {program["name"]: [] for program in programs}
    if not path.exists():
        return cases
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        # gtest: "project.program.GtestSuite"; TAP: "project.program"; all plain programs: "project".
        _, _, place = suite.get("name", "").partition(".")
        for case in suite.findall("testcase"):
            name = case.get("name", "")
            if not place:
                verdict, text = judge(case)
                cases[name].append(("", verdict if ended_well(name, programs) else "failed", text))
                continue
            program = next(p for p in cases if place == p or place.startswith(p + "."))
            label = f"{place[len(program) + 1:]}.{name}".strip(".")
            cases[program].append((label, *judge(case)))
    return cases


def ended_well(name, programs):
    return all(p["result"] in ("OK", "SKIP", "EXPECTEDFAIL") for p in programs if p["name"] == name)


def judge(case):
    broken = [element for tag in ("failure", "error") for element in case.findall(tag)]
    if broken:
        return "failed", tail("\n".join(e.get("message") or e.text or "" for e in broken))
    skipped = case.find("skipped")
    if skipped is not None or case.get("status") == "notrun":
        said = [] if skipped is None else [skipped.get("message"), skipped.text, case.findtext("system-out")]
        reason = next(filter(None, said), "")
        return "skipped", " ".join(reason.split()) or "disabled"
    return "passed", ""


def tail(text):
    lines = text.rstrip().splitlines()
    cut = len(lines) - OUTPUT_LINES_MAX
    return "\n".join(([f"… {cut} lines before"] if cut > 0 else []) + lines[max(cut, 0):])


def counts(passed, failed, skipped):
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def show(folder, seconds):
    run = Run(folder)
    for name, text in run.failures:
        print(f"FAILED {name}".rstrip())
        print("\n".join("    " + line for line in text.splitlines()))
    for name, reason in run.skips:
        print(f"skipped {name.rstrip()}: {reason}")
    print(f"{folder.name}: {counts(run.passed, len(run.failures), len(run.skips))} in {seconds} s")


def total(results):
    runs = [Run(folder) for folder in sorted(results.iterdir()) if folder.is_dir()]
    passed = sum(run.passed for run in runs)
    failed = sum(len(run.failures) for run in runs)
    print(counts(passed, failed, sum(len(run.skips) for run in runs)))
    return 0 if passed and not failed else 1


def targets(build, suite):
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", str(build)], check=True,
                                      capture_output=True, text=True).stdout)
    programs = {pathlib.Path(test["cmd"][0]) for test in tests
                if any(name.split(":")[-1] == suite for name in test["suite"])}
    if not programs:
        sys.exit(f"no test in suite {suite}")
    for program in sorted(programs):
        print(program.relative_to(build.resolve()))


def main():
    command, path, *rest = sys.argv[1:]
    path = pathlib.Path(path)
    if command == "targets":
        return targets(path, *rest)
    if command == "show":
        return show(path, *rest)
    return total(path)


if __name__ == "__main__":
    sys.exit(main())
