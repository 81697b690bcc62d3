/* The wall clock of one process, moved: preloaded into a server, it adds the
 * nanoseconds that stand in the first 8 bytes of the file BERTH_TEST_CLOCK to
 * every reading. Clocks that no one can set stay as they are. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t billion = 1000000000;
static const int64_t *offset; /* null until the file is mapped */

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("BERTH_TEST_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) abort();
  void *page = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) abort();
  close(file);
  offset = page;
}

int clock_gettime(clockid_t id, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, id, now);
  if (failed || !offset || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
  int64_t ns = (int64_t)now->tv_sec * billion + now->tv_nsec + __atomic_load_n(offset, __ATOMIC_RELAXED);
  now->tv_sec = ns / billion;
  now->tv_nsec = ns % billion;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec t;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &t)) return -1;
  now->tv_sec = t.tv_sec;
  now->tv_usec = t.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec t;
  if (clock_gettime(CLOCK_REALTIME, &t)) return -1;
  if (out) *out = t.tv_sec;
  return t.tv_sec;
}
