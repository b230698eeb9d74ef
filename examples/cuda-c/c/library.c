#include "library.h"

#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct frame_ring {
    CUdevice device;
    CUstream stream;
    CUdeviceptr frames;
    /* One frame of pinned host memory, through which frames go to the card. */
    void *staging;
    size_t frame_bytes;
    size_t capacity;
    /* Frames pushed so far. The next one goes to `pushed % capacity`. */
    size_t pushed;
    size_t held;
};

#define TRY(call)                              \
    do {                                       \
        CUresult code_ = (call);               \
        if (code_ != CUDA_SUCCESS) return code_; \
    } while (0)

static CUdeviceptr place(const frame_ring *ring, size_t frame) {
    return ring->frames + (frame % ring->capacity) * ring->frame_bytes;
}

/* Copies the latest `count` frames, oldest first, to one stretch of the card's memory. */
static CUresult gather(frame_ring *ring, size_t count, CUdeviceptr to) {
    for (size_t i = 0; i < count; i++) {
        CUdeviceptr from = place(ring, ring->pushed - count + i);
        TRY(cuMemcpyDtoDAsync_v2(to + i * ring->frame_bytes, from, ring->frame_bytes, ring->stream));
    }
    return CUDA_SUCCESS;
}

static CUresult open_on(frame_ring *ring) {
    CUcontext context;
    TRY(cuDevicePrimaryCtxRetain(&context, ring->device));
    TRY(cuCtxSetCurrent(context));
    TRY(cuStreamCreate(&ring->stream, CU_STREAM_NON_BLOCKING));
    TRY(cuMemHostAlloc(&ring->staging, ring->frame_bytes, 0));
    return cuMemAlloc_v2(&ring->frames, ring->frame_bytes * ring->capacity);
}

int ring_open(frame_ring **ring, size_t frame_bytes, size_t capacity) {
    if (frame_bytes == 0 || capacity == 0) return CUDA_ERROR_INVALID_VALUE;
    CUdevice device;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    frame_ring *opened = calloc(1, sizeof *opened);
    if (opened == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    opened->device = device;
    opened->frame_bytes = frame_bytes;
    opened->capacity = capacity;
    CUresult code = open_on(opened);
    if (code != CUDA_SUCCESS) {
        ring_close(opened);
        return code;
    }
    *ring = opened;
    return CUDA_SUCCESS;
}

int ring_push(frame_ring *ring, const void *frame) {
    memcpy(ring->staging, frame, ring->frame_bytes);
    TRY(cuMemcpyHtoDAsync_v2(place(ring, ring->pushed), ring->staging, ring->frame_bytes, ring->stream));
    /* The staging memory is written again by the next push. */
    TRY(cuStreamSynchronize(ring->stream));
    ring->pushed++;
    if (ring->held < ring->capacity) ring->held++;
    return CUDA_SUCCESS;
}

size_t ring_frames(const frame_ring *ring) {
    return ring->held;
}

int ring_latest(frame_ring *ring, size_t count, void *frames) {
    if (count > ring->held) return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) return CUDA_SUCCESS;
    size_t bytes = count * ring->frame_bytes;
    CUdeviceptr scratch;
    TRY(cuMemAllocAsync(&scratch, bytes, ring->stream));
    CUresult code = gather(ring, count, scratch);
    if (code == CUDA_SUCCESS) code = cuMemcpyDtoHAsync_v2(frames, scratch, bytes, ring->stream);
    CUresult freed = cuMemFreeAsync(scratch, ring->stream);
    CUresult waited = cuStreamSynchronize(ring->stream);
    if (code != CUDA_SUCCESS) return code;
    return freed != CUDA_SUCCESS ? freed : waited;
}

int ring_grow(frame_ring *ring, size_t capacity) {
    if (capacity <= ring->capacity) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr grown;
    TRY(cuMemAlloc_v2(&grown, capacity * ring->frame_bytes));
    CUresult code = gather(ring, ring->held, grown);
    if (code == CUDA_SUCCESS) code = cuStreamSynchronize(ring->stream);
    if (code != CUDA_SUCCESS) {
        cuMemFree_v2(grown);
        return code;
    }
    CUdeviceptr old = ring->frames;
    ring->frames = grown;
    ring->capacity = capacity;
    ring->pushed = ring->held;
    return cuMemFree_v2(old);
}

int ring_close(frame_ring *ring) {
    CUresult code = CUDA_SUCCESS;
#define KEEP(call)                                     \
    do {                                               \
        CUresult code_ = (call);                       \
        if (code == CUDA_SUCCESS) code = code_;        \
    } while (0)
    if (ring->frames != 0) KEEP(cuMemFree_v2(ring->frames));
    if (ring->staging != NULL) KEEP(cuMemFreeHost(ring->staging));
    if (ring->stream != NULL) KEEP(cuStreamDestroy_v2(ring->stream));
    KEEP(cuDevicePrimaryCtxRelease_v2(ring->device));
    free(ring);
    return code;
}
