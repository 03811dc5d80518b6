/* Makes the journal's disk misbehave, for the fault suite. Loaded into the real daemon with LD_PRELOAD.
 *
 * LANYARD_FAULTS names a file of at least two bytes, mapped shared, so a test changes the weather at any moment:
 *   byte 0, writes: 0 fine, 1 EIO, 2 ENOSPC, 3 half is written and then ENOSPC, 4 EROFS
 *   byte 1, syncs:  0 fine, 1 EIO, 2 ENOSPC
 * Only files whose name contains "journal.db" are concerned. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned char *weather;
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void begin(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    const char *path = getenv("LANYARD_FAULTS");
    int fd = path ? open(path, O_RDONLY) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, 2, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) weather = page;
    close(fd);
}

static int is_journal(int fd) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0) return 0;
    name[length] = 0;
    return strstr(name, "journal.db") != NULL;
}

/* 0 to go on, -1 with errno to fail, or how many bytes to write before failing. */
static ssize_t on_write(int fd, size_t size) {
    unsigned char mode = weather ? weather[0] : 0;
    if (!mode || !is_journal(fd)) return 0;
    static __thread int halved;
    switch (mode) {
    case 1: errno = EIO; return -1;
    case 2: errno = ENOSPC; return -1;
    case 3:
        if (size > 1 && !halved) { halved = 1; return (ssize_t)(size / 2); }
        halved = 0; errno = ENOSPC; return -1;
    case 4: errno = EROFS; return -1;
    default: return 0;
    }
}

static int on_sync(int fd) {
    unsigned char mode = weather ? weather[1] : 0;
    if (!mode || !is_journal(fd)) return 0;
    errno = mode == 2 ? ENOSPC : EIO;
    return -1;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    ssize_t verdict = on_write(fd, size);
    if (verdict < 0) return -1;
    return real_write(fd, bytes, verdict ? (size_t)verdict : size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    ssize_t verdict = on_write(fd, size);
    if (verdict < 0) return -1;
    return real_pwrite(fd, bytes, verdict ? (size_t)verdict : size, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) { return pwrite(fd, bytes, size, at); }

int fsync(int fd) { return on_sync(fd) ? -1 : real_fsync(fd); }

int fdatasync(int fd) { return on_sync(fd) ? -1 : real_fdatasync(fd); }
