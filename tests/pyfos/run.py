"""Runs scripts of pyfos. Each line of standard input has the arguments of one script, parted by tabs.

Each script runs in a process of its own, as from a shell. Its output ends with a line `== end`.
"""

import os
import runpy
import sys
import warnings

warnings.simplefilter("ignore")
import pyfos.utils.brcd_util  # noqa: E402,F401  loaded once for all scripts

for line in sys.stdin:
    words = line.rstrip("\n").split("\t")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.dup2(1, 2)
        sys.stdin = open(os.devnull, encoding="utf-8")
        sys.argv = words
        runpy.run_module("pyfos.utils." + words[0], run_name="__main__")
        sys.exit(0)
    os.waitpid(child, 0)
    print("\n== end", flush=True)
