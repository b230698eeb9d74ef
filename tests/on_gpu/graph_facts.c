/* What the simulated driver assumes of graphs, captures and modules, measured on a real one.
 *
 *   cc -o graph_facts graph_facts.c -ldl && ./graph_facts
 *
 * Prints one fact a line: what was done, the code, bytes of the device gone since the start.
 * It needs the driver only, no toolkit. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*fn)();
static void *lib;
static size_t start;

static fn get(const char *name)
{
    fn found = (fn)dlsym(lib, name);
    if (!found) printf("no %s\n", name);
    return found;
}

#define CALL(name, ...) (get(#name) ? get(#name)(__VA_ARGS__) : -1)

static size_t gone(void)
{
    size_t free = 0, total = 0;
    CALL(cuMemGetInfo_v2, &free, &total);
    return start - free;
}

static void fact(const char *what, int code)
{
    printf("%-64s code %4d  gone %12zu\n", what, code, gone());
}

static void attributes(const char *what)
{
    uint64_t value[4] = {0};
    for (int number = 0; number < 4; number++)
        CALL(cuDeviceGetGraphMemAttribute, 0, number, &value[number]);
    printf("%-64s used %lu high %lu reserved %lu high %lu\n", what, value[0], value[1], value[2], value[3]);
}

struct alloc { uint64_t props[11]; void *access; size_t count, bytes; uint64_t address; };

static void *add_alloc(void *graph, void **before, size_t count, size_t bytes, uint64_t *address)
{
    struct alloc params;
    void *node = NULL;
    memset(&params, 0, sizeof params);
    ((uint32_t *)params.props)[0] = 1; /* pinned */
    ((uint32_t *)params.props)[2] = 1; /* on device 0 */
    params.bytes = bytes;
    fact("add an allocation node", CALL(cuGraphAddMemAllocNode, &node, graph, before, count, &params));
    *address = params.address;
    return node;
}

static void *add_free(void *graph, void *before, uint64_t address)
{
    void *node = NULL;
    int code = CALL(cuGraphAddMemFreeNode, &node, graph, &before, (size_t)1, address);
    if (code) fact("add a free node", code);
    return node;
}

static const char *ptx_plain = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f() { ret; }\n";
static const char *ptx_global = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .b8 table[1048576];\n.visible .entry f() { ret; }\n";

