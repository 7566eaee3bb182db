#!/bin/sh
# Installs maturin and the readers of Arrow tables, Dask and Ray, and the checkers of types and of
# the JSON Schema, into target/python. Needs python3-venv.
set -eu
folder="$(cd "$(dirname "$0")/../.." && pwd)/target/python"
if cmp -s "$0" "$folder/installed"; then
    exit 0
fi
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
    maturin==1.16.0 polars==2.1.0 pandas==3.1.1 numpy==2.4.6 pyarrow==26.0.1 dask==2026.8.0 distributed==2026.8.0 ray==2.60.0 \
    pytest==9.2.0 mypy==2.4.1 nbclient==0.11.0 nbformat==5.11.1 ipykernel==7.4.0 matplotlib==3.11.2 \
    taplo==0.9.3 tombi==1.9.6
cp "$0" "$folder/installed"
