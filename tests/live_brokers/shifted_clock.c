/* A wall clock that is wrong by SHIFT seconds, for a process that is started with this library in LD_PRELOAD. The clock
   that only measures how long something takes stays as it is. (libfaketime takes a lock for every look at a clock: on a
   busy machine a broker under it does not start in time.) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t shift(void) {
    static time_t seconds;
    static int known;
    if (!known) {
        const char *given = getenv("SHIFT");
        seconds = given ? atol(given) : 0;
        known = 1;
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*original)(clockid_t, struct timespec *);
    if (!original)
        original = dlsym(RTLD_NEXT, "clock_gettime");
    int result = original(clock, at);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        at->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    static int (*original)(struct timeval *, void *);
    if (!original)
        original = dlsym(RTLD_NEXT, "gettimeofday");
    int result = original(at, zone);
    if (result == 0)
        at->tv_sec += shift();
    return result;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
