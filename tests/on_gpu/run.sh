#!/usr/bin/env bash
# Runs each test simulated and on a real GPU, and compares what both say: tests/on_gpu/run.sh DIR
#
# DIR comes from build.sh. Prints a table (test · simulated · real · equal) and the counts; ends
# with 1 if a test failed or two summaries differ, with 2 if it could not run. What the programs
# printed and the summaries are left in DIR/out. Needs bash and the usual tools, no Rust.
#
# ON_GPU_SIMULATED and ON_GPU_REAL name other devices than sim:h200 and cuda:0.
set -euo pipefail
(($# == 1)) && [[ -f $1/programs ]] || { echo "usage: $0 DIR (made by build.sh)" >&2; exit 2; }
kit=$(cd "$1" && pwd)
simulated=${ON_GPU_SIMULATED:-sim:h200}
real=${ON_GPU_REAL:-cuda:0}
out=$kit/out
rm -rf "$out"
mkdir -p "$out"/{simulated,real}

# Runs a program on a device. Its summaries become snapshots in a folder of their own: insta takes
# INSTA_WORKSPACE_ROOT for the workspace, and writes what is new where it is told to always update.
run() { # side device name [argument…]
    local root=$out/$1/$3
    mkdir -p "$root"
    (
        cd "$root"
        # GPUMEM_* of the caller would change what is compared.
        for variable in "${!GPUMEM_@}"; do unset "$variable"; done
        GPUMEM_DEVICE=$2 INSTA_WORKSPACE_ROOT=$root INSTA_UPDATE=always INSTA_FORCE_PASS=1 \
            "$kit/bin/$3" --test-threads=1 "${@:4}"
    ) >"$out/$1/$3.log" 2>&1 || true
}

# The tests of a log, `name<TAB>how it ended`: ok, failed or ignored.
results() {
    sed -nE 's/^test (.*[^ ]) +\.\.\. (ok|FAILED|ignored).*/\1\t\2/p' "$1" | sed 's/\tFAILED$/\tfailed/'
}

# How one ended; - where it did not run.
result() { # side name test
    results "$out/$1/$2.log" | awk -F '\t' -v "test=$3" '$1 == test { found = $2 } END { print found ? found : "-" }'
}

# A summary's text: the snapshot's file without its head.
text() { awk 'heads >= 2; /^---$/ { heads += 1 }' "$1"; }

same() { cmp -s <(text "$1") <(text "$2"); }

snapshot() { # folder test
    [[ -d $1 ]] || return 0
    # `module::test::policy` is in the file TARGET__module__test__policy.snap.
    find "$1" -name "*__${2//::/__}.snap" -print -quit
}

tests=0 failures=0 compared=0 different=0 unaccepted=0
rows=()
while IFS=$'\t' read -r name only arguments; do
    echo "running $name" >&2
    sides=(simulated real)
    [[ $only != real ]] || sides=(real)
    read -ra given <<<"$arguments"
    for side in "${sides[@]}"; do
        own=()
        # A test whose name ends so needs a GPU.
        [[ $side == real ]] || own=(--skip=_on_gpu)
        run "$side" "${!side}" "$name" "${given[@]}" "${own[@]}"
    done
    mapfile -t found < <(for side in "${sides[@]}"; do results "$out/$side/$name.log"; done | cut -f1 | sort -u)
    if ((${#found[@]} == 0)); then
        rows+=("$name"$'\t'"did not run"$'\t'"did not run"$'\t'"NO")
        ((failures += 1))
        tail -n 5 "$out/real/$name.log" >&2
        continue
    fi
    for test in "${found[@]}"; do
        ((tests += 1))
        on_sim=-
        [[ $only == real ]] || on_sim=$(result simulated "$name" "$test")
        on_gpu=$(result real "$name" "$test")
        equal=-
        a=$(snapshot "$out/simulated/$name" "$test")
        b=$(snapshot "$out/real/$name" "$test")
        accepted=$(snapshot "$kit/accepted/$name" "$test")
        if [[ $only != real && -n $a$b$accepted ]]; then
            ((compared += 1))
            if [[ -n $a && -n $b ]] && same "$a" "$b"; then
                equal=yes
            else
                equal=NO
                ((different += 1))
            fi
            # The reviewed text must be the one that the simulated run gives today.
            if [[ -z $a || -z $accepted ]] || ! same "$a" "$accepted"; then
                on_sim+=", not as accepted"
                ((unaccepted += 1))
            fi
        fi
        [[ ($on_sim == ok* || $only == real || $test:: == *_on_gpu::*) && $on_gpu == ok ]] ||
            ((failures += 1))
        rows+=("${name%%--*} $test"$'\t'"$on_sim"$'\t'"$on_gpu"$'\t'"$equal")
    done
done <"$kit/programs"

{
    printf 'test\tsimulated\treal\tequal\n'
    ((${#rows[@]} == 0)) || printf '%s\n' "${rows[@]}"
} | awk -F '\t' '
    { line[NR] = $0; for (i = 1; i <= NF; i++) if (length($i) > width[i]) width[i] = length($i) }
    END {
        for (n = 1; n <= NR; n++) {
            split(line[n], cell, FS)
            printf "%-*s · %-*s · %-*s · %s\n", width[1], cell[1], width[2], cell[2], width[3], cell[3], cell[4]
        }
    }'

while read -r a; do
    b=$out/real/${a#"$out/simulated/"}
    [[ -f $b ]] && ! same "$a" "$b" || continue
    printf '\n%s\n' "${a#"$out/simulated/"}"
    diff --label simulated --label real -u0 <(text "$a") <(text "$b") | grep -v '^@@' || true
done < <(find "$out/simulated" -name '*.snap' | sort)

printf '\n%s: %d tests on %s and %s, %d failed; %d summaries compared, %d equal, %d different; %d not as accepted\n' \
    "$(cat "$kit/version")" "$tests" "$simulated" "$real" "$failures" "$compared" "$((compared - different))" "$different" "$unaccepted"
((tests > 0 && failures == 0 && different == 0 && unaccepted == 0))
