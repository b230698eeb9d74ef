"""Measures what the simulated driver assumes, on a real GPU: `python3 facts.py [section …]`.

Needs the driver only (libcuda.so.1), no toolkit. Prints lines `section name value`; byte figures are
what is gone from the free bytes of `cuMemGetInfo` since the section began. Each section runs in a
process of its own. Nothing else should use the GPU meanwhile.
"""

import ctypes as c
import subprocess
import sys

MIB = 1 << 20
cuda = c.CDLL("libcuda.so.1")


def u64(value):
    return c.c_uint64(value)


def call(name, *arguments):
    return getattr(cuda, name)(*arguments)


def ok(name, *arguments):
    code = call(name, *arguments)
    assert code == 0, f"{name}: {code}"


def made(name, *arguments):
    """The handle that a function writes to its first argument."""
    handle = c.c_uint64()
    ok(name, c.byref(handle), *arguments)
    return handle.value


def free():
    left, total = c.c_size_t(), c.c_size_t()
    ok("cuMemGetInfo_v2", c.byref(left), c.byref(total))
    return left.value


class Section:
    def __init__(self, name):
        self.name = name
        ok("cuInit", 0)
        self.context = made("cuDevicePrimaryCtxRetain", 0)
        ok("cuCtxSetCurrent", u64(self.context))
        self.start = free()

    def say(self, what, value):
        print(self.name, what.replace(" ", "_"), value, flush=True)

    def gone(self, what):
        self.say(what, self.start - free())

    def code(self, what, name, *arguments):
        self.say(what, call(name, *arguments))


class Location(c.Structure):
    _fields_ = [("kind", c.c_int), ("id", c.c_int)]


class Pages(c.Structure):
    _fields_ = [("kind", c.c_int), ("handles", c.c_int), ("location", Location),
                ("security", c.c_void_p), ("flags", c.c_uint64)]


class Pool(c.Structure):
    _fields_ = [("kind", c.c_int), ("handles", c.c_int), ("location", Location),
                ("security", c.c_void_p), ("max_size", c.c_size_t), ("rest", c.c_uint64 * 7)]


class Flat(c.Structure):
    _fields_ = [("width", c.c_size_t), ("height", c.c_size_t), ("format", c.c_int),
                ("channels", c.c_uint)]


class Solid(c.Structure):
    _fields_ = [("width", c.c_size_t), ("height", c.c_size_t), ("depth", c.c_size_t),
                ("format", c.c_int), ("channels", c.c_uint), ("flags", c.c_uint)]


FLOAT = 0x20


def on_device():
    return Pages(1, 0, Location(1, 0), None, 0)


def device(s):
    total = c.c_size_t()
    ok("cuDeviceTotalMem_v2", c.byref(total), 0)
    s.say("cuDeviceTotalMem", total.value)
    for attribute in range(1, 149):
        value = c.c_int()
        code = call("cuDeviceGetAttribute", c.byref(value), attribute, 0)
        s.say(f"attribute {attribute}", value.value if code == 0 else f"code:{code}")
    least, greatest = c.c_int(), c.c_int()
    ok("cuCtxGetStreamPriorityRange", c.byref(least), c.byref(greatest))
    s.say("priorities", f"{least.value},{greatest.value}")
    for limit in range(0, 10):
        value = c.c_size_t()
        code = call("cuCtxGetLimit", c.byref(value), limit)
        s.say(f"limit {limit}", value.value if code == 0 else f"code:{code}")


def streams(s, flags):
    for _ in range(2):
        handles = []
        for count in range(1, 97):
            handles.append(made("cuStreamCreate", flags))
            if count in (1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 48, 64, 65, 80, 96):
                s.gone(f"{count} streams")
        for handle in handles:
            ok("cuStreamDestroy_v2", u64(handle))
        s.gone("all destroyed")
    for count in range(1, 1001):
        made("cuEventCreate", 0)
    s.gone("1000 events")


