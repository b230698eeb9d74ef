/* A C library that uses the loader and the driver itself, and knows nothing of us. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef int (*init_function)(unsigned);
typedef int (*alloc_function)(unsigned long long *, size_t);
typedef int (*free_function)(unsigned long long);

static void *early;

/* Runs when the library is loaded: before main, if the program was started with it. */
__attribute__((constructor)) static void look_up_early(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver) early = dlsym(driver, "cuMemAlloc_v2");
}

/* What the constructor found. */
void *client_early(void) { return early; }

/* Allocates and frees that often; the number of calls that failed, or -1 without a driver. */
int client_work(int rounds) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) return -1;
    alloc_function allocate = (alloc_function)dlsym(driver, "cuMemAlloc_v2");
    free_function release = (free_function)dlsym(driver, "cuMemFree_v2");
    if (!allocate || !release) return -1;
    int failed = 0;
    for (int round = 0; round < rounds; round++) {
        unsigned long long address = 0;
        failed += allocate(&address, 64) != 0;
        failed += release(address) != 0;
    }
    failed += dlclose(driver) != 0;
    return failed;
}

/* Defined here and in the library that this one needs: RTLD_NEXT means the other. */
int which_library(void) { return 1; }

int client_next(void) {
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "which_library");
    return next ? next() : 0;
}

/* Only this library's RUNPATH leads to the file. */
int client_runpath(void) {
    void *inner = dlopen("libinner.so", RTLD_NOW);
    return inner != NULL && dlclose(inner) == 0;
}
