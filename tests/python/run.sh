#!/bin/sh
# Builds the wheel from the artifacts of `cargo build --release`, installs it into an environment
# that has nothing else, and into that of the tests (tests/python/install.sh), and tests it.
set -eu
cd "$(dirname "$0")/../.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
python=target/python/bin
rm -rf target/wheels target/wheel-only
"$python/maturin" build --quiet --release --locked --manifest-path crates/python/Cargo.toml \
    --target-dir target --out target/wheels
python3 -m venv target/wheel-only
target/wheel-only/bin/pip install --quiet --no-index target/wheels/sanloom-*.whl
target/wheel-only/bin/python tests/python/alone.py
target/wheel-only/bin/sanloom check examples/core-edge.toml >/dev/null
"$python/pip" install --quiet --no-index --force-reinstall target/wheels/sanloom-*.whl
SANLOOM="$PWD/target/release/sanloom" PATH="$PWD/$python:$PATH" \
    "$python/python" -m pytest -q -p no:cacheprovider "${@:-tests/python}"
