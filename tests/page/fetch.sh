#!/usr/bin/env bash
# Fetches axe-core, which checks the accessibility of the page: tests/page/fetch.sh FOLDER. Its
# licence is MPL-2.0, so it is downloaded and not kept here. The folder is left alone if it has the
# script already.
set -euo pipefail
folder=${1:-target/axe}
[ -s "$folder/axe-4.14.1.js" ] && exit 0
mkdir -p "$folder"
python3 - "$folder" <<'PYTHON'
import hashlib, io, os, sys, tarfile, urllib.request

folder = sys.argv[1]
url = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz"
sha256 = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
package = urllib.request.urlopen(url, timeout=120).read()
found = hashlib.sha256(package).hexdigest()
if found != sha256:
    sys.exit(f"{url}: SHA-256 is {found}, not {sha256}")
with tarfile.open(fileobj=io.BytesIO(package)) as content:
    script = content.extractfile("package/axe.min.js").read()
place = os.path.join(folder, "axe-4.14.1.js")
with open(place + ".new", "wb") as file:
    file.write(script)
os.replace(place + ".new", place)
PYTHON
