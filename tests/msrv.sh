#!/usr/bin/env bash
# Builds with the stated minimum Rust version where rustup has it; where it does not, checks that
# no package of the lock file that the library needs asks for a newer one.
set -euo pipefail
cd "$(dirname "$0")/.."
stated=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if rustup run "$stated" rustc --version >/dev/null 2>&1; then
    CARGO_TARGET_DIR=target/msrv rustup run "$stated" cargo check -p gpumem-test --locked
    echo "gpumem-test builds with Rust $stated"
    exit 0
fi
echo "Rust $stated is not installed: checking what the dependencies state instead"
cargo metadata --format-version 1 --locked |
    python3 -c '
import json, sys
stated = tuple(int(part) for part in sys.argv[1].split("."))
data = json.load(sys.stdin)
packages = {package["id"]: package for package in data["packages"]}
nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
wanted = [id for id, package in packages.items() if package["name"] == "gpumem-test"]
seen = set()
while wanted:
    id = wanted.pop()
    if id in seen:
        continue
    seen.add(id)
    for dependency in nodes[id]["deps"]:
        if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
            wanted.append(dependency["pkg"])
newer = []
for id in seen:
    asks = packages[id]["rust_version"]
    if asks and tuple(int(part) for part in asks.split("."))[:2] > stated[:2]:
        newer.append(packages[id]["name"] + " asks for Rust " + asks)
print(len(seen), "packages checked")
if newer:
    sys.exit("\n".join(newer))
' "$stated"
