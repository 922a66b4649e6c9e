// Read bandwidth of this machine: each thread sums its share of one buffer.
// usage: read MIB THREADS REPEATS, prints the GB/s of each repeat
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { kLanes = 32, kMaxThreads = 256 };

static size_t words_each;
static int repeats;
static pthread_barrier_t gate;

// Summed in independent lanes, so that the adds never wait for each other.
static uint64_t sum(const uint64_t* data, size_t words) {
  uint64_t lane[kLanes] = {0};
  for (size_t i = 0; i + kLanes <= words; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lane[k] += data[i + k];
  uint64_t total = 0;
  for (int k = 0; k < kLanes; ++k) total += lane[k];
  return total;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct {
  const uint64_t* data;
  uint64_t total;  // kept, or the compiler would drop the sum
  double start, end;
} Share;

// The clock is read by the threads that sum: another one might wake up only after they are done.
static void* worker(void* argument) {
  Share* share = argument;
  for (int r = 0; r < repeats; ++r) {
    pthread_barrier_wait(&gate);
    share->start = now();
    share->total += sum(share->data, words_each);
    share->end = now();
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);  // until the main thread has read the times
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: read MIB THREADS REPEATS\n"), 2;
  size_t bytes = strtoull(argv[1], NULL, 10) << 20;
  int threads = atoi(argv[2]);
  repeats = atoi(argv[3]);
  if (!bytes || threads < 1 || threads > kMaxThreads || repeats < 1) return 2;

  uint64_t* data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return perror("mmap"), 1;
#ifdef MADV_HUGEPAGE
  madvise(data, bytes, MADV_HUGEPAGE);
#endif
  // Untouched pages would all be the one zero page, read from cache.
  memset(data, 1, bytes);

  words_each = bytes / sizeof(uint64_t) / (size_t)threads / kLanes * kLanes;
  pthread_barrier_init(&gate, NULL, (unsigned)threads + 1);
  pthread_t ids[kMaxThreads];
  static Share shares[kMaxThreads];
  for (int t = 0; t < threads; ++t) {
    shares[t].data = data + words_each * (size_t)t;
    pthread_create(&ids[t], NULL, worker, &shares[t]);
  }
  for (int r = 0; r < repeats; ++r) {
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    double start = shares[0].start, end = shares[0].end;
    for (int t = 1; t < threads; ++t) {
      if (shares[t].start < start) start = shares[t].start;
      if (shares[t].end > end) end = shares[t].end;
    }
    pthread_barrier_wait(&gate);
    printf("%.3f\n", (double)(words_each * sizeof(uint64_t) * (size_t)threads) / (end - start) / 1e9);
  }
  for (int t = 0; t < threads; ++t) pthread_join(ids[t], NULL);
  return 0;
}
