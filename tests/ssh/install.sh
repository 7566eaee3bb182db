#!/bin/sh
# Installs netmiko and the zone driver of OpenStack's volume service for the tests, into
# target/ssh-clients. Only the packages that both import are installed. Needs python3-venv.
set -eu
folder="$(cd "$(dirname "$0")/../.." && pwd)/target/ssh-clients"
if [ -x "$folder/bin/python" ]; then
    exit 0
fi
rm -rf "$folder.new"
python3 -m venv "$folder.new"
"$folder.new/bin/pip" install --quiet --no-deps \
    netmiko==4.8.0 paramiko==3.5.0 bcrypt==4.2.0 cryptography==43.0.1 pynacl==1.5.0 cffi==1.17.1 pycparser==2.22 \
    pyserial==3.5 scp==0.16.2 textfsm==2.1.0 PyYAML==6.0.4 six==1.17.0 \
    cinder==25.1.0 certifi==2026.10.19.post1 charset-normalizer==3.5.3 debtcollector==3.1.0 decorator==5.3.1 \
    dnspython==2.9.2 eventlet==0.41.3 fasteners==0.20 futurist==3.5.0 greenlet==3.5.6 idna==3.20 iso8601==2.1.0 \
    msgpack==1.2.4 netaddr==1.3.0 oslo.concurrency==7.6.1 oslo.config==10.7.0 oslo.context==6.5.0 oslo.i18n==6.9.0 \
    oslo.log==8.3.2 oslo.serialization==5.11.0 oslo.utils==10.2.0 oslo.versionedobjects==3.12.0 packaging==26.4 \
    pbr==7.1.3 psutil==7.2.2 pyparsing==3.3.3 python-dateutil==4.0.0 requests==2.34.2 rfc3986==2.0.0 \
    stevedore==5.10.0 tenacity==9.2.1 tooz==9.1.0 typing_extensions==4.16.0 urllib3==2.8.0 WebOb==1.8.11 wrapt==2.5.2
mv "$folder.new" "$folder"
