#!/bin/sh
# Install from this folder alone, without any network: ./install.sh site|server FOLDER [PYTHON]
# FOLDER becomes a virtual environment. Every file is held to its digest first; keep SHA256SUMS, or its own digest, by
# another way than the bundle's, if the way that the bundle came is not trusted.
set -eu
what="${1:-}"; target="${2:-}"; python="${3:-python3}"
case "$what" in site | server) ;; *) what="" ;; esac
if [ -z "$what" ] || [ -z "$target" ]; then
    echo "usage: ./install.sh site|server FOLDER [PYTHON]" >&2
    exit 2
fi
# Both are meant from where the command is typed.
case "$target" in /*) ;; *) target="$PWD/$target" ;; esac
case "$python" in /*) ;; */*) python="$PWD/$python" ;; esac
cd "$(dirname "$0")"
sha256sum --check --quiet --strict SHA256SUMS || { echo "the bundle is not what was made: nothing is installed" >&2; exit 1; }
"$python" -m venv "$target"
# Of what PIP_* and the host's settings say nothing holds: no index, no constraint of another's.
env PIP_CONFIG_FILE=/dev/null PIP_NO_INPUT=1 "$target/bin/python" -m pip install --quiet --isolated \
    --disable-pip-version-check --no-index --no-deps --find-links wheels --require-hashes -r "$what.txt"
"$target/bin/python" -m pip check
echo "installed: $("$target/bin/ballast-site" --version) in $target"