def contexts(s):
    first = made("cuCtxCreate_v2", 0, 0)
    s.gone("second context")
    second = made("cuCtxCreate_v2", 0, 0)
    s.gone("third context")
    made("cuStreamCreate", 1)
    s.gone("a stream in it")
    ok("cuCtxDestroy_v2", u64(second))
    ok("cuCtxDestroy_v2", u64(first))
    ok("cuCtxSetCurrent", u64(s.context))
    s.gone("both destroyed")


def limits(s):
    for kib in (1, 2, 4, 16, 3, 1, 16, 1):
        code = call("cuCtxSetLimit", 0, c.c_size_t(kib << 10))
        s.gone(f"stack of {kib} KiB, code {code}")
    for limit, value in ((1, 64 * MIB), (2, 512 * MIB), (4, 4096)):
        code = call("cuCtxSetLimit", limit, c.c_size_t(value))
        s.gone(f"limit {limit} of {value}, code {code}")


def arrays(s):
    for width, height in ((1, 0), (128, 128), (512, 512), (1024, 768), (2048, 2048)):
        array = made("cuArrayCreate_v2", c.byref(Flat(width, height, FLOAT, 1)))
        s.gone(f"array of {width} x {height} floats")
        needs = (c.c_uint64 * 4)()
        code = call("cuArrayGetMemoryRequirements", needs, u64(array), 0)
        s.say(f"requirements of {width} x {height}", f"{needs[0]},{needs[1]},code:{code}")
        ok("cuArrayDestroy", u64(array))
        s.gone("destroyed")
    small = [made("cuArrayCreate_v2", c.byref(Flat(16, 16, FLOAT, 1))) for _ in range(100)]
    s.gone("100 arrays of 16 x 16 floats")
    for array in small:
        ok("cuArrayDestroy", u64(array))
    mipmap = made("cuMipmappedArrayCreate", c.byref(Solid(1024, 1024, 0, FLOAT, 1, 0)), 4)
    s.gone("mipmap of 1024 x 1024 floats, 4 levels")
    ok("cuMipmappedArrayDestroy", u64(mipmap))


def managed(s):
    address = made("cuMemAllocManaged", c.c_size_t(64 * MIB), 1)
    s.gone("64 MiB managed")
    ok("cuMemsetD8_v2", u64(address + 2 * MIB - 1), c.c_ubyte(1), c.c_size_t(2))
    s.gone("2 bytes set over a page boundary")
    host = (c.c_ubyte * MIB)()
    ok("cuMemcpyHtoD_v2", u64(address + 32 * MIB), host, c.c_size_t(MIB))
    s.gone("1 MiB copied to it")
    here, host_location = Location(1, 0), Location(2, 0)
    for what, location in (("device", here), ("host", host_location)):
        code = call("cuMemPrefetchAsync_v2", u64(address), c.c_size_t(64 * MIB), location, 0, u64(0))
        ok("cuCtxSynchronize")
        s.gone(f"prefetched to the {what}, code {code}")
    ok("cuMemFree_v2", u64(address))
    s.gone("freed")


