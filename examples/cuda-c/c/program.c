/* A program over the library, as C programs do it that run with and without a GPU: libcuda is
 * opened at run time, and the functions that the library calls forward to it.
 *
 *     cc -o program program.c library.c -ldl
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "library.h"

static void *function(const char *name) {
    static void *driver;
    if (driver == NULL) driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = driver == NULL ? NULL : dlsym(driver, name);
    if (found == NULL) {
        fprintf(stderr, "program: %s\n", dlerror());
        exit(1);
    }
    return found;
}

#define FORWARD(name, parameters, arguments)                     \
    CUresult name parameters {                                   \
        static CUresult (*target) parameters;                    \
        if (target == NULL) *(void **)&target = function(#name); \
        return target arguments;                                 \
    }

FORWARD(cuInit, (unsigned flags), (flags))
FORWARD(cuDeviceGet, (CUdevice * device, int ordinal), (device, ordinal))
FORWARD(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))
FORWARD(cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device))
FORWARD(cuCtxSetCurrent, (CUcontext context), (context))
FORWARD(cuStreamCreate, (CUstream * stream, unsigned flags), (stream, flags))
FORWARD(cuStreamSynchronize, (CUstream stream), (stream))
FORWARD(cuStreamDestroy_v2, (CUstream stream), (stream))
FORWARD(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes), (address, bytes))
FORWARD(cuMemFree_v2, (CUdeviceptr address), (address))
FORWARD(cuMemAllocAsync, (CUdeviceptr * address, size_t bytes, CUstream stream), (address, bytes, stream))
FORWARD(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), (address, stream))
FORWARD(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags))
FORWARD(cuMemFreeHost, (void *memory), (memory))
FORWARD(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), (to, from, bytes, stream))
FORWARD(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream))
FORWARD(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream))

enum { FRAME_BYTES = 1920 * 1080 * 4, FRAMES = 20 };

static void check(int code, const char *what) {
    if (code == 0) return;
    fprintf(stderr, "program: %s failed with code %d\n", what, code);
    exit(1);
}

int main(void) {
    frame_ring *ring;
    check(ring_open(&ring, FRAME_BYTES, 4), "ring_open");
    unsigned char *frame = malloc(FRAME_BYTES);
    unsigned char *latest = malloc((size_t)FRAME_BYTES * 8);
    if (frame == NULL || latest == NULL) return 1;
    for (int i = 0; i < FRAMES; i++) {
        memset(frame, i, FRAME_BYTES);
        check(ring_push(ring, frame), "ring_push");
        if (i == FRAMES / 2) check(ring_grow(ring, 8), "ring_grow");
    }
    check(ring_latest(ring, 8, latest), "ring_latest");
    for (int i = 0; i < 8; i++) {
        if (latest[(size_t)i * FRAME_BYTES] != FRAMES - 8 + i) {
            fprintf(stderr, "program: frame %d is another\n", i);
            return 1;
        }
    }
    check(ring_close(ring), "ring_close");
    free(latest);
    free(frame);
    printf("program: %d frames went through the ring\n", FRAMES);
    return 0;
}
