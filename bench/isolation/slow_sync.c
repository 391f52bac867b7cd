/* A disk that is slow to sync, for one folder and for as long as a file exists. LD_PRELOAD, ld.so(8).
 *
 * BENCH_SLOW_FOLDER: paths that begin so are slow; BENCH_SLOW_TRIGGER: the file; each sync takes 500 ms more.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_if_slow(int descriptor) {
    const char *folder = getenv("BENCH_SLOW_FOLDER"), *trigger = getenv("BENCH_SLOW_TRIGGER");
    char link[64], path[4096];
    if (!folder || !trigger || access(trigger, F_OK) != 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return;
    path[size] = 0;
    if (strncmp(path, folder, strlen(folder)) == 0) usleep(500000);
}

int fdatasync(int descriptor) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_if_slow(descriptor);
    return real(descriptor);
}

int fsync(int descriptor) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_if_slow(descriptor);
    return real(descriptor);
}
