// records random sequences of the driver's allocators in the documented format
#include <cuda.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
typedef unsigned long long u64;
static u64 rs;
static u64 rnd(void)
{
  rs ^= rs << 13;
  rs ^= rs >> 7;
  rs ^= rs << 17;
  return rs;
}

static double rf(void)
{
  return (rnd() >> 11) * (1.0 / 9007199254740992.0);
}

#include <math.h>
#define CK(x) do{CUresult r_=(x);if(r_){fprintf(stderr,"%s:%d %s -> %d\n",__FILE__,__LINE__,#x,r_);exit(1);}}while(0)
static u64 size_of(const char *k)
{
  double e;
  if (!strcmp(k, "small"))
    e = rf() * 20;
  else if (!strcmp(k, "large"))
    e = 20 + rf() * 8.3;
  else if (!strcmp(k, "mib"))
    return ((u64) (1 + rf() * 90)) << 20;
  else
    e = rf() * 28.5;
  u64 s = (u64) pow(2, e);
  if (s < 1)
    s = 1;
  return s;
}

static u64 freeb(void)
{
  size_t f, t;
  CK(cuMemGetInfo(&f, &t));
  return f;
}

typedef struct {
  CUdeviceptr p;
  u64 size;
  int id, kind;
} B;                            // kind 0 pool 1 plain
int main(int c, char **v)
{
  CK(cuInit(0));
  CUdevice d;
  CK(cuDeviceGet(&d, 0));
  CUcontext ctx;
  CK(cuDevicePrimaryCtxRetain(&ctx, d));
  CK(cuCtxSetCurrent(ctx));
  if (!strcmp(v[1], "direct")) {
    FILE *f = fopen(v[2], "w");
    u64 seed = strtoull(v[3], 0, 10);
    const char *kinds[] = { "small", "mixed", "large", "mib" };
    for (int q = 0; q < 4; q++) {
      rs = seed * 7919 + q * 104729 + 12345;
      for (int i = 0; i < 20; i++)
        rnd();
      static B b[4096];
      int n = 0, id = 0;
      u64 base = freeb();
      fprintf(f,
              "%s{\"api\": \"cuMemAlloc\", \"kind\": \"%s\", \"seed\": %d, \"fields\": [\"op\",\"id\",\"size\",\"addr\",\"used_after\"], \"ops\": [",
              q ? "" : "", kinds[q], q);
      int first = 1;
      int N = q == 0 ? 3000 : 1500;
      int T = q == 0 ? 400 : 60;
      for (int i = 0; i < N; i++) {
        if (n && rf() < (double)n / (2 * T)) {
          int k = rnd() % n;
          CK(cuMemFree(b[k].p));
          u64 u = base - freeb();
          fprintf(f, "%s[\"f\", %d, 0, 0, %llu]", first ? "" : ", ", b[k].id, u);
          b[k] = b[--n];
        } else {
          u64 s = size_of(kinds[q]);
          CUdeviceptr p;
          CK(cuMemAlloc(&p, s));
          u64 u = base - freeb();
          fprintf(f, "%s[\"a\", %d, %llu, %llu, %llu]", first ? "" : ", ", id, s, (u64) p, u);
          b[n].p = p;
          b[n].size = s;
          b[n].id = id;
          n++;
          id++;
        }
        first = 0;
      }
      for (int i = 0; i < n; i++)
        CK(cuMemFree(b[i].p));
      fprintf(f, "], \"end\": %llu}\n", base - freeb());
    }
    fclose(f);
    return 0;
  }
  // pools
  FILE *f = fopen(v[2], "w");
  u64 seed = strtoull(v[3], 0, 10);
  struct {
    const char *name, *kind;
    u64 thr;
    int ns;
    u64 max;
    int def, nb, null;
    int ev, trim, attr, plain, memfree, n;
  } C[] = {
    {"x_one0", "mixed", 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1200},
    {"x_two_max", "large", ~0ull, 2, 0, 0, 1, 0, 0, 1, 0, 0, 0, 900},
    {"x_events0", "mixed", 0, 4, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1300},
    {"x_events_max", "large", ~0ull, 4, 0, 0, 1, 0, 1, 1, 0, 0, 0, 900},
    {"x_null0", "mixed", 0, 3, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1000},
    {"x_null_ev", "mib", 0, 3, 0, 1, 1, 1, 1, 1, 0, 0, 0, 900},
    {"x_null_explicit", "mixed", 100663296, 2, 0, 0, 0, 1, 1, 1, 0, 0, 0, 900},
    {"x_maxsize", "large", 0, 3, 1073741824, 0, 1, 0, 0, 1, 0, 0, 0, 900},
    {"x_maxsize_ev", "mib", ~0ull, 2, 1610612736, 0, 1, 0, 1, 0, 0, 0, 0, 800},
    {"x_noopp", "mixed", ~0ull, 3, 0, 0, 1, 0, 1, 0, 2, 0, 0, 700},
    {"x_noev", "mib", ~0ull, 3, 0, 0, 1, 0, 1, 0, 1, 0, 0, 700},
    {"x_plain", "mixed", 0, 2, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1000},
    {"x_memfree", "mib", 134217728, 2, 0, 0, 1, 0, 0, 1, 0, 0, 1, 900},
    {"x_thr_odd", "large", 209715200, 3, 0, 0, 1, 0, 1, 1, 0, 0, 0, 900},
    {"x_small", "small", 0, 2, 0, 0, 1, 0, 0, 1, 0, 0, 0, 2500},
  };
  CUdeviceptr keep;
  CK(cuMemAlloc(&keep, 4096));
  for (unsigned q = 0; q < sizeof C / sizeof *C; q++) {
    rs = seed * 6364136223846793005ull + q * 1442695040888963407ull + 99991;
    for (int i = 0; i < 30; i++)
      rnd();
    CUmemoryPool P;
    if (C[q].def)
      CK(cuDeviceGetDefaultMemPool(&P, d));
    else {
      CUmemPoolProps pr;
      memset(&pr, 0, sizeof pr);
      pr.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      pr.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      pr.location.id = 0;
      pr.maxSize = C[q].max;
      CK(cuMemPoolCreate(&P, &pr));
    }
    u64 thr = C[q].thr;
    CK(cuMemPoolSetAttribute(P, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &thr));
    u64 z = 0;
    CK(cuMemPoolSetAttribute(P, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &z));
    CK(cuMemPoolSetAttribute(P, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &z));
    CUstream S[8];
    for (int i = 0; i < C[q].ns; i++) {
      if (C[q].null && i == 0)
        S[i] = 0;
      else
        CK(cuStreamCreate(&S[i], C[q].nb ? CU_STREAM_NON_BLOCKING : 0));
    }
    u64 base = freeb();
    static B b[8192];
    int n = 0, id = 1;
    int first = 1;
    CUevent E[4096];
    int ne = 0;
    fprintf(f,
            "{\"api\": \"pool2\", \"name\": \"%s\", \"kind\": \"%s\", \"threshold\": %llu, \"streams\": %d, \"max_size\": %llu, \"default_pool\": %d, \"flags\": %d, \"null_stream\": %d, \"ops\": [",
            C[q].name, C[q].kind, C[q].thr, C[q].ns, C[q].max, C[q].def, C[q].nb, C[q].null);
#define ROW(op,idv,sz,st,val) do{usleep(250);u64 a_,h_,u_,uh_;CK(cuMemPoolGetAttribute(P,CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,&a_));CK(cuMemPoolGetAttribute(P,CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,&h_));CK(cuMemPoolGetAttribute(P,CU_MEMPOOL_ATTR_USED_MEM_CURRENT,&u_));CK(cuMemPoolGetAttribute(P,CU_MEMPOOL_ATTR_USED_MEM_HIGH,&uh_));u64 fr_=freeb();fprintf(f,"%s[\"%s\", %lld, %llu, %d, %llu, %llu, %llu, %llu, %llu, %lld]",first?"":", ",op,(long long)(idv),(u64)(sz),(int)(st),(u64)(val),a_,h_,u_,uh_,(long long)(base-fr_));first=0;}while(0)
    if (C[q].attr) {
      int zero = 0;
      int at = C[q].attr;
      CK(cuMemPoolSetAttribute
         (P,
          at ==
          1 ? CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES : CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
          &zero));
      ROW("P", at, 0, 0, 0);
    }
    int T = !strcmp(C[q].kind, "small") ? 300 : 40;
    int eid = 1;
    int recS[4096];
    for (int i = 0; i < C[q].n; i++) {
      double x = rf();
      if (x < 0.06) {
        int s = rnd() % C[q].ns;
        CK(cuStreamSynchronize(S[s]));
        ROW("s", 0, 0, s, 0);
        continue;
      }
      if (x < 0.075) {
        CK(cuCtxSynchronize());
        ROW("c", 0, 0, 0, 0);
        continue;
      }
      if (C[q].trim && x < 0.095) {
        u64 k = ((u64) (rf() * 600)) << 20;
        if (rf() < .3)
          k = 0;
        CK(cuMemPoolTrimTo(P, k));
        ROW("t", 0, k, 0, 0);
        continue;
      }
      if (C[q].trim && x < 0.100) {
        u64 k = ((u64) (rf() * 300)) << 20;
        CK(cuMemPoolSetAttribute(P, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &k));
        ROW("T", 0, k, 0, 0);
        continue;
      }
      if (C[q].ev && x < 0.16 && C[q].ns > 1) {
        int s = rnd() % C[q].ns, t = rnd() % C[q].ns;
        CUevent e;
        CK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
        CK(cuEventRecord(e, S[s]));
        ROW("e", eid, 0, s, 0);
        CK(cuStreamWaitEvent(S[t], e, 0));
        ROW("w", eid, 0, t, 0);
        E[ne++] = e;
        recS[eid] = s;
        eid++;
        continue;
      }
      if (C[q].ev && x < 0.175 && ne) {
        int k = rnd() % ne;
        CK(cuEventSynchronize(E[k]));
        ROW("E", k + 1, 0, 0, 0);
        continue;
      }
      if (C[q].plain && x < 0.22) {
        if (rf() < .55) {
          u64 s = size_of("mixed");
          CUdeviceptr p;
          CUresult r = cuMemAlloc(&p, s);
          if (r) {
            ROW("M", id, s, 0, r);
            id++;
          } else {
            b[n].p = p;
            b[n].size = s;
            b[n].id = id;
            b[n].kind = 1;
            n++;
            ROW("m", id, s, 0, p);
            id++;
          }
        } else {
          int k = -1;
          for (int j = 0; j < n; j++)
            if (b[j].kind) {
              k = j;
              if (rf() < .3)
                break;
            }
          if (k >= 0) {
            CK(cuMemFree(b[k].p));
            ROW("x", b[k].id, 0, 0, 0);
            b[k] = b[--n];
          }
        }
        continue;
      }
      if (n && rf() < (double)n / (2 * T)) {
        int k = rnd() % n;
        if (b[k].kind)
          continue;
        int s = rnd() % C[q].ns;
        if (C[q].memfree && rf() < .25) {
          CK(cuMemFree(b[k].p));
          ROW("F", b[k].id, 0, 0, 0);
        } else {
          CK(cuMemFreeAsync(b[k].p, S[s]));
          ROW("f", b[k].id, 0, s, 0);
        }
        b[k] = b[--n];
        continue;
      }
      {
        int s = rnd() % C[q].ns;
        u64 z2 = size_of(C[q].kind);
        CUdeviceptr p;
        CUresult r = cuMemAllocFromPoolAsync(&p, z2, P, S[s]);
        if (r) {
          ROW("o", id, z2, s, r);
        } else {
          b[n].p = p;
          b[n].size = z2;
          b[n].id = id;
          b[n].kind = 0;
          n++;
          ROW("a", id, z2, s, p);
        }
        id++;
      }
    }
    for (int i = 0; i < n; i++)
      for (int j = i + 1; j < n; j++)
        if (b[j].id < b[i].id) {
          B t = b[i];
          b[i] = b[j];
          b[j] = t;
        }
    for (int i = 0; i < n; i++)
      if (!b[i].kind) {
        CK(cuMemFreeAsync(b[i].p, S[0]));
        ROW("f", b[i].id, 0, 0, 0);
      }
    for (int i = 0; i < n; i++)
      if (b[i].kind) {
        CK(cuMemFree(b[i].p));
        ROW("x", b[i].id, 0, 0, 0);
      }
    ROW("n", 0, 0, 0, 0);
    CK(cuCtxSynchronize());
    ROW("c", 0, 0, 0, 0);
    CK(cuMemPoolTrimTo(P, 0));
    ROW("t", 0, 0, 0, 0);
    fprintf(f, "]}\n");
    for (int i = 0; i < ne; i++)
      cuEventDestroy(E[i]);
    for (int i = 0; i < C[q].ns; i++)
      if (S[i])
        CK(cuStreamDestroy(S[i]));
    if (!C[q].def)
      CK(cuMemPoolDestroy(P));
    else {
      u64 zz = 0;
      CK(cuMemPoolSetAttribute(P, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zz));
    }
  }
  fclose(f);
  return 0;
}
