#!/usr/bin/env python3
"""A host project with this tree as its meson subproject builds the programs of the README and runs the first, as TAP.

embed.py ROOT
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HOST = """project('host', 'cpp', default_options: ['cpp_std=c++20', 'warning_level=3', 'werror=true'])
holdfast_dep = dependency('holdfast', fallback: ['holdfast', 'holdfast_dep'])
executable('host', 'host.cc', dependencies: holdfast_dep)
executable('instance', 'instance.cc', dependencies: holdfast_dep)
"""
EXAMPLE_LINES_MAX = 21


class Report:
    def __init__(self, steps):
        self.number = 0
        self.failed = False
        print(f"1..{steps}", flush=True)

    def step(self, name, command, folder):
        """Runs one command; after a failure the rest counts as failed too."""
        output = ""
        if not self.failed:
            ran = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
            output = ran.stdout
            self.failed = ran.returncode != 0
        self.check(name, not self.failed, output)

    def check(self, name, passed, output=""):
        self.number += 1
        self.failed |= not passed
        print(f"{'ok' if passed else 'not ok'} {self.number} - {name}")
        if not passed:
            for line in output.splitlines()[-60:]:
                print(f"# {line}")
        sys.stdout.flush()


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    readme = (root / "README.md").read_text(encoding="utf-8")
    example, instance = re.findall(r"```cpp\n(.*?)```", readme, re.DOTALL)
    report = Report(6)
    report.check(f"the example of the README has at most {EXAMPLE_LINES_MAX} lines",
                 len(example.splitlines()) <= EXAMPLE_LINES_MAX)
    with tempfile.TemporaryDirectory(prefix="holdfast-embed-") as name:
        folder = pathlib.Path(name)
        (folder / "subprojects").mkdir()
        (folder / "subprojects/holdfast").symlink_to(root)
        (folder / "meson.build").write_text(HOST)
        (folder / "host.cc").write_text(example)
        (folder / "instance.cc").write_text(instance)
        # The host's own build: nothing of the surrounding one may reach it but the compiler.
        for variable in ("MESONINTROSPECT", "MESON_BUILD_ROOT", "MESON_SOURCE_ROOT", "DESTDIR"):
            os.environ.pop(variable, None)
        setup = ["meson", "setup", "build", "--force-fallback-for=holdfast", "--buildtype=plain",
                 "-Dholdfast:tools=false", "-Dholdfast:bench=false", "-Dholdfast:tests=false",
                 "-Dholdfast:sim=false"]
        report.step("a host configures with the tree as its subproject", setup, folder)
        report.step("the examples compile without a warning and link",
                    ["ninja", "-C", "build", "host", "instance"], folder)
        program = str(folder / "build/host")
        report.step("it runs", [program], folder)
        report.step("it runs again on the store that it left", [program], folder)
        report.check("the store is where the example put it",
                     not report.failed and (folder / "state/journal").is_dir())
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