def codes(s):
    plain = made("cuMemAlloc_v2", c.c_size_t(1000))
    host = (c.c_ubyte * 4096)()
    at = c.addressof(host)
    size, word = c.c_size_t(), c.c_uint64()
    s.code("cuMemGetAddressRange unknown", "cuMemGetAddressRange_v2", c.byref(word), c.byref(size),
           u64(0x1234000))
    s.code("HtoD beyond the end", "cuMemcpyHtoD_v2", u64(plain), host, c.c_size_t(1001))
    s.code("HtoD far beyond the end", "cuMemcpyHtoD_v2", u64(plain), host, c.c_size_t(4096))
    s.code("DtoD from the host", "cuMemcpyDtoD_v2", u64(plain), u64(at), c.c_size_t(8))
    s.code("HtoD from the device", "cuMemcpyHtoD_v2", u64(plain), u64(plain + 8), c.c_size_t(8))
    s.code("HtoD of nothing to null", "cuMemcpyHtoD_v2", u64(0), host, c.c_size_t(0))
    s.code("D16 misaligned", "cuMemsetD16_v2", u64(plain + 1), c.c_ushort(1), c.c_size_t(1))
    s.code("cuStreamDestroy of 0", "cuStreamDestroy_v2", u64(0))
    start, end = made("cuEventCreate", 0), made("cuEventCreate", 0)
    s.code("elapsed, not recorded", "cuEventElapsedTime", c.byref(c.c_float()), u64(start), u64(end))
    s.code("register", "cuMemHostRegister_v2", u64(at & ~4095), c.c_size_t(4096), 0)
    s.code("register again", "cuMemHostRegister_v2", u64(at & ~4095), c.c_size_t(4096), 0)
    s.code("unregister", "cuMemHostUnregister", u64(at & ~4095))
    s.code("unregister again", "cuMemHostUnregister", u64(at & ~4095))
    pinned = made("cuMemAllocHost_v2", c.c_size_t(4096))
    s.code("cuMemFree of pinned memory", "cuMemFree_v2", u64(pinned))
    s.code("cuMemFreeHost inside", "cuMemFreeHost", u64(pinned + 1))
    managed_at = made("cuMemAllocManaged", c.c_size_t(4096), 1)
    s.code("cuMemFree inside managed memory", "cuMemFree_v2", u64(managed_at + 1))
    s.code("memory type, unknown", "cuPointerGetAttribute", c.byref(word), 2, u64(at))
    pool = made("cuDeviceGetDefaultMemPool", 0)
    s.code("reserved high to 5", "cuMemPoolSetAttribute", u64(pool), 6, c.byref(u64(5)))
    s.code("used high to 0", "cuMemPoolSetAttribute", u64(pool), 8, c.byref(u64(0)))
    s.code("destroy the default pool", "cuMemPoolDestroy", u64(pool))
    for attribute in (0, 9, 10, 13):
        s.code(f"pool attribute {attribute}", "cuMemPoolGetAttribute", u64(pool), attribute,
               c.byref(word))
    s.code("cuMemCreate of 1 MiB", "cuMemCreate", c.byref(word), c.c_size_t(MIB),
           c.byref(on_device()), u64(0))
    s.code("reserve 1 MiB", "cuMemAddressReserve", c.byref(word), c.c_size_t(MIB), c.c_size_t(0),
           u64(0), u64(0))
    pages = made("cuMemCreate", c.c_size_t(4 * MIB), c.byref(on_device()), u64(0))
    span = made("cuMemAddressReserve", c.c_size_t(16 * MIB), c.c_size_t(0), u64(0), u64(0))
    s.code("map half of the pages", "cuMemMap", u64(span), c.c_size_t(2 * MIB), c.c_size_t(0),
           u64(pages), u64(0))
    function = c.CFUNCTYPE(None, c.c_void_p)(
        lambda _: s.code("cuMemAlloc in a host function", "cuMemAlloc_v2", c.byref(word),
                         c.c_size_t(1)))
    ok("cuLaunchHostFunc", u64(0), function, None)
    ok("cuCtxSynchronize")
    ok("cuDevicePrimaryCtxRelease_v2", 0)
    s.code("cuMemAlloc after the release", "cuMemAlloc_v2", c.byref(word), c.c_size_t(1))
    s.code("a release too many", "cuDevicePrimaryCtxRelease_v2", 0)


