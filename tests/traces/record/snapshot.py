import torch, random, json, sys, os
import pickle

out = sys.argv[1]
torch.zeros(1, device="cuda")
torch.cuda.empty_cache()
torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="python", max_entries=200000)
torch.cuda.reset_peak_memory_stats()
torch.cuda.reset_accumulated_memory_stats()
side = torch.cuda.Stream()


def step(i, keep):
    x = torch.empty(random.choice([100, 5000, 300000, 2000000, 9000000]), device="cuda")
    if i % 7 == 0:
        x.record_stream(side)
    keep.append(x)
    if len(keep) > random.randint(5, 60):
        keep.pop(random.randrange(len(keep)))


random.seed(5)
keep = []
for i in range(21000):
    step(i, keep)
torch.cuda.synchronize()
s = torch.cuda.memory._snapshot()
n = len(s["device_traces"][0])
print("events", n)
import gzip

gzip.open(out + "/long.pickle.gz", "wb").write(pickle.dumps(s))
json.dump(
    {
        "name": "long",
        "conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
        "torch": torch.__version__,
        "stats": torch.cuda.memory_stats(),
    },
    open(out + "/long.stats.json", "w"),
)
