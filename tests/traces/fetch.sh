#!/usr/bin/env bash
# Fetches the public trace with which cache policies are compared: tests/traces/fetch.sh FOLDER. It
# is part of the source package of libcachesim on PyPI, whose licence does not fit this project, so
# it is downloaded and not kept here. The folder is left alone if it has the trace already.
set -euo pipefail
folder=${1:-target/traces}
name=cloudPhysicsIO.oracleGeneral.bin
[ -s "$folder/$name" ] && exit 0
mkdir -p "$folder"
python3 - "$folder" "$name" <<'PYTHON'
import hashlib, os, sys, tarfile, urllib.request

folder, name = sys.argv[1:]
url = (
    "https://files.pythonhosted.org/packages/af/c4/"
    "45905a3f8bc84593550af94a882795e78f2f2b200f90737ff8e4bdb71d5c/libcachesim-0.3.5.tar.gz"
)
sha256 = "a1512046ab45bc0e5f0a81e5673cd02209477ffeefcb17a05fa714a06371abfb"
package = os.path.join(folder, "libcachesim.tar.gz")
urllib.request.urlretrieve(url, package)
with open(package, "rb") as content:
    found = hashlib.sha256(content.read()).hexdigest()
if found != sha256:
    sys.exit(f"{url}: SHA-256 is {found}, not {sha256}")
with tarfile.open(package) as content:
    member = next(m for m in content if m.name.endswith("/" + name))
    data = content.extractfile(member).read()
with open(os.path.join(folder, name), "wb") as trace:
    trace.write(data)
os.remove(package)
PYTHON