def pressure(s):
    """Whether pages and arrays take what a pool holds and does not use, as plain memory does."""
    pool = made("cuMemPoolCreate", c.byref(Pool(1, 0, Location(1, 0), None, 0)))
    ok("cuMemPoolSetAttribute", u64(pool), 4, c.byref(u64(2**64 - 1)))
    stream = made("cuStreamCreate", 1)
    address = made("cuMemAllocFromPoolAsync", c.c_size_t(1024 * MIB), u64(pool), u64(stream))
    ok("cuMemFreeAsync", u64(address), u64(stream))
    ok("cuStreamSynchronize", u64(stream))
    made("cuMemAlloc_v2", c.c_size_t((free() // MIB - 300) * MIB))
    s.gone("filled")
    pages = c.c_uint64()
    s.code("pages of 512 MiB", "cuMemCreate", c.byref(pages), c.c_size_t(512 * MIB),
           c.byref(on_device()), u64(0))
    s.gone("with pages")
    array = c.c_uint64()
    s.code("array of 512 MiB", "cuArrayCreate_v2", c.byref(array),
           c.byref(Flat(16384, 8192, FLOAT, 1)))
    s.gone("with the array")


def stream_steps(s):
    """At which count the memory of streams grows, in the primary context and in another."""
    for context in ("primary", "second"):
        if context == "second":
            made("cuCtxCreate_v2", 0, 0)
        start = last = free()
        for count in range(1, 257):
            made("cuStreamCreate", 1)
            if free() != last:
                last = free()
                s.say(f"{context} {count} streams", start - last)


def managed_sizes(s):
    """What the first use of managed memory takes, and what is left when it is freed."""
    for mib in (2, 64, 64, 256, 1024, 2):
        address = made("cuMemAllocManaged", c.c_size_t(mib * MIB), 1)
        ok("cuMemsetD8_v2", u64(address), c.c_ubyte(1), c.c_size_t(1))
        s.gone(f"{mib} MiB, one byte set")
        ok("cuMemFree_v2", u64(address))
        s.gone(f"{mib} MiB freed")


def array_pages(s):
    """How small arrays share pages, and whether with plain memory."""
    made("cuMemAlloc_v2", c.c_size_t(1))
    s.gone("a plain byte")
    last = free()
    for count in range(1, 4097):
        made("cuArrayCreate_v2", c.byref(Flat(16, 16, FLOAT, 1)))
        if free() != last:
            last = free()
            s.gone(f"{count} arrays of 16 x 16 floats")


def variables(s):
    """Whether modules share the pages of their variables."""
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    for size in (4, 4, 1 << 20, 1 << 20, 3 << 20):
        text = f"{head}.visible .global .align 4 .b8 table[{size}];\n.visible .entry f() {{ ret; }}\n"
        made("cuModuleLoadData", c.c_char_p(text.encode()))
        s.gone(f"a module with a variable of {size} bytes")


def pool_pointers(s):
    """Attributes of memory of a pool."""
    address = made("cuMemAllocAsync", c.c_size_t(1000), u64(0))
    for attribute in range(1, 22):
        value = c.c_uint64()
        code = call("cuPointerGetAttribute", c.byref(value), attribute, u64(address))
        shown = value.value - address if value.value >= address else value.value
        s.say(f"attribute {attribute}", f"{shown},code:{code}")


# Run by their names only: `facts/h200.txt` does not have them yet.
LATER = {
    "stream-steps": stream_steps,
    "managed-sizes": managed_sizes,
    "array-pages": array_pages,
    "variables": variables,
    "pool-pointers": pool_pointers,
}

SECTIONS = {
    "device": device,
    "streams-non-blocking": lambda s: streams(s, 1),
    "streams-blocking": lambda s: streams(s, 0),
    "contexts": contexts,
    "limits": limits,
    "arrays": arrays,
    "managed": managed,
    "codes": codes,
    "pressure": pressure,
}

if __name__ == "__main__":
    if len(sys.argv) == 2:
        (SECTIONS | LATER)[sys.argv[1]](Section(sys.argv[1]))
    else:
        for name in sys.argv[1:] or SECTIONS:
            subprocess.run([sys.executable, __file__, name], check=False)
