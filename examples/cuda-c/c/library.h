/* A ring of frames in GPU memory, over the CUDA driver alone.
 *
 * Every function returns the driver's code: 0 is success, 2 is out of memory. A call that fails
 * leaves the ring as it was. One thread at a time.
 */
#ifndef FRAME_RING_H
#define FRAME_RING_H

#include <stddef.h>

typedef struct frame_ring frame_ring;

/* A ring for `capacity` frames of `frame_bytes` each, on card 0. */
int ring_open(frame_ring **ring, size_t frame_bytes, size_t capacity);

/* Copies a frame into the ring, over the oldest one if it is full. */
int ring_push(frame_ring *ring, const void *frame);

/* How many frames the ring holds. */
size_t ring_frames(const frame_ring *ring);

/* Copies the latest `count` frames to `frames`, oldest first; 1 (invalid value) if it holds fewer. */
int ring_latest(frame_ring *ring, size_t count, void *frames);

/* Makes room for `capacity` frames, and keeps those that it holds; 1 if that is not more than now.
 * The old and the new ring are on the card at the same time. */
int ring_grow(frame_ring *ring, size_t capacity);

/* Gives everything back. */
int ring_close(frame_ring *ring);

#endif
