#!/bin/sh
# Installs Ansible with the collection cisco.nxos and nxapi-plumbing for the tests, into
# target/ansible. The package ansible has all collections; three are kept. Needs python3-venv.
set -eu
folder="$(cd "$(dirname "$0")/../.." && pwd)/target/ansible"
if [ -x "$folder/bin/python" ]; then
    exit 0
fi
rm -rf "$folder.new"
python3 -m venv "$folder.new"
"$folder.new/bin/pip" install --quiet --no-deps \
    ansible-core==2.17.14 Jinja2==3.1.6 MarkupSafe==3.0.4 PyYAML==6.0.4 cryptography==43.0.1 cffi==1.17.1 \
    pycparser==2.22 packaging==26.4 resolvelib==1.0.1 \
    nxapi-plumbing==0.5.2 lxml==6.1.3 six==1.17.0 scp==0.16.2 paramiko==3.5.0 bcrypt==4.2.0 pynacl==1.5.0 \
    future==1.0.0 requests==2.34.2 urllib3==2.8.0 idna==3.20 certifi==2026.10.19.post1 charset-normalizer==3.5.3
"$folder.new/bin/pip" download --quiet --no-deps --dest "$folder.new/wheel" ansible==10.7.0
"$folder.new/bin/python" - "$folder.new" <<'END'
import glob, sys, zipfile

folder = sys.argv[1]
kept = tuple(f"ansible_collections/{name}/" for name in ("cisco/nxos", "ansible/netcommon", "ansible/utils"))
with zipfile.ZipFile(glob.glob(f"{folder}/wheel/*.whl")[0]) as wheel:
    wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(kept)])
END
rm -r "$folder.new/wheel"
mv "$folder.new" "$folder"
