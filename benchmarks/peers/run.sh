#!/usr/bin/env bash
# The side-by-side benchmark, from nothing: sets up WORKDIR where that is not done, then measures.
#
#     bash benchmarks/peers/run.sh WORKDIR [--rounds 5] [--sizes 50 1000 5000] [--json FILE]
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work="${1:?usage: run.sh WORKDIR [options of compare.py]}"
shift
if [ ! -e "$work/ready" ]; then
    bash "$here/setup.sh" "$work"
    touch "$work/ready"
fi
exec "$work/moonwake/bin/python" "$here/compare.py" "$work" "$@"
