#!/usr/bin/env bash
# Find libngspice or install it. Never fails: without it everything up to the netlist still works.
set -u

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif command -v sudo >/dev/null; then
        if [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
    else return 1; fi
}

find_library() {
    if [ -n "${NGSPICE_LIBRARY_PATH:-}" ]; then
        [ -f "$NGSPICE_LIBRARY_PATH" ] && { echo "$NGSPICE_LIBRARY_PATH"; return 0; }
        echo "NGSPICE_LIBRARY_PATH=$NGSPICE_LIBRARY_PATH is no file: correct or unset it" >&2
    fi
    local folder file
    for folder in ${CONDA_PREFIX:+"$CONDA_PREFIX/lib"} ${HOMEBREW_PREFIX:+"$HOMEBREW_PREFIX/lib"} \
        /usr/local/lib "/usr/lib/$(uname -m)-linux-gnu" /usr/lib64 /usr/lib /opt/homebrew/lib /opt/local/lib; do
        for file in "$folder"/libngspice.so* "$folder"/libngspice*.dylib; do
            [ -f "$file" ] && { echo "$file"; return 0; }
        done
    done
    file=$({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | awk '/libngspice\.so/ { print $NF; exit }')
    [ -n "$file" ] && echo "$file"
}

if library=$(find_library); then
    echo "ngspice library: $library"
    exit 0
fi
if command -v apt-get >/dev/null; then
    echo "libngspice is missing, installing the package libngspice0"
    as_root apt-get update -qq || true
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libngspice0 || true
elif command -v brew >/dev/null; then
    brew install libngspice || true
fi
if library=$(find_library); then
    echo "ngspice library: $library"
    exit 0
fi
cat >&2 <<'TEXT'
libngspice is missing and could not be installed. Compiling to a netlist works; simulation does not until you run
    Debian/Ubuntu:  sudo apt-get install libngspice0
    Fedora:         sudo dnf install libngspice
    macOS:          brew install libngspice
or set NGSPICE_LIBRARY_PATH to the library file.
TEXT
