#!/usr/bin/env bash
# Make a virtual environment that has pip, also where Debian and Ubuntu left `python3 -m venv` incomplete.
# usage: make_venv.sh PYTHON FOLDER
set -euo pipefail
python=$1
folder=$2

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif command -v sudo >/dev/null; then
        if [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
    else return 1; fi
}
works() { "$folder/bin/python" -m pip --version >/dev/null 2>&1; }

works && exit 0
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "cosim needs Python 3.11 or newer, $python is $("$python" --version 2>&1 || true); run: make venv PYTHON=python3.12" >&2
    exit 1
fi
# --clear: a failed attempt leaves a folder with python but no pip.
"$python" -m venv --clear "$folder" >/dev/null 2>&1 && works && exit 0
echo "$python -m venv does not work here, trying the package python3-venv" >&2
if command -v apt-get >/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    as_root apt-get update -qq >&2 || true
    for package in python3-venv "python$version-venv"; do
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >&2 || true
        "$python" -m venv --clear "$folder" >/dev/null 2>&1 && works && exit 0
    done
fi
echo "trying virtualenv" >&2
"$python" -m virtualenv --clear "$folder" >&2 && works && exit 0
rm -rf "$folder"
echo "cannot make a virtual environment: install python3-venv (sudo apt-get install python3-venv), then run make again" >&2
exit 1
