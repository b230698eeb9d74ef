#!/usr/bin/env bash
# Records what a C program takes of the card: no Rust, no test, only LD_PRELOAD. On the simulated
# H200 unless GPUMEM_DEVICE names another device. Prints the summary, and fails if it is not the one
# in recorded.txt. Needs cargo and a C compiler.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CC:-cc}" -std=c11 -O1 -o "$work/program" c/program.c c/library.c -ldl
preload=$(cargo build -q --locked -p gpumem-preload --message-format=json | sed -n 's/.*"filenames":\["\([^"]*libgpumem_preload\.so\)".*/\1/p')

GPUMEM_PRELOAD=$work/figures GPUMEM_DEVICE=${GPUMEM_DEVICE:-sim:h200} LD_PRELOAD=$preload "$work/program"
cat "$work"/figures/program-*.txt
diff -u recorded.txt "$work"/figures/program-*.txt
