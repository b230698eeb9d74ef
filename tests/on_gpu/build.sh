#!/usr/bin/env bash
# Builds what run.sh runs on a machine that has a GPU and no Rust: tests/on_gpu/build.sh DIR
#
# DIR gets the test programs (release, stripped), the accepted snapshots and run.sh itself, at most
# 90 MiB. Take it to the machine as it is; it runs at any path. Needs cargo, python3 and strip.
#
# ON_GPU_ONLY builds some of the programs: their folders, with blanks between.
set -euo pipefail
(($# == 1)) || { echo "usage: $0 DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
workspace=$(cd "$here/../.." && pwd)
mkdir -p "$1"
kit=$(cd "$1" && pwd)
most_mib=90

# The package's folder, its test target, `real` where it runs on nothing else, and arguments.
programs=(
    "tests device_on_gpu real"
    # One device is compared with one: the test of two is the simulation's own, and so is what first
    # writes commit. What must fail is run by another test.
    "tests hooks both --skip=each_device_has_its_own_budget --skip=has_a_kernel_that_fails --skip=first_writes --skip=a_stream_that_"
    "examples/kv-cache memory both"
    "examples/training memory both"
    "examples/cudarc memory both"
    "examples/cuda-c memory both"
    "examples/policy-comparison memory both"
    "examples/shared-card memory both"
    "examples/burn memory both"
)

# The executable that a build's messages name.
executable() {
    python3 -c '
import json, sys
lines = (json.loads(line) for line in sys.stdin if line.startswith("{"))
found = [line["executable"] for line in lines
         if line["reason"] == "compiler-artifact" and line["executable"] and line["profile"]["test"]]
assert len(found) == 1, f"one test program, not {found}"
print(found[0])'
}

rm -rf "$kit/bin" "$kit/accepted" "$kit/programs"
mkdir -p "$kit/bin" "$kit/accepted"
for program in "${programs[@]}"; do
    read -r folder target only arguments <<<"$program"
    [[ -z ${ON_GPU_ONLY:-} || " $ON_GPU_ONLY " == *" $folder "* ]] || continue
    echo "building $folder/$target"
    cd "$workspace/$folder"
    built=$(cargo test --release --locked --test "$target" --no-run --message-format=json | executable)
    name=$(basename "$folder")--$target
    strip -o "$kit/bin/$name" "$built"
    printf '%s\t%s\t%s\n' "$name" "$only" "$arguments" >>"$kit/programs"
    [[ ! -d tests/snapshots ]] || cp -r tests/snapshots "$kit/accepted/$name"
done
install -m 755 "$here/run.sh" "$kit/run.sh"
git -C "$workspace" describe --always --dirty >"$kit/version" 2>/dev/null || echo unknown >"$kit/version"

size=$(du -sm "$kit/bin" "$kit/accepted" | awk '{ all += $1 } END { print all }')
echo "$kit: $size MiB, $(wc -l <"$kit/programs") programs"
((size <= most_mib)) || { echo "error: more than $most_mib MiB" >&2; exit 1; }
