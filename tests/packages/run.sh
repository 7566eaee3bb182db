#!/usr/bin/env bash
# Installs sanloom from each package of target/packages into an empty place, and uses it there:
# tests/packages/run.sh [archive] [deb] [container] [crates]. `cargo xtask dist` makes the packages,
# and tests/packages/root.sh the small Debian for the Debian package. The places need root, for
# chroot; another user needs sudo, which this script calls. What a place leaves behind after a
# failure is removed; its logs stay in target/places.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
        echo "tests/packages/run.sh needs root for chroot; install sudo, or run it as root" >&2
        exit 1
    }
    exec sudo env "PATH=$PATH" "USER_HOME=$HOME" "$PWD/tests/packages/run.sh" "$@"
fi
dist=$PWD/target/packages
places=$PWD/target/places
process=
root=
store=$places/containers
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

say() { printf '%s: %s (%s s)\n' "$place" "$1" "$SECONDS"; }
fail() {
    printf '%s: %s\n' "$place" "$1" >&2
    [ -z "${2:-}" ] || cat "$2" >&2
    exit 1
}

# Runs a command as the user who called sudo, so that no file of target belongs to root.
as_user() {
    if [ "${SUDO_UID:-0}" = 0 ]; then
        "$@"
    else
        sudo -u "#$SUDO_UID" -g "#$SUDO_GID" env "PATH=$PATH" "HOME=${USER_HOME:-/}" "$@"
    fi
}

# Without a daemon, and with a store of its own.
buildah=(buildah --storage-driver vfs --root "$store/root" --runroot "$store/run")

