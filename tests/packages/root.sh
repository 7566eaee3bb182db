#!/bin/sh
# Makes a small Debian with man, completions of bash and systemd, for tests/packages/run.sh. Most of
# the time is the download. Needs mmdebstrap.
set -eu
places="$(cd "$(dirname "$0")/../.." && pwd)/target/places"
if [ -s "$places/debian.tar" ]; then
    exit 0
fi
mkdir -p "$places"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mmdebstrap --quiet --variant=minbase --include=man-db,bash-completion,systemd "$suite" "$places/new.tar"
mv "$places/new.tar" "$places/debian.tar"
