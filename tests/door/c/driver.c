/* A driver double: enough of libcuda.so.1 to see what arrives at the driver's own functions. */
#include <stddef.h>
#include <string.h>

static int allocations, frees, inner_frees, lookups;
static unsigned long long next_address = 0x10000;

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }

int cuDriverGetVersion(int *version) {
    *version = 13000;
    return 0;
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
    if (bytes == 0) return 1;
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    *address = __atomic_fetch_add(&next_address, 0x100, __ATOMIC_RELAXED);
    return 0;
}

int cuMemFree_v2(unsigned long long address) {
    __atomic_fetch_add(&frees, 1, __ATOMIC_RELAXED);
    return address == 0xbad ? 1 : 0;
}

/* What cuGetProcAddress gives for cuMemFree: not what the library exports under that name. */
static int inner_free(unsigned long long address) {
    __atomic_fetch_add(&inner_frees, 1, __ATOMIC_RELAXED);
    return cuMemFree_v2(address);
}

/* Floating-point arguments, which travel in vector registers. */
int cuTexRefSetMipmapLevelClamp(void *texture, float low, float high) {
    return texture == (void *)7 && low == 1.5f && high == -2.5f ? 0 : 1;
}

/* Eleven arguments: some travel on the stack. */
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
    int right = function == (void *)1 && gx == 2 && gy == 3 && gz == 4 && bx == 5 && by == 6 &&
                bz == 7 && shared == 8 && stream == (void *)9 && parameters == (void **)10 &&
                extra == (void **)11;
    return right ? 0 : 1;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        int *status) {
    (void)version;
    (void)flags;
    __atomic_fetch_add(&lookups, 1, __ATOMIC_RELAXED);
    if (status) *status = 0;
    if (!strcmp(name, "cuMemFree")) *function = (void *)inner_free;
    else if (!strcmp(name, "cuMemAlloc")) *function = (void *)cuMemAlloc_v2;
    else if (!strcmp(name, "cuGetProcAddress")) *function = (void *)cuGetProcAddress_v2;
    else if (!strcmp(name, "cuOfAFutureDriver")) *function = (void *)cuDriverGetVersion;
    else {
        *function = NULL;
        if (status) *status = 1;
        return 500;
    }
    return 0;
}

int cuGetExportTable(const void **table, const void *id) {
    *table = id;
    return 0;
}

/* What reached the functions: allocations, frees, frees through the inner entry, look-ups. */
int double_count(int which) {
    int *counters[] = {&allocations, &frees, &inner_frees, &lookups};
    return __atomic_load_n(counters[which], __ATOMIC_RELAXED);
}
