import sys, os, json, gzip, random, subprocess

KEYS = [
    "allocated_bytes.all.current",
    "reserved_bytes.all.current",
    "active_bytes.all.current",
    "inactive_split_bytes.all.current",
    "requested_bytes.all.current",
    "segment.all.current",
    "allocation.all.current",
    "num_alloc_retries",
    "num_ooms",
    "allocated_bytes.all.peak",
    "reserved_bytes.all.peak",
]


def size(r, kind):
    M = 1 << 20
    if kind == "small":
        return max(1, int(2 ** r.uniform(0, 20)))
    if kind == "mid":
        return r.choice([M, 2 * M, 3 * M, 5 * M, 8 * M, 9 * M, 10 * M, 12 * M, 19 * M, 32 * M]) + r.choice(
            [-511, -1, 0, 0, 1, 512, 513]
        )
    if kind == "large":
        return int(2 ** r.uniform(20, 27.6))
    if kind == "edge":
        return max(
            1,
            r.choice([512, 1024, 2048, 4096, M, M // 2, 10 * M, 20 * M, 2 * M])
            + r.choice([-513, -512, -1, 0, 1, 512, 513]),
        )
    return r.choice(
        [
            lambda: size(r, "small"),
            lambda: size(r, "small"),
            lambda: size(r, "mid"),
            lambda: size(r, "edge"),
            lambda: int(2 ** r.uniform(18, 26)),
        ]
    )()


def main(conf, out, cases):
    if conf != "-":
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = conf
    import torch

    torch.zeros(1, device="cuda")
    torch.cuda.empty_cache()
    streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(3)]
    total = torch.cuda.mem_get_info()[1]
    f = gzip.open(out, "wt")
    for kind, seed, frac, ns, n in cases:
        r = random.Random(seed)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(1.0 if frac is None else frac)
        torch.cuda.memory._record_memory_history(enabled=None)
        torch.cuda.memory._record_memory_history(
            enabled="all", context=None, stacks="python", max_entries=10**6
        )
        base = len(
            [e for e in torch.cuda.memory._snapshot()["device_traces"][0] if e["action"] != "snapshot"]
        )
        torch.cuda.reset_peak_memory_stats()
        st0 = torch.cuda.memory_stats()
        off = {k: st0[k] for k in ("num_alloc_retries", "num_ooms")}
        torch.cuda.reset_accumulated_memory_stats()
        ops = []
        live = {}
        nid = 0

        def vals():
            s = torch.cuda.memory_stats()
            return [s[k] for k in KEYS]

        target = {"small": 300, "mid": 30, "large": 12, "edge": 60, "mixed": 60}[kind]
        for i in range(n):
            x = r.random()
            if x < 0.002 and ns == 1 or x < 0.001:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
                ops.append(["e"] + vals())
                continue
            if live and (r.random() < len(live) / (2 * target)):
                k = r.choice(list(live))
                torch.cuda.caching_allocator_delete(live.pop(k))
                ops.append(["f", k] + vals())
                continue
            s = r.randrange(ns)
            z = size(r, kind)
            try:
                p = torch.cuda.caching_allocator_alloc(z, 0, streams[s])
                live[nid] = p
                ops.append(["a", nid, z, s, p] + vals())
            except torch.OutOfMemoryError:
                ops.append(["o", nid, z, s] + vals())
            nid += 1
        sn = torch.cuda.memory._snapshot()
        ev = [
            [e["action"], e.get("addr", 0) if e["action"] != "oom" else 0, e["size"], e["stream"]]
            for e in sn["device_traces"][0]
            if e["action"] != "snapshot"
        ][base:]
        seg = [
            [
                g["address"],
                g["total_size"],
                g["segment_type"],
                g["stream"],
                [[b["size"], b["requested_size"], b["state"]] for b in g["blocks"]],
            ]
            for g in sn["segments"]
        ]
        f.write(
            json.dumps(
                dict(
                    kind=kind,
                    seed=seed,
                    conf=conf,
                    frac=frac,
                    streams=ns,
                    stat_keys=KEYS,
                    ops=ops,
                    events=ev,
                    segments=seg,
                    total=total,
                    torch=torch.__version__,
                )
            )
            + "\n"
        )
        for p in live.values():
            torch.cuda.caching_allocator_delete(p)
    f.close()


if len(sys.argv) > 2:
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
else:
    o = sys.argv[1]
    G = 150109880320
    jobs = [
        (
            "default",
            "-",
            [
                ("mixed", 101, None, 4, 2500),
                ("edge", 102, None, 2, 2000),
                ("large", 103, 3e9 / G, 1, 900),
                ("mixed", 104, 2e8 / G, 3, 1500),
            ],
        ),
        (
            "expandable",
            "expandable_segments:True",
            [
                ("mixed", 111, None, 4, 2500),
                ("edge", 112, None, 2, 2000),
                ("large", 113, 1.5e9 / G, 1, 900),
                ("mixed", 114, 2e8 / G, 3, 1500),
            ],
        ),
        (
            "max_split_100",
            "max_split_size_mb:100,max_non_split_rounding_mb:25",
            [("large", 121, None, 2, 900), ("large", 122, 1.2e9 / G, 1, 900), ("mid", 123, 6e8 / G, 2, 1200)],
        ),
        (
            "gc_04",
            "garbage_collection_threshold:0.4",
            [
                ("mid", 131, 5e8 / G, 2, 1500),
                ("large", 132, 2e9 / G, 1, 900),
                ("mixed", 133, 3e8 / G, 3, 1500),
            ],
        ),
        (
            "all",
            "expandable_segments:True,garbage_collection_threshold:0.5,max_split_size_mb:64,roundup_power2_divisions:[1:2,16:4,>:8]",
            [("mixed", 141, 4e8 / G, 3, 1500), ("large", 142, 2e9 / G, 2, 900)],
        ),
        (
            "seg_40",
            "large_segment_size_mb:40,max_split_size_mb:80,garbage_collection_threshold:0.7",
            [("mid", 151, 6e8 / G, 2, 1200), ("large", 152, None, 1, 800)],
        ),
        (
            "seg_40_exp",
            "large_segment_size_mb:40,expandable_segments:True",
            [("mid", 161, 6e8 / G, 2, 1200), ("large", 162, None, 1, 800)],
        ),
    ]
    for name, conf, cases in jobs:
        r = subprocess.run(
            [sys.executable, __file__, conf, f"{o}/syn_{name}.jsonl.gz", json.dumps(cases)],
            capture_output=True,
            text=True,
            timeout=170,
        )
        print(name, r.returncode, r.stderr[-400:])