# Ends the lab of a place, and removes the place.
clean() {
    local status=$?
    trap - EXIT INT TERM
    if [ -n "$process" ] && kill "$process" 2>/dev/null; then
        for _ in $(seq 50); do
            kill -0 "$process" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    fi
    if [ -d "$store" ]; then
        "${buildah[@]}" rm --all >/dev/null 2>&1 || true
        "${buildah[@]}" rmi --all --force >/dev/null 2>&1 || true
        rm -rf "$store" || true
    fi
    [ -z "$root" ] || rm -rf "$root" || true
    if [ "${SUDO_UID:-0}" != 0 ]; then
        chown -R "$SUDO_UID:$SUDO_GID" "$places" || true
    fi
    exit "$status"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Checks and simulates a lab, and runs one for a moment. The arguments are the folder of the labs
# and the command that runs sanloom in the place.
main_job() {
    local labs=$1
    shift
    [ "$("$@" --version)" = "sanloom $version" ] || fail "wrong version"
    "$@" check "$labs/core-edge.toml" >/dev/null
    "$@" sim "$labs/core-edge.toml" --no-report >"$places/sim.txt" 2>/dev/null
    grep -q 'MB/s' "$places/sim.txt" || fail "the simulation prints no throughput" "$places/sim.txt"
    local lab=("$labs/fcoe-lab.toml" --set live.folder=/tmp/sanloom-packages --set live.metrics=127.0.0.1:0)
    : >"$places/ready"
    "$@" up "${lab[@]}" --log warn --ready-fd 1 >"$places/ready" 2>"$places/log" &
    process=$!
    for _ in $(seq 200); do
        [ ! -s "$places/ready" ] && kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    grep -q ready "$places/ready" || fail "the lab is not ready" "$places/log"
    "$@" show "${lab[0]}" ports --live "${lab[@]:1}" >"$places/ports.txt"
    grep -q 'sw1:0' "$places/ports.txt" || fail "the running lab shows no ports" "$places/ports.txt"
    "$@" down "${lab[@]}" >/dev/null
    wait "$process" || fail "the lab ended with an error" "$places/log"
    process=
    say "check, sim and up work"
}

# The static program without a C library, a shell or a device.
archive() {
    root=$places/archive
    rm -rf "$root"
    mkdir -p "$root/usr/local" "$root/tmp"
    tar -xzf "$dist"/sanloom-"$version"-*-linux.tar.gz --strip-components=1 -C "$root/usr/local"
    main_job /usr/local/share/doc/sanloom/examples chroot "$root" /usr/local/bin/sanloom
}

deb() {
    local package=("$dist"/sanloom_"$version"-*.deb) unit more
    root=$places/deb
    rm -rf "$root"
    mkdir -p "$root/dev"
    tar -xf "$places/debian.tar" -C "$root" --exclude='./dev/*'
    touch "$root/dev/null"
    chmod 666 "$root/dev/null"
    cp "${package[0]}" "$root/sanloom.deb"
    chroot "$root" dpkg -i /sanloom.deb >"$places/dpkg.log" 2>&1 || fail "dpkg failed" "$places/dpkg.log"
    grep -q ^sanloom: "$root/etc/passwd" || fail "the package makes no user" "$places/dpkg.log"
    main_job /usr/share/doc/sanloom/examples chroot --userspec=sanloom:sanloom "$root" /usr/bin/sanloom
    chroot "$root" env MANPAGER=cat man sanloom-volume-create >"$places/man.txt"
    grep -q -- '--pool' "$places/man.txt" || fail "the man page is not readable" "$places/man.txt"
    # As after Tab.
    chroot "$root" bash -c '
        . /usr/share/bash-completion/bash_completion
        _completion_loader sanloom || true
        COMP_WORDS=(sanloom che) COMP_CWORD=1
        _sanloom sanloom che sanloom
        [ "${COMPREPLY[*]}" = check ]
    ' || fail "bash does not complete"
    cp "$root/usr/share/doc/sanloom/examples/core-edge.toml" "$root/etc/sanloom/"
    for more in ethernet ports; do
        install -D -m 644 -t "$root/etc/systemd/system/sanloom@$more.service.d" "$root/usr/share/doc/sanloom/$more.conf"
    done
    for unit in core-edge ethernet ports; do
        chroot "$root" systemd-analyze verify "sanloom@$unit.service" >"$places/verify.txt" 2>&1 || fail "the unit is wrong" "$places/verify.txt"
        [ ! -s "$places/verify.txt" ] || fail "the unit has warnings" "$places/verify.txt"
    done
    # Exposure, at most 10 for a service without any protection, here in tenths.
    for unit in core-edge:15 ports:18 ethernet:25; do
        chroot "$root" systemd-analyze security --no-pager --offline=yes --threshold="${unit#*:}" "sanloom@${unit%:*}.service" \
            >"$places/security.txt" 2>&1 || fail "the sandbox is too open" "$places/security.txt"
        say "$(tail -n 1 "$places/security.txt" | sed 's/^[^a-zA-Z]*//')"
    done
    # Drop-ins are not those of the lab that runs.
    rm -r "$root"/etc/systemd/system/sanloom@*.service.d
    cp tests/packages/probe.sh "$root/probe"
    tests/packages/boot.sh "$PWD/target/places/deb" >"$places/boot.txt" 2>&1 || true
    grep -q 'the service works' "$root/probe.log" 2>/dev/null || fail "the service does not work" "$root/probe.log"
    say "the service works under systemd"
    lintian --allow-root --fail-on error,warning "${package[0]}" || fail "lintian complains"
    chroot "$root" dpkg --purge sanloom >"$places/dpkg.log" 2>&1 || fail "dpkg failed" "$places/dpkg.log"
    [ ! -e "$root/usr/bin/sanloom" ] && [ ! -e "$root/usr/share/doc/sanloom" ] || fail "the purged package leaves files"
    rm -rf "$root"
}

# Without a registry, because the image starts from nothing.
container() {
    local name
    "${buildah[@]}" bud --isolation chroot --quiet -t sanloom "$dist/container" >"$places/image.txt"
    name=$("${buildah[@]}" from sanloom)
    main_job /usr/share/doc/sanloom/examples "${buildah[@]}" run --isolation chroot "$name" -- /usr/bin/sanloom
    "${buildah[@]}" rm "$name" >/dev/null
    "${buildah[@]}" rmi --force sanloom >/dev/null
}

# The crates as they are packed. Libraries from crates.io are those of target/release.
crates() {
    root=$places/crates
    rm -rf "$root"
    mkdir -p "$root"
    [ "${SUDO_UID:-0}" = 0 ] || chown "$SUDO_UID:$SUDO_GID" "$root"
    # Packed files have the same old time always, by which cargo would keep what it built before.
    find "$dist/unpacked" -name '*.rs' -exec touch {} +
    as_user cargo install --quiet --locked --offline --path "$dist/unpacked/sanloom-$version" --root "$root" --target-dir target
    main_job examples "$root/bin/sanloom"
}

mkdir -p "$places"
[ $# -gt 0 ] || set -- archive deb container crates
for place; do
    "$place"
    [ -z "$root" ] || rm -rf "$root"
    root=
done
