#!/usr/bin/python3
"""etcd3gw_suite.py HOST PORT: the tests that come with Debian's etcd3gw, all of them, against a server.

The package keeps its tests but not what they are run with; two of its imports are stood in for here by
the standard library, which is all that they are used for. Ends with `N ran`; exit code 0: all passed.
"""

import sys
import types
import unittest

HOST, PORT = sys.argv[1], int(sys.argv[2])


class BaseTestCase(unittest.TestCase):
    def useFixture(self, fixture):
        raise NotImplementedError("not used by these tests")


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


stand_in("oslotest", base=stand_in("oslotest.base", BaseTestCase=BaseTestCase))
stand_in("testtools", testcase=stand_in("testtools.testcase", unittest=unittest))

import etcd3gw.client  # noqa: E402
import urllib3  # noqa: E402

Client = sys.modules["etcd3gw.client"].Etcd3Client
made = Client.__init__


# The tests take the address for granted that clients have by default, and ask there whether to run.
def made_here(self, **more):
    made(self, **(more | {"host": HOST, "port": PORT, "api_path": "/v3/"}))


def run(name):
    suite = unittest.TestLoader().loadTestsFromName("etcd3gw.tests." + name)
    return unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)


def main():
    results = [run("test_client")]
    Client.__init__ = made_here
    asked = urllib3.PoolManager.request
    urllib3.PoolManager.request = lambda *arguments, **more: None
    sys.modules.pop("etcd3gw.tests.test_etcd3gw", None)
    import etcd3gw.tests.test_etcd3gw  # noqa: F401
    urllib3.PoolManager.request = asked
    results.append(run("test_etcd3gw"))
    print(sum(result.testsRun - len(result.skipped) for result in results), "ran")
    # One that was skipped has shown nothing.
    return 0 if all(result.wasSuccessful() and not result.skipped for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
