"""The command `sanloom` of the wheel."""

import sys

from ._sanloom import main as _run


def main() -> int:
    return _run(["sanloom", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
