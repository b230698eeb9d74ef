#!/usr/bin/env bash
# Checks run.sh where there is no GPU, over a program that pretends to be tests: two devices that
# say the same pass, and each way of not saying the same fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kit=$(mktemp -d)
trap 'rm -rf "$kit"' EXIT
mkdir -p "$kit/bin" "$kit/accepted/pretender--memory"
printf 'pretender--memory\t\n' >"$kit/programs"
echo self-test >"$kit/version"

snap() { printf -- '---\nsource: %s\n---\npeak allocated  %s\n' "$1" "$2"; }
snap here 1 >"$kit/accepted/pretender--memory/memory__fits__caching.snap"

# What it says on the second device, and how the test ends there, are in two files.
cat >"$kit/bin/pretender--memory" <<'PROGRAM'
#!/usr/bin/env bash
figure=1 ended=ok
[[ $GPUMEM_DEVICE == sim:h200 ]] || { figure=$(cat "$0.figure"); ended=$(cat "$0.ended"); }
mkdir -p "$INSTA_WORKSPACE_ROOT/tests/snapshots"
[[ -z $figure ]] || printf -- '---\nsource: there\n---\npeak allocated  %s\n' "$figure" \
    >"$INSTA_WORKSPACE_ROOT/tests/snapshots/memory__fits__caching.snap"
echo 'running 2 tests'
echo 'test fits::caching  ... ok'
[[ -z $ended ]] || echo "test no_leak        ... $ended"
PROGRAM
chmod +x "$kit/bin/pretender--memory"

expect() { # status, figure, how the other test ends, a line of the output
    echo "$2" >"$kit/bin/pretender--memory.figure"
    echo "$3" >"$kit/bin/pretender--memory.ended"
    local status=0 said
    said=$(GPUMEM_BUDGET=1GiB ON_GPU_REAL=other "$here/run.sh" "$kit" 2>&1) || status=$?
    if [[ $status != "$1" ]] || ! grep -qF -- "$4" <<<"$said"; then
        printf 'figure "%s", ended "%s": status %s, not %s, or no line "%s" in\n%s\n' \
            "$2" "$3" "$status" "$1" "$4" "$said" >&2
        exit 1
    fi
}

expect 0 1 ok "1 summaries compared, 1 equal, 0 different; 0 not as accepted"
expect 1 2 ok "+peak allocated  2"
expect 1 "" ok "pretender fits::caching · ok        · ok   · NO"
expect 1 1 FAILED "pretender no_leak       · ok        · failed · -"
expect 1 1 "" "pretender no_leak       · ok        · -    · -"
expect 1 1 ignored "pretender no_leak       · ok        · ignored · -"
snap here 3 >"$kit/accepted/pretender--memory/memory__fits__caching.snap"
expect 1 1 ok "ok, not as accepted"
printf 'pretender--memory\treal\n' >"$kit/programs"
rm "$kit"/accepted/pretender--memory/*
expect 0 1 ok "pretender no_leak       · -         · ok   · -"
printf 'pretender--memory\t\n' >"$kit/programs"
rm "$kit/bin/pretender--memory"
expect 1 1 ok "did not run"
echo "run.sh tells equal from different"
