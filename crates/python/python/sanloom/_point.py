"""A program that simulates one point of a sweep: the point arrives on standard input."""

import pickle
import sys

from ._sweep import _work

if __name__ == "__main__":
    point = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(pickle.dumps(_work(point)))
