// Compiled at run time. bf16 is the upper half of a float, cut off.

extern "C" __global__ void narrow(unsigned short *to, const float *from, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = (unsigned short)(__float_as_uint(from[i]) >> 16);
}

extern "C" __global__ void widen(float *to, const unsigned short *from, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = __uint_as_float((unsigned)from[i] << 16);
}

extern "C" __global__ void relu(float *values, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && values[i] < 0.0f) values[i] = 0.0f;
}

extern "C" __global__ void scale(float *to, const float *from, float by, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i] * by;
}

extern "C" __global__ void add(float *to, const float *from, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += from[i];
}

// The place is read on the device, so that one captured graph serves every token.
extern "C" __global__ void append(float *cache, const float *token, const unsigned *place, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) cache[(size_t)place[0] * n + i] = token[i];
}

extern "C" __global__ void advance(unsigned *place) {
    place[0] += 1;
}

extern "C" __global__ void count_positive(unsigned *counter, const float *values, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && values[i] > 0.0f) atomicAdd(counter, 1u);
}