int main(void)
{
    void *context, *stream, *other, *graph, *exec, *exec2, *clone, *event, *unrecorded, *module;
    uint64_t a, b, c;
    size_t total;
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) return puts("no libcuda.so.1"), 1;
    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    CALL(cuStreamCreate, &stream, 1);
    CALL(cuStreamCreate, &other, 1);
    CALL(cuEventCreate, &event, 2);
    CALL(cuEventCreate, &unrecorded, 2);
    CALL(cuMemGetInfo_v2, &start, &total);

    puts("# modules");
    fact("load a module without variables", CALL(cuModuleLoadData, &module, ptx_plain));
    fact("load it once more", CALL(cuModuleLoadData, &module, ptx_plain));
    fact("load one with a variable of 1 MiB", CALL(cuModuleLoadData, &module, ptx_global));
    fact("unload that", CALL(cuModuleUnload, module));
    fact("load text", CALL(cuModuleLoadData, &module, "hello"));

    puts("# a graph without memory");
    CALL(cuGraphCreate, &graph, 0);
    void *empty;
    CALL(cuGraphAddEmptyNode, &empty, graph, NULL, (size_t)0);
    fact("instantiate", CALL(cuGraphInstantiateWithFlags, &exec, graph, 0ULL));
    fact("launch", CALL(cuGraphLaunch, exec, stream));
    CALL(cuStreamSynchronize, stream);

    puts("# a graph with 3 MiB that it frees");
    CALL(cuGraphCreate, &graph, 0);
    void *node = add_alloc(graph, NULL, 0, 3 << 20, &a);
    void *freed = add_free(graph, node, a);
    fact("instantiate", CALL(cuGraphInstantiateWithFlags, &exec, graph, 0ULL));
    attributes("instantiated");
    fact("instantiate it a second time", CALL(cuGraphInstantiateWithFlags, &exec2, graph, 0ULL));
    fact("clone it", CALL(cuGraphClone, &clone, graph));
    fact("destroy its node", CALL(cuGraphDestroyNode, freed));
    fact("upload", CALL(cuGraphUpload, exec, stream));
    attributes("uploaded");
    fact("launch", CALL(cuGraphLaunch, exec, stream));
    CALL(cuStreamSynchronize, stream);
    attributes("launched");
    fact("destroy the executable graph", CALL(cuGraphExecDestroy, exec));
    attributes("destroyed");
    fact("trim", CALL(cuDeviceGraphMemTrim, 0));

    puts("# a second graph: three times 1 KiB, not freed");
    CALL(cuGraphCreate, &graph, 0);
    node = add_alloc(graph, NULL, 0, 1024, &a);
    node = add_alloc(graph, &node, 1, 1024, &b);
    node = add_alloc(graph, &node, 1, 1024, &c);
    printf("addresses %lx %lx %lx\n", a, b, c);
    fact("instantiate", CALL(cuGraphInstantiateWithFlags, &exec, graph, 0ULL));
    fact("launch", CALL(cuGraphLaunch, exec, stream));
    CALL(cuStreamSynchronize, stream);
    attributes("launched");
    fact("launch it again", CALL(cuGraphLaunch, exec, stream));
    fact("cuMemFree one", CALL(cuMemFree_v2, a));
    fact("cuMemFreeAsync one", CALL(cuMemFreeAsync, b, stream));
    fact("destroy the executable graph", CALL(cuGraphExecDestroy, exec));
    fact("destroy the graph", CALL(cuGraphDestroy, graph));
    fact("cuMemFree the last", CALL(cuMemFree_v2, c));
    attributes("freed");
    fact("trim", CALL(cuDeviceGraphMemTrim, 0));

    puts("# captures: the code of a call, then that of the end");
#define CAPTURE(mode, what, call) do { \
        CALL(cuStreamBeginCapture_v2, stream, mode); \
        fact(what, call); \
        fact("    end", CALL(cuStreamEndCapture, stream, &graph)); \
    } while (0)
    uint64_t plain, pool, taken = 0;
    CALL(cuMemAlloc_v2, &plain, (size_t)1024);
    CALL(cuMemAllocAsync, &pool, (size_t)1024, stream);
    CALL(cuStreamSynchronize, stream);
    CALL(cuEventRecord, event, other);
    CALL(cuStreamSynchronize, other);
    CAPTURE(0, "wait for an event that was never recorded", CALL(cuStreamWaitEvent, stream, unrecorded, 0));
    CAPTURE(0, "wait for an event recorded outside", CALL(cuStreamWaitEvent, stream, event, 0));
    CAPTURE(0, "free pool memory of before", CALL(cuMemFreeAsync, pool, stream));
    CAPTURE(0, "allocate 0 bytes", CALL(cuMemAllocAsync, &taken, (size_t)0, stream));
    CAPTURE(0, "launch with a grid of 0", CALL(cuLaunchKernel, NULL, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    CAPTURE(0, "cuMemAlloc, global mode", CALL(cuMemAlloc_v2, &taken, (size_t)1024));
    CAPTURE(0, "cuMemFree, global mode", CALL(cuMemFree_v2, plain));
    CAPTURE(0, "synchronise the stream", CALL(cuStreamSynchronize, stream));
    CAPTURE(2, "synchronise the context, relaxed", CALL(cuCtxSynchronize));
    CAPTURE(0, "begin again", CALL(cuStreamBeginCapture_v2, stream, 0));
    CALL(cuStreamBeginCapture_v2, stream, 2);
    CALL(cuEventRecord, event, stream);
    CALL(cuStreamEndCapture, stream, &graph);
    fact("wait for an event of a capture that has ended", CALL(cuStreamWaitEvent, other, event, 0));
    fact("query it", CALL(cuEventQuery, event));
    fact("end where nothing is captured", CALL(cuStreamEndCapture, stream, &graph));
    return 0;
}
