#!/bin/sh
# Installs pyfos for the tests, into target/pyfos. Needs python3-venv.
set -eu
folder="$(cd "$(dirname "$0")/../.." && pwd)/target/pyfos"
if [ -x "$folder/bin/python" ]; then
    exit 0
fi
python3 -m venv "$folder.new"
"$folder.new/bin/pip" install --quiet --no-deps pyfos==2.0.0 xmltodict==0.11.0 requests==2.23.0 \
    urllib3==1.25.11 idna==2.10 chardet==3.0.4 certifi==2024.8.30 jsondiff==1.2.0 colorconsole==0.7.2 \
    paramiko==3.5.0 bcrypt==4.2.0 cryptography==43.0.1 pynacl==1.5.0 cffi==1.17.1 pycparser==2.22 six==1.16.0
mv "$folder.new" "$folder"
